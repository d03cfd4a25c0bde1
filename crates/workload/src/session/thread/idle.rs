//! Rings of threads that live but do not write: when nothing else is left, one whose records are all on disk goes to a thread
//! that does. Its own thread asks for another ring at its next event.

use super::{FORKS, OwnedRing, PLACES, Session, ThreadSlot, thread_pointer};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where the next look begins.
static NEXT: AtomicPtr<ThreadSlot> = AtomicPtr::new(ptr::null_mut());

/// Such a ring, of at least so many records. Under the GIL no other thread is writing; a thread that ends may be
/// giving its ring back, and holds its place's lock for that. `most` threads are looked at; the next look goes on after them.
pub fn ring(session: &'static Session, least: u64, most: usize) -> Option<OwnedRing> {
    // Without the GIL nobody knows whether a thread is writing at this moment.
    if !session.library.holds_gil() {
        return None;
    }
    let mut at = NEXT.load(Ordering::Relaxed);
    for _ in 0..most {
        if at.is_null() {
            at = PLACES.load(Ordering::Acquire);
        }
        // SAFETY: places are never freed and the list only grows.
        let place = unsafe { at.as_ref() }?;
        at = place.next.load(Ordering::Relaxed);
        let found = take(place, session, least);
        if found.is_some() {
            NEXT.store(at, Ordering::Relaxed);
            return found;
        }
    }
    NEXT.store(at, Ordering::Relaxed);
    None
}

fn take(place: &ThreadSlot, session: &'static Session, least: u64) -> Option<OwnedRing> {
    let owner = place.owner.load(Ordering::Acquire);
    if owner == 0 || owner == thread_pointer() || !place.try_lock() {
        return None;
    }
    // SAFETY: its thread is not in here, for we hold the GIL, and does not end meanwhile, for we hold the lock.
    let writing = unsafe { &mut *place.writing.get() };
    let ring = writing
        .as_mut()
        .filter(|writing| writing.generation == session.generation)
        .filter(|writing| writing.forks == FORKS.load(Ordering::Relaxed))
        .filter(|writing| writing.ring.is_durable() && writing.ring.records() >= least)
        .map(|writing| writing.ring.take());
    place.unlock();
    ring
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::Library;
    use crate::session;
    use crate::settings::{GpuDetail, Recording, Settings};
    use crate::thread::{ALL, concurrent, under_gil};
    use std::sync::mpsc::channel;
    use trace::SegmentReader;
    use trace::event::{Event, Kind, NameId};
    use trace::status::Collector;

    fn start(library: Library) -> &'static Session {
        let segments = std::env::temp_dir().join(format!("inferscope-idle-{library:?}-{}", std::process::id()));
        std::fs::create_dir_all(&segments).unwrap();
        let recording = Recording { trace_size_mb: 4, gpu_detail: GpuDetail::Off, ..Recording::default() };
        let settings = Settings { segments, recorder: None, recording };
        session::start(library, settings, "serve.py".into(), String::new()).unwrap()
    }

    /// Whether the ring of a thread that wrote one record, which is on disk, and that lives on, can be taken from it.
    fn is_taken(library: Library) -> bool {
        let session = start(library);
        let (wrote, written) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            let writing = match library {
                Library::Python => under_gil::writing(session, Collector::Scopes),
                Library::Cuda => concurrent::writing(session, Collector::Gpu),
            };
            let (name, kind) = (NameId::NONE, Kind::Mark as u16);
            let event = Event { time: 1, value: 1, thread: 1, name, kind, flags: 0, extra: 0 };
            writing.expect("a ring").push(event.to_words());
            wrote.send(()).unwrap();
            ended.recv().unwrap();
        });
        written.recv().unwrap();
        let reader = SegmentReader::open(session.segment.path()).unwrap();
        assert!(ring(session, 1, ALL).is_none(), "its record is not on disk yet");
        for ring in (0..reader.rings()).filter_map(|number| reader.ring(number)) {
            ring.set_durable(ring.head.load(Ordering::Acquire));
        }
        let taken = ring(session, 1, ALL).is_some();
        end.send(()).unwrap();
        thread.join().unwrap();
        session::stop();
        std::fs::remove_dir_all(&session.settings.segments).unwrap();
        taken
    }

    /// Both in one test: there is one session in a process.
    #[test]
    fn a_thread_loses_its_ring_only_where_it_cannot_be_writing() {
        assert!(is_taken(Library::Python));
        assert!(!is_taken(Library::Cuda));
    }
}
