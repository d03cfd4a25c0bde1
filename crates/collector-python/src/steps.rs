//! How long the steps take that the program itself marks: the CUDA library, in the same process, asks for the longest, so that a
//! window of the overhead budget holds a whole one.

use std::sync::atomic::{AtomicU64, Ordering};

static LONGEST: AtomicU64 = AtomicU64::new(0);

/// A step took so many ticks. Under the GIL; to lose one to who asks just now does no harm.
#[inline(always)]
pub fn ended(ticks: u64) {
    if ticks > LONGEST.load(Ordering::Relaxed) {
        LONGEST.store(ticks, Ordering::Relaxed);
    }
}

/// For the CUDA library: ticks of the longest step that has ended since it last asked, 0 where none has.
#[unsafe(no_mangle)]
pub extern "C" fn inferscope_longest_step() -> u64 {
    LONGEST.swap(0, Ordering::Relaxed)
}
