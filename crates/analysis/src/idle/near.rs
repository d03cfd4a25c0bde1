//! Where the last questions to a thread were answered.

use super::blocks::Cursor;

/// Where the last questions to a thread were answered, one place for each of its lists.
#[derive(Clone, Debug, Default)]
pub struct Near {
    pub exact: Cursor,
    pub free: usize,
    pub in_calls: usize,
    pub functions: Cursor,
    pub queued: usize,
    pub profiler: usize,
    pub called: Cursor,
    /// Stretches that no look stands for; kept only so that each question need not ask for memory.
    pub left: [Vec<(u64, u64)>; 2],
}
