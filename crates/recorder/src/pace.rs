//! How often a source may be read: as often as wanted, unless it turns out to be costly.

use std::time::{Duration, Instant};

pub(crate) struct Pace {
    wanted: Duration,
    interval: Duration,
    next: Instant,
}

/// A source costs at most one part in this of a core.
const SHARE: u32 = 100;

impl Pace {
    pub fn new(wanted: Duration) -> Pace {
        Pace { wanted, interval: wanted, next: Instant::now() }
    }

    /// The same, at another rate from the next time on.
    pub fn at(self, wanted: Duration) -> Pace {
        Pace { wanted, ..self }
    }

    /// Runs `read` if it is time, and stretches the interval to what it cost.
    pub fn run(&mut self, read: impl FnOnce()) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        let cost = cpu_time(read).1;
        self.interval = self.wanted.max(cost * SHARE);
        // From the plan, not from now, so that the rate is kept; but never to catch up.
        self.next = (self.next + self.interval).max(now);
    }

    pub fn next(&self) -> Instant {
        self.next
    }
}

/// What something returns, and the CPU time that this thread spent on it.
pub(crate) fn cpu_time<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let now = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` outlives the call.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let before = now();
    let result = work();
    (result, now().saturating_sub(before))
}
