//! How much memory the driver has handed out at every moment, per process and place, out of the calls that were recorded: allocations
//! live until they are freed, handles until they are released and unmapped. What does not fit together is counted, never guessed.

mod live;
#[cfg(test)]
mod tests;

use crate::ProcessIndex;
use crate::gpu::Allocation;
use live::Live;
use std::collections::HashSet;

/// Where memory lies.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum MemoryPlace {
    /// By the process's own ordinal.
    Device(u32),
    /// Pinned memory of the host.
    Pinned,
    /// Unified memory, which moves between host and devices.
    Managed,
}

/// All places, in order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DriverMemory {
    pub places: Vec<PlaceMemory>,
    /// One for each allocation or handle, in the order of the calls that took them.
    pub lives: Vec<DriverLife>,
    pub unmatched: Unmatched,
}

/// How memory was taken of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TakenAs {
    Direct,
    /// Out of a pool (`cudaMallocAsync`).
    Pooled,
    /// Created elsewhere, where it counts.
    Imported,
    /// By a framework's allocator, where that is told from the rest.
    Framework,
}

/// From the call that took memory to the one that gave it back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DriverLife {
    /// The call, by its place in the list.
    pub call: usize,
    pub process: ProcessIndex,
    pub place: MemoryPlace,
    pub taken_as: TakenAs,
    pub bytes: u64,
    pub start: u64,
    /// None: alive when the recording ended.
    pub end: Option<u64>,
}

/// One place as one process uses it.
#[derive(Clone, PartialEq, Debug)]
pub struct PlaceMemory {
    pub process: ProcessIndex,
    pub place: MemoryPlace,
    /// One for each moment at which something changed, in the order of time.
    pub points: Vec<LiveBytes>,
    pub failed: Vec<FailedAllocation>,
}

/// What is alive from `time` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LiveBytes {
    pub time: u64,
    /// Allocations and created handles.
    pub direct: u64,
    /// Blocks out of pools (`cudaMallocAsync`). What a pool keeps beyond them is not recorded.
    pub pooled: u64,
    /// Handles that were imported: memory that was created elsewhere, and counts there.
    pub imported: u64,
    /// What a framework's allocator took, where it is told from the rest ([`driver_memory_beside`]): not in `direct` and `pooled` then.
    pub framework: u64,
}

/// An allocation that CUDA refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedAllocation {
    pub time: u64,
    pub bytes: u64,
    /// CUDA's code; 2: out of memory. 0: not known.
    pub error: u32,
}

/// Calls that do not fit what was recorded before them: it began late, or something was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unmatched {
    /// Of memory that was never seen allocated.
    pub frees: u64,
    pub releases: u64,
    pub unmaps: u64,
    pub retains: u64,
    /// Of a handle that is not alive: the memory counts until it is unmapped.
    pub maps: u64,
    /// Ranges that end inside a mapping: all of it is taken as unmapped.
    pub partial_unmaps: u64,
    /// Addresses and handles that came again and were never seen given back.
    pub replaced: u64,
}

impl Unmatched {
    pub fn total(&self) -> u64 {
        let Unmatched { frees, releases, unmaps, retains, maps, partial_unmaps, replaced } = *self;
        frees + releases + unmaps + retains + maps + partial_unmaps + replaced
    }
}

impl LiveBytes {
    /// What this process has taken of the place.
    pub fn own(&self) -> u64 {
        self.direct.saturating_add(self.pooled).saturating_add(self.framework)
    }
}

impl PlaceMemory {
    /// What is alive at a moment. Nothing before the first point.
    pub fn at(&self, time: u64) -> LiveBytes {
        let after = self.points.partition_point(|point| point.time <= time);
        after.checked_sub(1).map_or(LiveBytes { time, ..LiveBytes::default() }, |at| self.points[at])
    }

    /// The first moment at which the process had most.
    pub fn peak(&self) -> Option<LiveBytes> {
        self.points.iter().copied().reduce(|most, point| if point.own() > most.own() { point } else { most })
    }
}

/// What was alive when, out of calls that are sorted by time.
pub fn driver_memory(allocations: &[Allocation]) -> DriverMemory {
    walk(allocations, Live::new(None))
}

/// The same, with the calls at these places counted as those of a framework's allocator.
pub fn driver_memory_beside(allocations: &[Allocation], framework: &HashSet<usize>) -> DriverMemory {
    walk(allocations, Live::new(Some(framework)))
}

fn walk(allocations: &[Allocation], mut live: Live) -> DriverMemory {
    for at in 0..allocations.len() {
        live.take(allocations, at);
    }
    live.finish()
}
