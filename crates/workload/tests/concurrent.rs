//! Threads that write at the same time: none sees another's ring, and what a thread remembers of an earlier recording is void in
//! the next one.

mod written;

use std::sync::{Barrier, Mutex};
use trace::segment::SegmentReader;
use trace::status::{Collector, State};
use workload::library::Library;
use workload::session::{self, Session};
use workload::settings::Calls;
use workload::thread::concurrent::writing;
use written::{read, settings, write};

/// There is one session in a process, and tests run side by side.
static ONE: Mutex<()> = Mutex::new(());

fn start(test: &str) -> &'static Session {
    session::start(Library::Cuda, settings(test, Calls::Python), "server".into(), String::new()).expect("a session")
}

fn end(session: &'static Session) {
    session::stop();
    session::discard();
    let _ = std::fs::remove_dir_all(&session.settings.segments);
}

#[test]
fn threads_write_at_the_same_time_and_each_into_its_own_ring() {
    let _one = ONE.lock().unwrap();
    let session = start("together");
    assert_eq!(session.status(Collector::Scopes).state(), State::Off, "this library has none");
    let all = Barrier::new(8);
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| {
                all.wait();
                (0..1000).for_each(|number| write(writing(session, Collector::Nvtx).expect("a ring"), number));
                // A ring that is left goes to the next thread: all are there until all have written.
                all.wait();
            });
        }
    });
    let (found, lost) = read(session.segment.path());
    assert_eq!((found.len(), lost), (8, 0));
    assert!(found.values().all(|numbers| numbers.iter().copied().eq(0..1000)), "{found:?}");
    end(session);
}

#[test]
fn what_a_thread_remembers_is_void_in_the_next_recording() {
    let _one = ONE.lock().unwrap();
    let first = start("generations");
    write(writing(first, Collector::Gpu).expect("a ring"), 1);
    SegmentReader::open(first.segment.path()).expect("a segment").set_wanted(false);
    assert!(session::current().is_none(), "the recorder has left");
    let second = start("generations");
    assert!(!std::ptr::eq(first, second));
    write(writing(second, Collector::Gpu).expect("a ring"), 2);
    assert_eq!(read(first.segment.path()).0.into_values().collect::<Vec<_>>(), [[1]]);
    assert_eq!(read(second.segment.path()).0.into_values().collect::<Vec<_>>(), [[2]]);
    end(second);
}

#[test]
fn it_keeps_no_open_calls() {
    let _one = ONE.lock().unwrap();
    let session = start("calls");
    let depth = &writing(session, Collector::Launches).expect("a ring").calls.depth;
    depth.store(1, std::sync::atomic::Ordering::Relaxed);
    let reader = SegmentReader::open(session.segment.path()).expect("a segment");
    assert_eq!(reader.open_calls().len(), 0);
    end(session);
}
