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
    status.own_ns.fetch_add(nanos(now().saturating_sub(began)) * times, Ordering::Relaxed);
}

/// So many ticks, by what both clocks have counted since the recording began.
#[cold]
pub fn nanos(ticks: u64) -> u64 {
    let passed = u128::from(now().saturating_sub(TICKS.load(Ordering::Relaxed)).max(1));
    let real = u128::from(monotonic().0.saturating_sub(NANOS.load(Ordering::Relaxed)));
    (u128::from(ticks) * real / passed) as u64
}
