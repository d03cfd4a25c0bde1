//! The segments of an allocator at a moment of which it did not say where they are, out of its events: with them the holes between blocks are
//! known, and the allocator can be simulated.

use super::lives;
use std::collections::BTreeMap;
use timeline::memory::{
    AllocatorIndex, AllocatorState, Block, BlockState, Memory, MemoryEvent, MemoryEventKind, Segment,
};
use timeline::{StackIndex, Timeline};

/// Segments of the pool for small blocks have this size.
const SMALL_SEGMENT: u64 = 2 << 20;

/// Why the segments of an allocator are not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentsUnknown {
    /// The recording began after the allocator's first block.
    BeganLate,
    /// Blocks lie outside of what the driver was seen to hand out.
    BlocksOutside,
}

/// The allocator alone, with its segments, up to the event at this place of [`Memory::events`] and without it. Err: why they are not known.
pub fn until(timeline: &Timeline, allocator: AllocatorIndex, event: usize) -> Result<Memory, SegmentsUnknown> {
    let about = timeline.memory.allocator(allocator);
    if about.began_late {
        return Err(SegmentsUnknown::BeganLate);
    }
    let alone = AllocatorIndex(0);
    let own = timeline.memory.events[..event].iter().filter(|event| event.allocator == allocator);
    let events: Vec<MemoryEvent> = own.map(|event| MemoryEvent { allocator: alone, ..*event }).collect();
    let (mut taken, mut blocks) = (BTreeMap::new(), BTreeMap::new());
    for event in &events {
        match event.kind {
            MemoryEventKind::SegmentAlloc => drop(taken.insert(event.address, (event.bytes, event.stack))),
            MemoryEventKind::SegmentFree => drop(taken.remove(&event.address)),
            MemoryEventKind::Alloc => drop(blocks.insert(event.address, (lives::round(event.bytes), event.stack))),
            MemoryEventKind::FreeCompleted => drop(blocks.remove(&event.address)),
            _ => {}
        }
    }
    if taken.is_empty() {
        return Err(SegmentsUnknown::BlocksOutside);
    }
    let segments = taken.iter().map(|(address, (bytes, stack))| filled(*address, *bytes, *stack, &blocks)).collect();
    let time = timeline.memory.events.get(event).map_or(timeline.end, |event| event.time);
    Ok(Memory {
        allocators: vec![about.clone()],
        events,
        states: vec![AllocatorState { time, allocator: alone, segments }],
        ..Memory::default()
    })
}

/// A segment with its blocks, and holes between them.
fn filled(address: u64, bytes: u64, stack: StackIndex, blocks: &BTreeMap<u64, (u64, StackIndex)>) -> Segment {
    let end = address.saturating_add(bytes);
    let (mut parts, mut next) = (Vec::new(), address);
    let block = |address, bytes, state, stack| Block { address, bytes, requested: None, state, stack };
    for (address, (bytes, stack)) in blocks.range(address..end) {
        // Blocks do not overlap; those of a damaged recording may.
        let (start, until) = ((*address).max(next), address.saturating_add(*bytes).min(end));
        if until <= start {
            continue;
        }
        if start > next {
            parts.push(block(next, start - next, BlockState::Inactive, StackIndex(0)));
        }
        parts.push(block(start, until - start, BlockState::Active, *stack));
        next = until;
    }
    if end > next {
        parts.push(block(next, end - next, BlockState::Inactive, StackIndex(0)));
    }
    Segment {
        address,
        bytes,
        stream: 0,
        pool: 0,
        large: bytes > SMALL_SEGMENT,
        expandable: false,
        stack,
        blocks: parts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment with a hole between two blocks, memory of a library, and a segment that was given back.
    const TWO: &str = "device 0 GPU\n track main\n alloc 1us 20971520 at 1048576\n block alloc 2us 4M at 1M\n block alloc 3us 8M at 5M\n
        block alloc 4us 2M at 13M\n alloc 5us 8388608 at 1073741824\n alloc 6us 12582912 at 104857600\n block alloc 7us 12M at 100M\n
        block free 8us 12M at 100M\n free 9us 0 at 104857600\n block free 10us 8M at 5M\n oom 11us 60M free 0";

    #[test]
    fn what_blocks_lie_in_are_segments_and_the_rest_of_them_is_holes() {
        let timeline = Timeline::from_text(TWO).unwrap();
        let failed =
            timeline.memory.events.iter().position(|event| event.kind == MemoryEventKind::OutOfMemory).unwrap();
        let memory = until(&timeline, AllocatorIndex(0), failed).unwrap();
        let segments = &memory.states[0].segments;
        assert_eq!(segments.iter().map(|one| (one.address, one.bytes)).collect::<Vec<_>>(), [(1 << 20, 20 << 20)]);
        let parts: Vec<(u64, bool)> =
            segments[0].blocks.iter().map(|one| (one.bytes >> 20, one.state == BlockState::Active)).collect();
        assert_eq!(parts, [(4, true), (8, false), (2, true), (6, false)]);
        let count = |kind| memory.events.iter().filter(|event| event.kind == kind).count();
        assert_eq!((count(MemoryEventKind::SegmentAlloc), count(MemoryEventKind::SegmentFree)), (2, 1));
        assert_eq!(count(MemoryEventKind::OutOfMemory), 0);
    }

    #[test]
    fn a_block_outside_of_everything_is_no_answer() {
        let text =
            "device 0 GPU\n track main\n alloc 1us 2097152 at 1048576\n block alloc 2us 1M at 100M\n oom 3us 9M free 0";
        let timeline = Timeline::from_text(text).unwrap();
        assert_eq!(until(&timeline, AllocatorIndex(0), 1).unwrap_err(), SegmentsUnknown::BlocksOutside);
    }
}
