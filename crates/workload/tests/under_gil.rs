//! Threads that write one at a time, as under the GIL: each finds its own ring, the last writer is known by one look, a ring goes
//! to whoever needs it, and a fork writes into a segment of its own.

mod written;

use std::sync::Mutex;
use trace::segment::SegmentReader;
use trace::status::{Collector, State};
use workload::library::Library;
use workload::session::{self, Session};
use workload::settings::Calls;
use workload::thread::under_gil::{last, writing};
use written::{read, settings, write};

/// What the GIL is in Python. There is one session in a process besides, so tests take turns by it, too.
static GIL: Mutex<()> = Mutex::new(());

fn start(test: &str) -> &'static Session {
    session::start(Library::Python, settings(test, Calls::Python), "serve.py".into(), "3.12.1".into())
        .expect("a session")
}

fn end(session: &'static Session) {
    session::stop();
    session::discard();
    std::fs::remove_dir_all(&session.settings.segments).expect("its folder");
}

#[test]
fn each_thread_writes_into_its_own_ring_and_the_last_writer_is_known() {
    let _gil = GIL.lock().unwrap();
    let session = start("turns");
    let gil = Mutex::new(());
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for number in 0..1000 {
                    let _gil = gil.lock().unwrap();
                    let tid =
                        writing(session, Collector::Scopes).map(|writing| (write(writing, number), writing.tid).1);
                    assert_eq!(last().map(|writing| writing.tid), tid, "it has just written");
                }
            });
        }
    });
    assert!(last().is_none(), "others wrote last");
    let (found, lost) = read(session.segment.path());
    assert_eq!((found.len(), lost), (4, 0));
    assert!(found.values().all(|numbers| numbers.iter().copied().eq(0..1000)), "{found:?}");
    end(session);
}

#[test]
fn the_extension_says_that_scopes_are_on_and_forgets_its_writers_when_it_stops() {
    let _gil = GIL.lock().unwrap();
    let session = start("stops");
    assert_eq!(session.status(Collector::Scopes).state(), State::On);
    write(writing(session, Collector::Scopes).expect("a ring"), 1);
    assert!(last().is_some());
    session::stop();
    assert!(last().is_none() && session::current().is_none());
    let again = start("stops");
    assert!(std::ptr::eq(again, session), "the recorder is still there: the same recording goes on");
    write(writing(session, Collector::Scopes).expect("a ring"), 2);
    assert_eq!(read(session.segment.path()).0.into_values().collect::<Vec<_>>(), [[1, 2]]);
    end(session);
}

#[test]
fn open_calls_are_kept_where_a_recorder_finds_them() {
    let _gil = GIL.lock().unwrap();
    let session = start("calls");
    let depth = &writing(session, Collector::Calls).expect("a ring").calls.depth;
    let before = depth.load(std::sync::atomic::Ordering::Relaxed);
    depth.store(before + 1, std::sync::atomic::Ordering::Relaxed);
    let reader = SegmentReader::open(session.segment.path()).expect("a segment");
    assert_eq!(reader.open_calls().len(), 1);
    depth.store(before, std::sync::atomic::Ordering::Relaxed);
    end(session);
}

#[test]
fn a_forked_child_writes_into_a_segment_of_its_own() {
    let _gil = GIL.lock().unwrap();
    let session = start("forks");
    write(writing(session, Collector::Scopes).expect("a ring"), 1);
    // SAFETY: the child has one thread, writes one record and ends without any exit handler.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let void = last().is_none() && session::current().is_none();
        let own = session::after_fork().and_then(Result::ok);
        let wrote = own.and_then(|own| writing(own, Collector::Scopes)).map(|writing| write(writing, 2));
        // SAFETY: plain system call.
        unsafe { libc::_exit(i32::from(!void || wrote.is_none())) };
    }
    let mut status = 0;
    // SAFETY: waits for our own child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    write(writing(session, Collector::Scopes).expect("a ring"), 3);
    let parent = session.segment.path();
    let files = std::fs::read_dir(&session.settings.segments).expect("the folder").flatten();
    let others: Vec<_> = files.map(|file| file.path()).filter(|path| path != parent).collect();
    assert_eq!(others.len(), 1, "{others:?}");
    assert_eq!(read(parent).0.into_values().collect::<Vec<_>>(), [[1, 3]]);
    assert_eq!(read(&others[0]).0.into_values().collect::<Vec<_>>(), [[2]]);
    end(session);
}
