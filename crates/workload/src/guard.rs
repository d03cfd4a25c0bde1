//! The boundary to the program: a panic of ours ends here, is counted on the status page, and the workload goes on.

use crate::session;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use trace::status::Collector;

/// Runs `body`; if it panics, counts that and gives `otherwise`.
#[inline(always)]
pub fn guarded<R>(collector: Collector, otherwise: R, body: impl FnOnce() -> R) -> R {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(_) => {
            count_error(collector);
            otherwise
        }
    }
}

/// An own failure that was survived.
#[cold]
pub fn count_error(collector: Collector) {
    if let Some(session) = session::current() {
        session.status(collector).errors.fetch_add(1, Ordering::Relaxed);
    }
}

/// Panics of this library say nothing: the workload's stderr is not ours.
pub fn silence() {
    std::panic::set_hook(Box::new(|_| {}));
}
