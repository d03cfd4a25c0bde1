//! What CUPTI keeps of the program's memory for every kernel that is launched after a CUDA graph was captured while it records.
//! It never gives that back, and whoever records has it: we cannot prevent it, so we say it. Counting is left to `launches`.

use trace::codes::{Reason, ReasonCode};

/// Bytes for each launch: 32 to 35 were seen with CUDA 13.0, where no buffer of CUPTI's and no attribute made a difference.
const BYTES: u64 = 32;
/// Kept memory that is worth a word: what is less harms nobody.
const LARGE: u64 = 64_000_000;

/// Nanoseconds of recording from which a pace can be told: less may be a single call.
const ENOUGH: u64 = 100_000_000;

/// How far the program is.
#[derive(Clone, Copy)]
pub struct Progress {
    /// Launches since a capture that were seen. Between windows none is, and CUPTI keeps memory for those as well.
    pub counted: u64,
    /// Nanoseconds recorded and not recorded so far.
    pub times: [u64; 2],
}

/// What was said of it so far.
#[derive(Default)]
pub struct Kept {
    first: Option<Progress>,
    told: bool,
}

impl Kept {
    /// Once a second: what is to be said now. It is there, too, if the program is killed.
    pub fn look(&mut self, now: Progress) -> Option<Reason> {
        if now.counted > 0 && self.first.is_none() {
            self.first = Some(now);
        }
        let large = self.launched(now).saturating_mul(BYTES) >= LARGE;
        (large && !std::mem::replace(&mut self.told, true))
            .then(|| Reason::new(ReasonCode::MemoryAfterCapture).with(BYTES).with(LARGE))
    }

    /// At the end: how much it may have become. Nothing where it was not worth a word.
    pub fn total(&self, now: Progress) -> Option<Reason> {
        let launched = self.launched(now);
        let kept = launched.saturating_mul(BYTES);
        let reason = || Reason::new(ReasonCode::MemoryKeptAfterCapture).with(launched).with(now.counted).with(kept);
        self.told.then(reason)
    }

    /// Between windows the program is taken to launch as fast as in them.
    fn launched(&self, now: Progress) -> u64 {
        let Some(first) = self.first else { return now.counted };
        let [recorded, paused] = [0, 1].map(|at| now.times[at].saturating_sub(first.times[at]));
        if recorded < ENOUGH {
            return now.counted;
        }
        let counted = now.counted.saturating_sub(first.counted);
        let unseen = u128::from(counted) * u128::from(paused) / u128::from(recorded);
        now.counted.saturating_add(u64::try_from(unseen).unwrap_or(u64::MAX))
    }
}
