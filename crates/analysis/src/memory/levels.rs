//! What an allocator had handed out and reserved after each of its events, as curves that are drawn.

use super::lives::Lives;
use timeline::memory::{AllocatorIndex, MemoryEventKind};
use timeline::{Memory, Timeline};

/// Values that each hold from their time to the next.
pub type Steps = Vec<(u64, u64)>;

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Levels {
    pub in_use: Steps,
    /// None: neither segments nor what is in them was recorded.
    pub reserved: Option<Steps>,
}

/// None: it has no events, so nothing is known over time.
pub fn of(timeline: &Timeline, allocator: AllocatorIndex, lives: &Lives) -> Option<Levels> {
    let memory = &timeline.memory;
    let mut changes: Vec<(u64, i128)> = Vec::new();
    for life in &lives.all {
        changes.push((begin(timeline, life.start), i128::from(life.bytes)));
        if let Some(event) = life.end.and_then(|end| memory.events.get(end)) {
            changes.push((event.time, -i128::from(life.bytes)));
        }
    }
    let any = memory.events.iter().any(|event| event.allocator == allocator);
    any.then(|| Levels { in_use: summed(changes, 0), reserved: reserved(timeline, memory, allocator) })
}

/// When a block that came with this event begins; those from before the first event begin with the recording.
pub fn begin(timeline: &Timeline, start: Option<usize>) -> u64 {
    start.and_then(|at| timeline.memory.events.get(at)).map_or(timeline.start, |event| event.time)
}

/// What there is after all changes of each moment.
pub fn summed(mut changes: Vec<(u64, i128)>, first: i128) -> Steps {
    changes.sort_by_key(|(time, _)| *time);
    let (mut sum, mut steps) = (first, Steps::new());
    for (time, change) in changes {
        sum += change;
        let value = u64::try_from(sum.max(0)).unwrap_or(u64::MAX);
        match steps.last_mut() {
            Some(last) if last.0 == time => last.1 = value,
            _ => steps.push((time, value)),
        }
    }
    steps
}

/// As the allocator said it after its blocks; else from its segments, back from how they were at the end.
fn reserved(timeline: &Timeline, memory: &Memory, allocator: AllocatorIndex) -> Option<Steps> {
    let own = || memory.events.iter().filter(move |event| event.allocator == allocator);
    let change = |kind: MemoryEventKind, bytes: u64| match kind {
        MemoryEventKind::SegmentAlloc | MemoryEventKind::SegmentMap => Some(i128::from(bytes)),
        MemoryEventKind::SegmentFree | MemoryEventKind::SegmentUnmap => Some(-i128::from(bytes)),
        _ => None,
    };
    let changes: Vec<(u64, i128)> =
        own().filter_map(|event| Some((event.time, change(event.kind, event.bytes)?))).collect();
    let state = memory.states.iter().rev().find(|state| state.allocator == allocator).filter(|_| !memory.cut);
    if changes.is_empty() && state.is_none() {
        let said: Steps = own().filter_map(|event| Some((event.time, event.reserved?))).collect();
        return (!said.is_empty()).then_some(said);
    }
    let total: i128 = changes.iter().map(|(_, change)| change).sum();
    let first = match state {
        Some(state) => i128::from(super::history::reserved(&state.segments)) - total,
        None if memory.allocator(allocator).began_late => return None,
        None => 0,
    };
    let mut steps = vec![(timeline.start, u64::try_from(first.max(0)).unwrap_or(u64::MAX))];
    steps.extend(summed(changes, first));
    Some(steps)
}

/// At most so many: of neighbours the highest, for it is peaks that matter, and the last.
pub fn thinned(steps: &[(u64, u64)], most: usize) -> Steps {
    let every = steps.len().div_ceil(most.max(1)).max(1);
    let mut kept: Steps =
        steps.chunks(every).filter_map(|chunk| chunk.iter().copied().max_by_key(|step| step.1)).collect();
    if let (Some(last), Some(end)) = (kept.last_mut(), steps.last())
        && last.0 < end.0
    {
        kept.push(*end);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::lives;

    fn levels(text: &str) -> Levels {
        let timeline = Timeline::from_text(text).unwrap();
        let found = of(&timeline, AllocatorIndex(0), &lives::of(&timeline.memory, AllocatorIndex(0))).unwrap();
        let plain = |steps: Steps| steps.into_iter().map(|(time, bytes)| (time / 1000, bytes >> 20)).collect();
        Levels { in_use: plain(found.in_use), reserved: found.reserved.map(plain) }
    }

    #[test]
    fn both_rise_and_fall_with_the_events() {
        let found = levels(
            "segment alloc 1us 20M at 1G\n block alloc 2us 4M at 1G\n block alloc 3us 8M at 1028M\n block free 4us 4M at 1G\n
            reserved 20M at 1G\n holds 4M free\n holds 8M active\n holds 8M free",
        );
        assert_eq!(found.in_use, [(2, 4), (3, 12), (4, 8)]);
        assert_eq!(found.reserved.unwrap().last(), Some(&(1, 20)));
    }

    #[test]
    fn reserved_is_not_known_without_segments_from_the_beginning() {
        let mut timeline = Timeline::from_text("segment alloc 1us 20M at 1G\n block alloc 2us 4M at 1G").unwrap();
        let found = |timeline: &Timeline| {
            let lives = lives::of(&timeline.memory, AllocatorIndex(0));
            of(timeline, AllocatorIndex(0), &lives).unwrap().reserved
        };
        assert!(found(&timeline).is_some_and(|steps| steps.last() == Some(&(1_000, 20 << 20))));
        timeline.memory.allocators[0].began_late = true;
        assert_eq!(found(&timeline), None);
    }

    #[test]
    fn of_many_the_highest_and_the_last_are_kept() {
        let steps: Steps = (0..1000).map(|at| (at, if at == 333 { 99 } else { at % 7 })).collect();
        let kept = thinned(&steps, 10);
        assert!(kept.len() <= 11 && kept.contains(&(333, 99)) && kept.last() == steps.last(), "{kept:?}");
        assert_eq!((thinned(&[], 10), thinned(&[(1, 2)], 10)), (vec![], vec![(1, 2)]));
    }
}
