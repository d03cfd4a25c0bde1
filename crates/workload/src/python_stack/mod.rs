//! What the two libraries in a workload say to each other about Python's stacks: the Python one reads them, the CUDA one has blocks to read
//! them for. Here is the contract between them, and what of the reading needs no Python.

pub mod lines;

use trace::codes::StackMissing;

/// Under this name the Python library gives its reader: `extern "C" fn() -> *const StackReader`.
pub const SYMBOL: &std::ffi::CStr = c"inferscope_stack_reader";

/// Frames that are read, from the innermost outwards: what lies farther out than this says no more about who asked for a block.
pub const MOST_FRAMES: usize = 64;

/// Raised with each change of what follows. The two libraries come in one wheel; of two wheels in one process each has its own.
pub const VERSION: u32 = 1;

/// A frame as it stands in the thread.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub struct RawFrame {
    /// Where its code object lies: good until the reading ends.
    pub code: usize,
    /// Of what the code object says of itself: its names and lines. The address says nothing, for another may lie there next.
    pub identity: u64,
    /// The instruction that is being executed, in units of two bytes. -1: none yet.
    pub instruction: i32,
}

/// The functions that read the stack of the calling thread. They take no lock and no GIL, and allocate nothing.
#[repr(C)]
pub struct StackReader {
    pub version: u32,
    /// Writes at most so many frames, innermost first, and begins a reading if that gives more than 0: what is read is there until `end`.
    /// Negative: there are none, and this [`StackMissing`] says why.
    pub read: unsafe extern "C" fn(frames: *mut RawFrame, room: usize) -> i32,
    /// Writes the name of a frame's function with its file, as of a call, and gives its length and the line. Of a reading that has not ended.
    pub describe: unsafe extern "C" fn(frame: *const RawFrame, text: *mut u8, room: usize, line: *mut u32) -> usize,
    /// Ends a reading.
    pub end: extern "C" fn(),
}

/// What `read` says of a stack that it has not got.
pub const fn missing(why: StackMissing) -> i32 {
    -(why as i32)
}

/// 64 bits of which every one depends on both words.
#[inline(always)]
pub const fn mix(one: u64, other: u64) -> u64 {
    let product = (one ^ 0x9e37_79b9_7f4a_7c15) as u128 * (other ^ 0xd6e8_feb8_6659_fd93) as u128;
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::mix;
    use std::collections::HashSet;

    #[test]
    fn words_that_differ_little_differ_much_when_mixed() {
        let all: HashSet<u64> = (0..300).flat_map(|one| (0..300).map(move |other| mix(one, other))).collect();
        assert_eq!(all.len(), 300 * 300);
        let changed: u32 = (0..64).map(|bit| (mix(77, 99) ^ mix(77, 99 ^ (1 << bit))).count_ones()).sum();
        assert!((26 * 64..38 * 64).contains(&changed), "{changed}");
    }
}
