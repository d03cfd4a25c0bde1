//! Whether the GPU is recorded at this moment, as one number, so that what else is recorded by turns (layers, from Python) can
//! keep to the windows of the overhead budget. Who opens and closes them is `gpu`.

use std::sync::atomic::{AtomicU32, Ordering};

/// 0: not recorded at all. Else it grows with each window: even while one is open, odd between two.
static WINDOW: AtomicU32 = AtomicU32::new(0);
/// Whose number it is: a forked child has no recording of the GPU.
static OWNER: AtomicU32 = AtomicU32::new(0);

const CLOSED: u32 = 1;
const OPEN: u32 = 2;

/// The GPU is recorded from now on, or in windows of which the first is not yet open.
pub fn begin(open: bool) {
    OWNER.store(std::process::id(), Ordering::Relaxed);
    WINDOW.store(if open { OPEN } else { CLOSED }, Ordering::Release);
    if open {
        wake();
    }
}

/// A window opens (when everything in it is switched on), or is about to close.
pub fn turn(open: bool) {
    let now = WINDOW.load(Ordering::Relaxed);
    if now == 0 || now.is_multiple_of(2) == open {
        return;
    }
    // Round again after billions of them, past the 0.
    WINDOW.store(now.checked_add(1).unwrap_or(OPEN), Ordering::Release);
    if open {
        wake();
    }
}

fn wake() {
    // SAFETY: the number lives for ever; waking whoever waits for it to change does nothing else.
    unsafe { libc::syscall(libc::SYS_futex, WINDOW.as_ptr(), libc::FUTEX_WAKE | PRIVATE, libc::c_int::MAX) };
}

/// Nothing more is recorded. Nobody is woken: this may be the end of the program, where Python's threads are better left asleep.
pub fn end() {
    WINDOW.store(0, Ordering::Release);
}

/// The number above, of this process.
pub fn now() -> u32 {
    match WINDOW.load(Ordering::Acquire) {
        0 => 0,
        _ if OWNER.load(Ordering::Relaxed) != std::process::id() => 0,
        window => window,
    }
}

/// Waits until a window opens if the number is still `seen`, at most so many milliseconds.
pub fn wait(seen: u32, milliseconds: u32) {
    let most =
        libc::timespec { tv_sec: (milliseconds / 1000).into(), tv_nsec: (milliseconds % 1000 * 1_000_000).into() };
    // SAFETY: the number lives for ever, and the time is read before the call returns.
    unsafe { libc::syscall(libc::SYS_futex, WINDOW.as_ptr(), libc::FUTEX_WAIT | PRIVATE, seen, &raw const most) };
}

/// Only threads of this process wait.
const PRIVATE: libc::c_int = libc::FUTEX_PRIVATE_FLAG;

#[cfg(test)]
mod tests;
