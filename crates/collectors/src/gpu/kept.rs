//! What CUPTI keeps of the program's memory for every kernel that is launched after a CUDA graph was captured while it records.
//! It never gives that back, and whoever records has it: we cannot prevent it, so we say it. Counting is left to `launches`.

/// Bytes for each launch: 32 to 35 were seen with CUDA 13.0, where no buffer of CUPTI's and no attribute made a difference.
const BYTES: u64 = 32;
/// Kept memory that is worth a word: what is less harms nobody.
const LARGE: u64 = 64_000_000;

/// What was said of it so far.
#[derive(Default)]
pub struct Kept {
    told: bool,
}

impl Kept {
    /// Once a second, with the launches since a capture: what is to be said now. It stays true of a program that is killed.
    pub fn explain(&mut self, launched: u64) -> Option<&'static str> {
        let large = launched.saturating_mul(BYTES) >= LARGE;
        (large && !std::mem::replace(&mut self.told, true)).then_some(
            "CUPTI keeps some 32 bytes of the program's memory for every kernel launched after a CUDA graph was captured \
             while it records, and does not give them back (seen with CUDA 13.0): here, that may be 64 MB and more. To avoid it, \
             let the program run for a shorter time, or record from after the capture on: inferscope.start() in it, not inferscope run",
        )
    }

    /// At the end: how much it may have become. Nothing where it was not worth a word.
    pub fn total(&self, launched: u64) -> Option<String> {
        let megabytes = launched.saturating_mul(BYTES) / 1_000_000;
        self.told.then(|| {
            format!(
                "at least {launched} kernels were launched after a CUDA graph was captured: \
                 CUPTI may have kept {megabytes} MB or more of the program's memory by the end"
            )
        })
    }
}
