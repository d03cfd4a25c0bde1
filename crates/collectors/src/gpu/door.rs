//! One at a time begins or ends a recording of the GPU. Who holds the door is known by process and thread: a fork does not
//! inherit it, and a thread that the driver leads back to it in the middle of what it does is not made to wait for itself.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Process and thread of who is inside; 0: nobody.
static HOLDER: AtomicU64 = AtomicU64::new(0);

const LOOK: Duration = Duration::from_micros(200);

/// Open again when it is dropped.
pub struct Door(u64);

/// Goes in, when it is free within `patience`. Waiting is bounded because who is inside may wait in the driver for us.
pub fn enter(patience: Duration) -> Option<Door> {
    let me = me();
    let since = Instant::now();
    loop {
        let holder = HOLDER.load(Ordering::Relaxed);
        if holder == me {
            return None;
        }
        // One of another process was at it when that process forked us: it is not in here.
        let free = holder == 0 || holder >> 32 != me >> 32;
        if free && HOLDER.compare_exchange(holder, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return Some(Door(me));
        }
        if since.elapsed() >= patience {
            return None;
        }
        std::thread::sleep(LOOK);
    }
}

fn me() -> u64 {
    // SAFETY: plain system call; glibc has a function for it only since 2.30.
    let thread = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
    u64::from(std::process::id()) << 32 | u64::from(thread)
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = HOLDER.compare_exchange(self.0, 0, Ordering::Release, Ordering::Relaxed);
    }
}
