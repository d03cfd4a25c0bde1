//! What would PyTorch's allocator have reserved under other settings: the recorded blocks handed out and given back again by its rules. Unchanged
//! settings must give the recorded peak; where they do not, there is no answer.

mod heap;
mod settings;

use analysis::memory::history;
use analysis::memory::lives::{self, Lives};
use heap::{Heap, Pool};
pub use settings::Settings;
use std::collections::HashMap;
use timeline::Memory;
use timeline::memory::{AllocatorIndex, MemoryEventKind, Segment};

/// A replay of unchanged settings that misses the recorded peak by more explains nothing.
pub const MOST_OFF: f64 = 0.01;

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Outcome {
    /// Reserved from the driver: at most, and at the end.
    pub peak: u64,
    pub last: u64,
    pub segment_allocs: u64,
    /// At the end: the largest free block, and all free memory.
    pub largest_free: u64,
    pub free: u64,
    /// Blocks handed out, and those of them that lie where they were recorded.
    pub blocks: u64,
    pub same_place: u64,
}

/// What other settings would have reserved.
#[derive(Clone, Debug)]
pub struct WhatIf {
    pub recorded: Settings,
    pub unchanged: Outcome,
    /// None: segments are expandable already.
    pub expandable: Option<Outcome>,
    pub emptied: Outcome,
}

/// Why an allocator is not simulated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum NotSimulated {
    /// Only PyTorch's allocator of CUDA memory is.
    OtherAllocator,
    NoEvents,
    /// The file was cut.
    EventsMissing,
    /// What the allocator had reserved was not recorded.
    NoReserved,
    /// The replay misses the recorded peak by this part of it.
    Missed(f64),
}

pub fn what_if(memory: &Memory, allocator: AllocatorIndex) -> Result<WhatIf, NotSimulated> {
    let simulator = Simulator::new(memory, allocator)?;
    let own = simulator.recorded.clone();
    let expandable = (!own.expandable).then(|| simulator.run(&Settings { expandable: true, ..own.clone() }));
    let emptied = simulator.run(&Settings { empty_before_growing: true, ..own.clone() });
    Ok(WhatIf { recorded: own, unchanged: simulator.unchanged, expandable, emptied })
}

/// A recording that replays as it was recorded.
pub struct Simulator<'a> {
    memory: &'a Memory,
    allocator: AllocatorIndex,
    lives: Lives,
    /// Before the first event.
    segments: Vec<Segment>,
    pub recorded: Settings,
    pub unchanged: Outcome,
    pub recorded_peak: u64,
}

