//! The ring of this thread where threads write one at a time, under the GIL: one memory of the last writer serves them all.

use super::{NOBODY, Session, ThreadSlot, Writing, find, of_owner};
use std::sync::atomic::{AtomicPtr, Ordering};
use trace::status::Collector;

/// The place of the thread that wrote last.
static LAST_THREAD: AtomicPtr<ThreadSlot> = AtomicPtr::new((&raw const NOBODY).cast_mut());

/// The ring of this thread, if it is the thread that wrote last. The GIL must be held, and Python must not be
/// called while the result is in use: it could come back here.
#[inline(always)]
pub fn last() -> Option<&'static mut Writing> {
    of_owner(LAST_THREAD.load(Ordering::Relaxed))
}

/// The ring of this thread, claimed if need be. None: there is none left, which was counted. Rules as for [`last`].
#[inline(always)]
pub fn writing(session: &'static Session, collector: Collector) -> Option<&'static mut Writing> {
    match last() {
        Some(writing) => Some(writing),
        None => find(session, collector),
    }
}

pub(super) fn remember(place: *const ThreadSlot) {
    LAST_THREAD.store(place.cast_mut(), Ordering::Relaxed);
}
