//! The segments of an allocator that tells of its blocks only: what the driver handed out and blocks lie in is one. They become events among
//! those of the blocks, where they agree with what the allocator said that it had reserved.

use crate::gpu::{Allocation, MemoryOperation, detail};
use crate::memory::{Allocator, AllocatorIndex, Memory, MemoryEvent, MemoryEventKind, StackBasis};
use std::collections::BTreeMap;

/// The part of the blocks after which the allocator may have said otherwise: threads write what happened in one moment in any order.
const MOST_OFF: f64 = 0.01;
/// PyTorch takes no smaller segments.
const LEAST_SEGMENT: u64 = 2 << 20;

/// Memory that the driver handed out.
struct Taken<'a> {
    call: &'a Allocation,
    until: Option<u64>,
    /// The first block of the allocator that was in it: for that one it was taken.
    first: Option<&'a MemoryEvent>,
}

#[derive(Clone, Copy)]
enum Change<'a> {
    Taken(usize),
    GivenBack(usize),
    Block(&'a MemoryEvent),
}

/// Adds them to the events, of which each moment's stay in their order. Calls of the driver are sorted by time.
pub(crate) fn add(memory: &mut Memory, calls: &[Allocation]) {
    let all = (0u32..).map(AllocatorIndex).zip(&memory.allocators);
    let found: Vec<MemoryEvent> = all.flat_map(|(index, about)| of(memory, index, about, calls)).collect();
    if !found.is_empty() {
        memory.events.extend(found);
        memory.events.sort_by_key(|event| (event.time, rank(event.kind)));
    }
}

/// Of one moment: a block lies in what was taken before it, and is gone before that is given back.
fn rank(kind: MemoryEventKind) -> u8 {
    match kind {
        MemoryEventKind::SegmentAlloc => 0,
        MemoryEventKind::SegmentFree => 2,
        _ => 1,
    }
}

fn is_block(kind: MemoryEventKind) -> bool {
    use MemoryEventKind::{Alloc, FreeCompleted, FreeRequested, OutOfMemory};
    matches!(kind, Alloc | FreeRequested | FreeCompleted | OutOfMemory)
}

/// Nothing where blocks lie outside of what the driver was seen to hand out, as those of expandable segments do.
fn of(memory: &Memory, index: AllocatorIndex, about: &Allocator, calls: &[Allocation]) -> Vec<MemoryEvent> {
    if about.device.is_none() || about.began_late || memory.cut {
        return Vec::new();
    }
    let mut taken = taken(about, calls);
    if taken.is_empty() {
        return Vec::new();
    }
    let own = || memory.events.iter().filter(|event| event.allocator == index);
    let known = own().any(|event| !is_block(event.kind));
    let state = memory.states.iter().any(|state| state.allocator == index);
    if known || state {
        return Vec::new();
    }
    let mut changes: Vec<(u64, u8, Change)> = own().map(|event| (event.time, 1, Change::Block(event))).collect();
    for (at, one) in taken.iter().enumerate() {
        changes.push((one.call.time, 0, Change::Taken(at)));
        changes.extend(one.until.map(|until| (until, 2, Change::GivenBack(at))));
    }
    changes.sort_by_key(|(time, rank, _)| (*time, *rank));
    if lay(&mut taken, &changes).is_none() || disagrees(&taken, &changes) {
        return Vec::new();
    }
    let event = |time, kind, one: &Taken, first: &MemoryEvent| MemoryEvent {
        time,
        allocator: index,
        kind,
        address: one.call.address,
        bytes: one.call.bytes,
        stream: 0,
        track: first.track,
        stack: first.stack,
        stack_basis: StackBasis::Own,
        allocated: None,
        reserved: None,
    };
    let mut events = Vec::new();
    for one in &taken {
        let Some(first) = one.first else { continue };
        events.push(event(one.call.time, MemoryEventKind::SegmentAlloc, one, first));
        events.extend(one.until.map(|until| event(until, MemoryEventKind::SegmentFree, one, first)));
    }
    events
}