impl<'a> Simulator<'a> {
    pub fn new(memory: &'a Memory, allocator: AllocatorIndex) -> Result<Simulator<'a>, NotSimulated> {
        let about = memory.allocator(allocator);
        if !about.backend.starts_with("torch.cuda") || about.device.is_none() {
            return Err(NotSimulated::OtherAllocator);
        }
        if !memory.events.iter().any(|event| event.allocator == allocator && event.kind == MemoryEventKind::Alloc) {
            return Err(NotSimulated::NoEvents);
        }
        if memory.cut {
            return Err(NotSimulated::EventsMissing);
        }
        let lives = lives::of(memory, allocator);
        let recorded_peak = history::of(memory, allocator, &lives).and_then(|history| history.reserved_peak);
        let recorded_peak = recorded_peak.ok_or(NotSimulated::NoReserved)?;
        let recorded = Settings::recorded(&about.settings);
        let segments = before(memory, allocator);
        let mut simulator =
            Simulator { memory, allocator, lives, segments, unchanged: Outcome::default(), recorded, recorded_peak };
        simulator.unchanged = simulator.run(&simulator.recorded.clone());
        match simulator.off() <= MOST_OFF {
            true => Ok(simulator),
            false => Err(NotSimulated::Missed(simulator.off())),
        }
    }

    /// By how much the unchanged replay misses the recorded peak, as a part of it.
    pub fn off(&self) -> f64 {
        self.unchanged.peak.abs_diff(self.recorded_peak) as f64 / self.recorded_peak.max(1) as f64
    }

    /// Whether one more request after all that was recorded would have been served within so much memory reserved from the driver. Where it does not fit a hole,
    /// segments that are wholly free are given back first, as PyTorch does before it gives up.
    pub fn serves(&self, settings: &Settings, bytes: u64, capacity: u64) -> bool {
        let (mut heap, _) = self.played(settings);
        if heap.peak > capacity {
            return false;
        }
        let before = heap.reserved;
        if heap.alloc(bytes, 0, 0).is_none() {
            return false;
        }
        if heap.reserved == before {
            return true;
        }
        let (mut emptied, _) = self.played(settings);
        emptied.empty();
        emptied.alloc(bytes, 0, 0).is_some() && emptied.reserved <= capacity
    }

    /// What would have happened. Blocks from before the recording lie where they were, or one behind the other where segments are expandable now.
    pub fn run(&self, settings: &Settings) -> Outcome {
        let (heap, (blocks, same_place)) = self.played(settings);
        let (largest_free, free) = heap.holes();
        let (peak, last, segment_allocs) = (heap.peak, heap.reserved, heap.segment_allocs);
        Outcome { peak, last, segment_allocs, largest_free, free, blocks, same_place }
    }

    /// The heap after the last event; how many blocks were handed out, and how many of them lie where they were recorded.
    fn played(&self, settings: &Settings) -> (Heap, (u64, u64)) {
        let mut heap = Heap::new(settings.clone());
        // By recorded address: where it is now.
        let mut placed: HashMap<u64, u64> = HashMap::new();
        let mut early: Vec<(u64, u64)> = Vec::new();
        early.extend(self.lives.all.iter().filter(|life| life.start.is_none()).map(|life| (life.address, life.bytes)));
        early.sort_unstable();
        early.dedup_by_key(|block| block.0);
        let pools = Pools::of(self.memory, self.allocator, &self.segments);
        if settings.expandable {
            for (address, bytes) in &early {
                let pool = pools.at(*address);
                placed.extend(heap.alloc(*bytes, pool.own, pool.stream).map(|place| (*address, place)));
            }
        } else {
            for segment in &self.segments {
                let end = segment.address.saturating_add(segment.bytes);
                let from = early.partition_point(|block| block.0 < segment.address);
                let to = early.partition_point(|block| block.0 < end);
                let pool = Pool { own: segment.pool, stream: segment.stream, large: segment.large };
                heap.place(segment.address, segment.bytes, pool, &early[from..to]);
                placed.extend(early[from..to].iter().map(|block| (block.0, block.0)));
            }
        }
        heap.segment_allocs = 0;
        let counts = self.play(&mut heap, &mut placed, &pools);
        (heap, counts)
    }

    /// Says how many blocks were handed out, and how many of them lie where they were recorded.
    fn play(&self, heap: &mut Heap, placed: &mut HashMap<u64, u64>, pools: &Pools) -> (u64, u64) {
        let (mut blocks, mut same) = (0, 0);
        let own = || self.memory.events.iter().filter(|event| event.allocator == self.allocator);
        // A block can be handed out again when its free is complete, where that is recorded.
        let completes = own().any(|event| event.kind == MemoryEventKind::FreeCompleted);
        let freed = if completes { MemoryEventKind::FreeCompleted } else { MemoryEventKind::FreeRequested };
        for event in own() {
            match event.kind {
                MemoryEventKind::Alloc => {
                    if let Some(before) = placed.remove(&event.address) {
                        heap.free(before);
                    }
                    let place = heap.alloc(event.bytes, pools.at(event.address).own, event.stream);
                    blocks += 1;
                    same += u64::from(place == Some(event.address));
                    placed.extend(place.map(|place| (event.address, place)));
                }
                kind if kind == freed => {
                    placed.remove(&event.address).into_iter().for_each(|place| heap.free(place));
                }
                // Given back to the driver because it was asked to (`empty_cache`) or had to: all that can be goes.
                MemoryEventKind::SegmentFree | MemoryEventKind::SegmentUnmap => heap.empty(),
                MemoryEventKind::SegmentAlloc => heap.offered = Some((event.address, event.bytes)),
                _ => {}
            }
        }
        (blocks, same)
    }
}

#[cfg(test)]
mod tests;

/// The segments before the first event: those of the last state, without those that were taken since, and with those that were given back.
fn before(memory: &Memory, allocator: AllocatorIndex) -> Vec<Segment> {
    let state = memory.states.iter().rev().find(|state| state.allocator == allocator);
    let mut segments = state.map(|state| state.segments.clone()).unwrap_or_default();
    let own = memory.events.iter().rev().filter(|event| event.allocator == allocator);
    for event in own {
        match event.kind {
            MemoryEventKind::SegmentAlloc => segments.retain(|segment| segment.address != event.address),
            MemoryEventKind::SegmentFree => segments.push(Segment {
                address: event.address,
                bytes: event.bytes,
                stream: event.stream,
                pool: 0,
                large: event.bytes > settings::SMALL_SEGMENT,
                expandable: false,
                stack: event.stack,
                blocks: Vec::new(),
            }),
            _ => {}
        }
    }
    segments.sort_by_key(|segment| segment.address);
    segments
}

/// Which pool an address is of: that of the segment around it.
struct Pools(Vec<(u64, u64, Pool)>);

impl Pools {
    fn of(memory: &Memory, allocator: AllocatorIndex, before: &[Segment]) -> Pools {
        let states = memory.states.iter().filter(|state| state.allocator == allocator);
        let all = states.flat_map(|state| &state.segments).chain(before);
        let range = |segment: &Segment| {
            let pool = Pool { own: segment.pool, stream: segment.stream, large: segment.large };
            (segment.address, segment.address.saturating_add(segment.bytes), pool)
        };
        let mut ranges: Vec<_> = all.map(range).collect();
        ranges.sort_unstable_by_key(|range| range.0);
        ranges.dedup_by_key(|range| range.0);
        Pools(ranges)
    }

    fn at(&self, address: u64) -> Pool {
        let range = self.0.partition_point(|range| range.0 <= address).checked_sub(1).map(|at| self.0[at]);
        let inside = range.filter(|range| address < range.1).map(|range| range.2);
        inside.unwrap_or(Pool { own: 0, stream: 0, large: true })
    }
}
