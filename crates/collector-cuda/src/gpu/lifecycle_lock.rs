//! One thread at a time begins or ends a recording of the GPU. The holder of the lock is known by process and thread: a fork does
//! not inherit it, and a thread that the driver leads back here in the middle of what it does is not made to wait for itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Process and thread of the holder; 0: nobody.
static HOLDER: AtomicU64 = AtomicU64::new(0);

const POLL_INTERVAL: Duration = Duration::from_micros(200);

/// Releases the lock when it is dropped.
pub struct Held(u64);

/// Takes the lock, if it becomes free within `timeout`. Waiting is bounded because the holder may wait in the driver for us.
pub fn try_acquire(timeout: Duration) -> Option<Held> {
    let me = me();
    let since = Instant::now();
    loop {
        let holder = HOLDER.load(Ordering::Relaxed);
        if holder == me {
            return None;
        }
        // A thread of another process held it when that process forked us: it is not in this one.
        let free = holder == 0 || holder >> 32 != me >> 32;
        if free && HOLDER.compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return Some(Held(me));
        }
        if since.elapsed() >= timeout {
            return None;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

fn me() -> u64 {
    // SAFETY: plain system call; glibc has a function for it only since 2.30.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    u64::from(std::process::id()) << 32 | u64::from(thread)
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = HOLDER.compare_exchange(self.0, 0, Ordering::Release, Ordering::Relaxed);
    }
}
