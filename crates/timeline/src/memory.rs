//! What a framework's allocator did: blocks that it handed out and took back, and the segments of device memory that they lie in. Events come
//! from the allocator itself or from a snapshot of it; what the driver was asked for directly is in [`crate::gpu::Gpu::allocations`].

use crate::{ProcessIndex, StackIndex, TrackIndex};
use std::collections::BTreeMap;
use std::sync::Arc;
pub use trace::codes::{StackMissing, StackReason};

/// Index into [`Memory::allocators`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AllocatorIndex(pub u32);

#[derive(Debug, Default)]
pub struct Memory {
    pub allocators: Vec<Allocator>,
    /// Sorted by time; events of one moment in the order in which they happened.
    pub events: Vec<MemoryEvent>,
    /// What the framework itself said of its allocator at some moments, sorted by time.
    pub states: Vec<AllocatorState>,
    /// Events have an order, but no times: their times only count them.
    pub ordered_only: bool,
    /// What kept the largest tensors when their program ended, where that was asked for.
    pub retainers: Vec<Retainer>,
    /// Events from after the last one are missing: states are of later, and do not follow from the events.
    pub cut: bool,
}

/// The allocator of one device in one process.
#[derive(Clone, PartialEq, Debug)]
pub struct Allocator {
    pub process: ProcessIndex,
    /// The process's own ordinal. None: host memory.
    pub device: Option<u32>,
    /// "torch.cuda", "torch.cpu", "jax", "tensorflow".
    pub backend: Arc<str>,
    /// Its settings, as the framework names them: `expandable_segments`, `max_split_size_mb`.
    pub settings: BTreeMap<String, String>,
    /// Events from before the first one are missing: what is alive at the start is known from a state only, or not at all.
    pub began_late: bool,
    /// Bytes between two stacks of small blocks, on average: a block of `b` bytes has a stack with a probability of 1 - exp(-b / this), and one
    /// that has stands for its bytes divided by that. None: stacks were not sampled.
    pub sampled_bytes: Option<u64>,
}

/// Tensors that one thing of the program keeps alive.
#[derive(Clone, PartialEq, Debug)]
pub struct Retainer {
    pub process: ProcessIndex,
    /// "list in closure variable kept of handle (serve.py:31)".
    pub kept_by: Arc<str>,
    /// Of the function that keeps them, where one does.
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    /// "cuda:0", "cpu".
    pub device: Arc<str>,
    pub tensors: u64,
    pub bytes: u64,
    /// Where the storages of some of them begin.
    pub addresses: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MemoryEvent {
    pub time: u64,
    pub allocator: AllocatorIndex,
    pub kind: MemoryEventKind,
    pub address: u64,
    pub bytes: u64,
    /// The stream that it belongs to; 0: the default one, or not known.
    pub stream: u64,
    /// The thread that asked. None: not recorded.
    pub track: Option<TrackIndex>,
    /// `StackIndex(0)`: not recorded, as for most small blocks.
    pub stack: StackIndex,
    pub stack_basis: StackBasis,
    /// What the allocator says that it has handed out and reserved, after this event. None: it does not say.
    pub allocated: Option<u64>,
    pub reserved: Option<u64>,
}

/// What the stack of a block stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StackBasis {
    /// For this block: the recording has a stack for each, or for none.
    #[default]
    Own,
    /// For nothing: the sampling of bytes passed this block over. Others stand for it.
    PassedOver,
    /// For this block and those of its kind that were passed over, see [`Allocator::sampled_bytes`].
    Sampled,
    /// For this block, and it was asked for whatever the sampling said: it is large, the allocator grew for it, or it failed.
    Always,
    /// It was asked for, for this reason, and is missing: this is why.
    Missing(StackReason, StackMissing),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MemoryEventKind {
    /// A block was handed out.
    Alloc,
    /// The program gave a block back; another stream may still use it.
    FreeRequested,
    /// The block can be handed out again.
    FreeCompleted,
    /// The allocator took a segment from the driver, or gave one back.
    SegmentAlloc,
    SegmentFree,
    /// It mapped memory into an expandable segment, or unmapped it.
    SegmentMap,
    SegmentUnmap,
    /// A request of so many bytes failed; `address` is what the device had free, 0: it is not known.
    OutOfMemory,
}

/// The segments of an allocator at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct AllocatorState {
    pub time: u64,
    pub allocator: AllocatorIndex,
    /// By address.
    pub segments: Vec<Segment>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Segment {
    pub address: u64,
    pub bytes: u64,
    pub stream: u64,
    /// 0: the pool of everybody; else one of its own, of a CUDA graph.
    pub pool: u64,
    /// Of the pool for blocks of more than a megabyte.
    pub large: bool,
    pub expandable: bool,
    pub stack: StackIndex,
    /// By address, without gaps.
    pub blocks: Vec<Block>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Block {
    pub address: u64,
    pub bytes: u64,
    /// What was asked for, before rounding. None: not known.
    pub requested: Option<u64>,
    pub state: BlockState,
    pub stack: StackIndex,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockState {
    Active,
    /// Given back, but another stream may still use it.
    AwaitingFree,
    Inactive,
}

impl Memory {
    pub fn is_empty(&self) -> bool {
        self.events.is_empty() && self.states.is_empty()
    }

    pub fn allocator(&self, index: AllocatorIndex) -> &Allocator {
        &self.allocators[index.0 as usize]
    }
}
