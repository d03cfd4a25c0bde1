//! Rings of threads that live but do not write: when nothing else is left, one whose records are all on disk goes to a thread
//! that does. Its own thread asks for another ring at its next event.

use super::{FORKS, OwnedRing, PLACES, Place, Session, thread_pointer};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Where the next look begins.
static NEXT: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

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

fn take(place: &Place, session: &'static Session, least: u64) -> Option<OwnedRing> {
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
