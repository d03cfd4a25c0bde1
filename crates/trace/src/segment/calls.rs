//! Open calls: one block for each thread that records calls, so that a kill does not hide the function it happened in. A
//! block stays with its thread while rings come and go, so that no call is ever shown twice or for another thread.

use super::memory::Memory;
use crate::NameId;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What stands in front of the calls of a block.
#[repr(C, align(64))]
pub(crate) struct Block {
    depth: AtomicU64,
    thread: AtomicU32,
    cells: AtomicU32,
    /// The block that was made before this one, 0 if none.
    before: AtomicU64,
}

const _: () = assert!(size_of::<Block>() == 64);

/// Calls in a block, by how much of the segment is left: CPython's default recursion limit is 1000, and those that are
/// nested deeper than the block reaches are only hidden by a kill.
pub(super) fn cells(left: usize, all: usize) -> usize {
    match (left * 4).checked_div(all) {
        Some(0) => 32,
        Some(1) => 256,
        _ => 1024,
    }
}

pub(super) fn block_bytes(cells: usize) -> usize {
    size_of::<Block>() + cells * 16
}

/// The open calls of one thread, outermost first: a word whose lower half is the name, and the begin time.
#[derive(Clone, Copy)]
pub struct OpenCalls {
    pub depth: &'static AtomicU64,
    pub cells: &'static [[AtomicU64; 2]],
    /// Where the block lies, 0 if it is not in the segment.
    pub(super) at: u64,
}

impl OpenCalls {
    /// Without a block: calls are counted in `depth`, and a kill hides them.
    pub fn unkept(depth: &'static AtomicU64) -> OpenCalls {
        OpenCalls { depth, cells: &[], at: 0 }
    }
}

/// A new block at a place that was made present: whole before `last` names it.
pub(super) fn create(
    memory: &'static Memory,
    at: usize,
    cells: usize,
    thread: u32,
    last: &AtomicU64,
) -> Option<OpenCalls> {
    // SAFETY: `Block` consists of atomics.
    let block: &Block = unsafe { memory.at(at) }?;
    block.cells.store(cells as u32, Ordering::Relaxed);
    block.before.store(last.load(Ordering::Relaxed), Ordering::Relaxed);
    let calls = again(memory, at as u64, thread);
    last.store(at as u64, Ordering::Release);
    calls
}

/// A block that another thread left.
pub(super) fn again(memory: &'static Memory, at: u64, thread: u32) -> Option<OpenCalls> {
    // SAFETY: `Block` consists of atomics.
    let block: &'static Block = unsafe { memory.at(at as usize) }?;
    let count = block.cells.load(Ordering::Relaxed) as usize;
    // SAFETY: atomics.
    let cells = unsafe { memory.slice(at as usize + size_of::<Block>(), count) }?;
    block.thread.store(thread, Ordering::Relaxed);
    Some(OpenCalls { depth: &block.depth, cells, at })
}

/// A call that was open when its process was killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenCall {
    pub thread: u32,
    pub name: NameId,
    /// In the segment's clock.
    pub start: u64,
}

/// All open calls, each block's outermost first. Only meaningful once the writer is dead.
pub(super) fn read(memory: &Memory, last: u64) -> Vec<OpenCall> {
    let (mut calls, mut at) = (Vec::new(), last);
    // A damaged chain may be a circle.
    for _ in 0..memory.bytes() / size_of::<Block>() {
        // SAFETY: `Block` consists of atomics; `at` checks bounds and alignment.
        let block = usize::try_from(at).ok().filter(|at| *at > 0).and_then(|at| unsafe { memory.at::<Block>(at) });
        let Some(block) = block else { break };
        let count = block.cells.load(Ordering::Relaxed) as usize;
        // SAFETY: atomics.
        let cells = unsafe { memory.slice(at as usize + size_of::<Block>(), count) }.unwrap_or(&[]);
        calls.extend(open(cells, block.depth.load(Ordering::Acquire), block.thread.load(Ordering::Relaxed)));
        if calls.len() > memory.bytes() / 16 {
            break;
        }
        at = block.before.load(Ordering::Relaxed);
    }
    calls
}

pub(super) fn open(cells: &[[AtomicU64; 2]], depth: u64, thread: u32) -> impl Iterator<Item = OpenCall> + '_ {
    let depth = usize::try_from(depth).unwrap_or(usize::MAX).min(cells.len());
    cells[..depth].iter().map(move |cell| {
        let name = NameId(cell[0].load(Ordering::Relaxed) as u32);
        OpenCall { thread, name, start: cell[1].load(Ordering::Relaxed) }
    })
}
