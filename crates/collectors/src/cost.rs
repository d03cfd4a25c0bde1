//! What our own work takes, in nanoseconds, told by the records' clock: a pair of readings is far cheaper than the kernel's
//! clock, which a program that does much else finds cold at every call.

use std::sync::atomic::{AtomicU64, Ordering};
use trace::clock::{monotonic, now};
use trace::status::CollectorStatus;

/// Both clocks when the recording began.
static TICKS: AtomicU64 = AtomicU64::new(0);
static NANOS: AtomicU64 = AtomicU64::new(0);

/// The recording begins.
pub fn begin() {
    TICKS.store(now(), Ordering::Relaxed);
    NANOS.store(monotonic().0, Ordering::Relaxed);
}

/// Puts `times` the ticks since `began` on the status page.
#[cold]
pub fn add(status: &CollectorStatus, began: u64, times: u64) {
    let end = now();
    let (ticks, nanos) = (TICKS.load(Ordering::Relaxed), NANOS.load(Ordering::Relaxed));
    let passed = u128::from(end.saturating_sub(ticks).max(1));
    let real = u128::from(monotonic().0.saturating_sub(nanos));
    let own = u128::from(end.saturating_sub(began)) * real / passed;
    status.own_ns.fetch_add(own as u64 * times, Ordering::Relaxed);
}
