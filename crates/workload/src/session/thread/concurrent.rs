//! The ring of this thread where threads write at the same time: one memory of the last writer would go from core to core, so
//! each thread has its own.

use super::{NOBODY, Session, ThreadSlot, Writing, find, of_owner};
use std::cell::Cell;
use trace::status::Collector;

thread_local! {
    static LAST_PLACE: Cell<*const ThreadSlot> = const { Cell::new(&raw const NOBODY) };
}

/// The ring of this thread, claimed if need be. None: there is none left, which was counted. Nothing that comes back here may be
/// called while the result is in use.
#[inline(always)]
pub fn writing(session: &'static Session, collector: Collector) -> Option<&'static mut Writing> {
    // A thread's own memory outlives the recording that it is of.
    match of_owner(LAST_PLACE.with(Cell::get)).filter(|writing| writing.generation == session.generation) {
        Some(writing) => Some(writing),
        None => find(session, collector),
    }
}

pub(super) fn remember(place: *const ThreadSlot) {
    LAST_PLACE.with(|last| last.set(place));
}
