//! What an allocator held over time: bytes handed out and reserved after each event, and the moment at which most was held.

use super::lives::Lives;
use timeline::Memory;
use timeline::memory::{AllocatorIndex, MemoryEventKind, Segment};

#[derive(Clone, PartialEq, Debug, Default)]
pub struct History {
    /// Bytes handed out at most, and the place in [`Memory::events`] of the event that did it. None: before every event.
    pub peak: u64,
    pub peak_at: Option<usize>,
    /// Before the first event, and after the last.
    pub first: u64,
    pub last: u64,
    /// Reserved from the driver: at most, and at the end. None: neither segments nor what is in them was recorded.
    pub reserved_peak: Option<u64>,
    pub reserved_last: Option<u64>,
    pub allocs: u64,
    pub frees: u64,
    /// Places of events in which the allocator asked the driver for memory, gave some back, or failed.
    pub segment_allocs: Vec<usize>,
    pub segment_frees: Vec<usize>,
    pub failed: Vec<usize>,
}

/// None: it has neither events nor a state.
pub fn of(memory: &Memory, allocator: AllocatorIndex, lives: &Lives) -> Option<History> {
    let state = memory.states.iter().rev().find(|state| state.allocator == allocator);
    let first =
        lives.all.iter().filter(|life| life.start.is_none()).map(|life| life.bytes).fold(0, u64::saturating_add);
    let mut history = History { peak: first, first, ..History::default() };
    let mut ends: Vec<(usize, u64)> = lives.all.iter().filter_map(|life| Some((life.end?, life.bytes))).collect();
    ends.sort_unstable();
    // An allocator may tell of both, that a block was given back and that it can be handed out again, or of one of them.
    history.frees = (ends.len() as u64).saturating_sub(lives.missing_frees);
    let mut ends = ends.into_iter().peekable();
    let mut starts = lives.all.iter().filter(|life| life.start.is_some()).peekable();
    let (mut live, mut change, mut most) = (first, 0i128, 0i128);
    let (mut any, mut said, mut most_said) = (state.is_some(), None, None);
    for (at, event) in memory.events.iter().enumerate().filter(|(_, event)| event.allocator == allocator) {
        any = true;
        while let Some((_, bytes)) = ends.next_if(|(end, _)| *end <= at) {
            live = live.saturating_sub(bytes);
        }
        while let Some(life) = starts.next_if(|life| life.start.is_some_and(|start| start <= at)) {
            live = live.saturating_add(life.bytes);
        }
        if live > history.peak {
            (history.peak, history.peak_at) = (live, Some(at));
        }
        match event.kind {
            MemoryEventKind::Alloc => history.allocs += 1,
            MemoryEventKind::SegmentAlloc | MemoryEventKind::SegmentMap => {
                change += i128::from(event.bytes);
                history.segment_allocs.push(at);
            }
            MemoryEventKind::SegmentFree | MemoryEventKind::SegmentUnmap => {
                change -= i128::from(event.bytes);
                history.segment_frees.push(at);
            }
            MemoryEventKind::OutOfMemory => history.failed.push(at),
            MemoryEventKind::FreeRequested | MemoryEventKind::FreeCompleted => {}
        }
        most = most.max(change);
        // What an allocator of a running program said after each of its blocks.
        said = event.reserved.map(i128::from).or(said);
        most_said = most_said.max(said);
    }
    history.last = live;
    let reserved = state.map(|state| i128::from(reserved(&state.segments)));
    let told = reserved.is_none() && said.is_some();
    // Without a state, only what was taken since is known; that is all where nothing was there before.
    let whole = !memory.allocator(allocator).began_late && change >= 0 && !history.segment_allocs.is_empty();
    let known = reserved.or(whole.then_some(change));
    let bytes = |bytes: i128| u64::try_from(bytes.max(0)).unwrap_or(u64::MAX);
    history.reserved_last = known.map(bytes);
    history.reserved_peak = known.filter(|_| !memory.cut).map(|known| bytes(known - change + most));
    // It knows better than what was made of the driver's calls.
    if told {
        (history.reserved_last, history.reserved_peak) = (said.map(bytes), most_said.map(bytes));
    }
    any.then_some(history)
}

pub fn reserved(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| segment.bytes).fold(0, u64::saturating_add)
}