/// What the driver handed out of this device, to this process. Pools of the driver have no segments of the allocator.
fn taken<'a>(about: &Allocator, calls: &'a [Allocation]) -> Vec<Taken<'a>> {
    let (mut taken, mut live): (Vec<Taken>, _) = (Vec::new(), BTreeMap::new());
    for call in calls.iter().filter(|call| call.process == about.process) {
        match call.operation {
            MemoryOperation::Alloc
                if Some(call.device) == about.device && !call.pool && call.memory == detail::DEVICE =>
            {
                live.insert(call.address, taken.len());
                taken.push(Taken { call, until: None, first: None });
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

/// Notes which of what was taken are segments. None: a block lies in nothing.
fn lay<'a>(taken: &mut [Taken<'a>], changes: &[(u64, u8, Change<'a>)]) -> Option<()> {
    let mut live = BTreeMap::new();
    for (_, _, change) in changes {
        match *change {
            Change::Taken(at) => drop(live.insert(taken[at].call.address, at)),
            Change::GivenBack(at) => drop(live.remove(&taken[at].call.address)),
            Change::Block(event) if event.kind == MemoryEventKind::Alloc => {
                let around = live.range(..=event.address).next_back().map(|(_, at)| &mut taken[*at]);
                let inside = around.filter(|one| event.address - one.call.address < one.call.bytes)?;
                inside.first = inside.first.or(Some(event));
            }
            Change::Block(_) => {}
        }
    }
    Some(())
}

/// Whether the allocator said otherwise of what it had reserved, after too many of its blocks.
fn disagrees(taken: &[Taken], changes: &[(u64, u8, Change)]) -> bool {
    let (mut reserved, mut said, mut off) = (0u64, 0u64, 0u64);
    for (_, _, change) in changes {
        match *change {
            Change::Taken(at) if taken[at].first.is_some() => reserved = reserved.saturating_add(taken[at].call.bytes),
            Change::GivenBack(at) if taken[at].first.is_some() => {
                reserved = reserved.saturating_sub(taken[at].call.bytes)
            }
            Change::Block(event) if event.kind == MemoryEventKind::Alloc => {
                said += u64::from(event.reserved.is_some());
                off += u64::from(event.reserved.is_some_and(|bytes| bytes.abs_diff(reserved) >= LEAST_SEGMENT));
            }
            _ => {}
        }
    }
    off as f64 > MOST_OFF * said as f64
}

#[cfg(test)]
mod tests {
    use crate::Timeline;
    use crate::memory::MemoryEventKind::{Alloc, SegmentAlloc, SegmentFree};

    const TEXT: &str = "device 0 GPU\n track main\n alloc 1us 20971520 at 1048576\n block alloc 1us 4M at 1M main>load@a.py:3\n
        alloc 5us 8388608 at 1073741824\n alloc 6us 12582912 at 104857600\n block alloc 7us 12M at 100M\n block free 8us 12M at 100M\n
        free 8us 0 at 104857600";

    fn segments(timeline: &Timeline) -> Vec<(u64, u64)> {
        let events = timeline.memory.events.iter().filter(|event| event.kind == SegmentAlloc);
        events.map(|event| (event.address >> 20, event.bytes >> 20)).collect()
    }

    #[test]
    fn what_blocks_lie_in_is_taken_before_them_and_given_back_after() {
        let timeline = Timeline::from_text(TEXT).unwrap();
        assert_eq!(segments(&timeline), [(1, 20), (100, 12)], "memory of a library is none");
        let events = &timeline.memory.events;
        assert_eq!((events[0].kind, events[1].kind, events[0].stack), (SegmentAlloc, Alloc, events[1].stack));
        assert_eq!(events.last().unwrap().kind, SegmentFree);
    }

    #[test]
    fn where_the_allocator_or_its_blocks_say_otherwise_there_are_none() {
        let outside = format!("{TEXT}\n block alloc 9us 1M at 500M");
        assert!(segments(&Timeline::from_text(&outside).unwrap()).is_empty());
        let told = format!("{TEXT}\n segment alloc 9us 20M at 500M");
        assert_eq!(segments(&Timeline::from_text(&told).unwrap()), [(500, 20)]);
        let mut timeline = Timeline::from_text(TEXT).unwrap();
        timeline.memory.events.retain(|event| !matches!(event.kind, SegmentAlloc | SegmentFree));
        timeline.memory.events[0].reserved = Some(90 << 20);
        super::add(&mut timeline.memory, &timeline.gpu.allocations);
        assert!(segments(&timeline).is_empty());
    }
}
