//! The segments of an allocator that did not say where they are, out of what the driver handed out: what blocks lie in is one. With them the holes
//! between blocks are known, and the allocator can be simulated.

use super::lives;
use std::collections::BTreeMap;
use timeline::gpu::{MemoryOperation, detail};
use timeline::memory::{
    AllocatorIndex, AllocatorState, Block, BlockState, Memory, MemoryEvent, MemoryEventKind, Segment, StackBasis,
};
use timeline::{StackIndex, Timeline};

/// Segments of the pool for small blocks have this size.
const SMALL_SEGMENT: u64 = 2 << 20;

/// Memory that the driver handed out.
struct Taken {
    address: u64,
    bytes: u64,
    from: u64,
    until: Option<u64>,
    /// A block of the allocator was in it.
    is_segment: bool,
}

#[derive(Clone, Copy)]
enum Change<'a> {
    Taken(usize),
    GivenBack(usize),
    Block(&'a MemoryEvent),
}

impl Change<'_> {
    /// Of one moment: a block lies in what was taken before it, and is gone before that is given back.
    fn rank(self) -> u8 {
        match self {
            Change::Taken(_) => 0,
            Change::Block(_) => 1,
            Change::GivenBack(_) => 2,
        }
    }
}

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
    let end = timeline.memory.events.get(event).map_or(timeline.end, |event| event.time);
    let mut taken = taken(timeline, allocator, end);
    let own = timeline.memory.events[..event].iter().filter(|event| event.allocator == allocator);
    let mut changes: Vec<(u64, Change)> = own.map(|event| (event.time, Change::Block(event))).collect();
    for (at, one) in taken.iter().enumerate() {
        changes.push((one.from, Change::Taken(at)));
        changes.extend(one.until.map(|until| (until, Change::GivenBack(at))));
    }
    changes.sort_by_key(|(time, change)| (*time, change.rank()));
    let blocks = lay(&mut taken, &changes).ok_or(SegmentsUnknown::BlocksOutside)?;
    let alone = AllocatorIndex(0);
    let segment = |time, kind, of: &Taken| MemoryEvent {
        time,
        allocator: alone,
        kind,
        address: of.address,
        bytes: of.bytes,
        stream: 0,
        track: None,
        stack: StackIndex(0),
        stack_basis: StackBasis::Own,
        allocated: None,
        reserved: None,
    };
    let event = |(time, change): &(u64, Change)| match *change {
        Change::Block(event) => Some(MemoryEvent { allocator: alone, ..*event }),
        Change::Taken(at) => taken[at].is_segment.then(|| segment(*time, MemoryEventKind::SegmentAlloc, &taken[at])),
        Change::GivenBack(at) => taken[at].is_segment.then(|| segment(*time, MemoryEventKind::SegmentFree, &taken[at])),
    };
    let segments = taken.iter().filter(|one| one.is_segment && one.until.is_none()).map(|one| filled(one, &blocks));
    let mut segments: Vec<Segment> = segments.collect();
    segments.sort_by_key(|segment| segment.address);
    Ok(Memory {
        allocators: vec![about.clone()],
        events: changes.iter().filter_map(event).collect(),
        states: vec![AllocatorState { time: end, allocator: alone, segments }],
        ..Memory::default()
    })
}

/// What the driver handed out of this device, to this process, until then. Pools of the driver have no segments of the allocator.
fn taken(timeline: &Timeline, allocator: AllocatorIndex, end: u64) -> Vec<Taken> {
    let about = timeline.memory.allocator(allocator);
    let calls = timeline.gpu.allocations.iter().filter(|call| call.process == about.process && call.time <= end);
    let (mut taken, mut live) = (Vec::new(), BTreeMap::new());
    for call in calls {
        match call.operation {
            MemoryOperation::Alloc
                if Some(call.device) == about.device && !call.pool && call.memory == detail::DEVICE =>
            {
                live.insert(call.address, taken.len());
                let (address, bytes, from) = (call.address, call.bytes, call.time);
                taken.push(Taken { address, bytes, from, until: None, is_segment: false });
            }
            MemoryOperation::Free => {
                if let Some(at) = live.remove(&call.address) {
                    taken[at].until = Some(call.time);
                }
            }
            _ => {}
        }
    }
    taken
}

/// Notes which of what was taken are segments, and gives the blocks that are alive in the end: size and stack by address. None: a block lies in nothing.
fn lay(taken: &mut [Taken], changes: &[(u64, Change)]) -> Option<BTreeMap<u64, (u64, StackIndex)>> {
    let (mut live, mut blocks) = (BTreeMap::new(), BTreeMap::new());
    for (_, change) in changes {
        match *change {
            Change::Taken(at) => drop(live.insert(taken[at].address, at)),
            Change::GivenBack(at) => drop(live.remove(&taken[at].address)),
            Change::Block(event) => match event.kind {
                MemoryEventKind::Alloc => {
                    let around = live.range(..=event.address).next_back().map(|(_, at)| &mut taken[*at]);
                    let inside = around.filter(|one| event.address - one.address < one.bytes)?;
                    inside.is_segment = true;
                    blocks.insert(event.address, (lives::round(event.bytes), event.stack));
                }
                MemoryEventKind::FreeCompleted => drop(blocks.remove(&event.address)),
                _ => {}
            },
        }
    }
    Some(blocks)
}

/// A segment with its blocks, and holes between them.
fn filled(one: &Taken, blocks: &BTreeMap<u64, (u64, StackIndex)>) -> Segment {
    let end = one.address.saturating_add(one.bytes);
    let (mut parts, mut next) = (Vec::new(), one.address);
    let block = |address, bytes, state, stack| Block { address, bytes, requested: None, state, stack };
    for (address, (bytes, stack)) in blocks.range(one.address..end) {
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
        address: one.address,
        bytes: one.bytes,
        stream: 0,
        pool: 0,
        large: one.bytes > SMALL_SEGMENT,
        expandable: false,
        stack: StackIndex(0),
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
