//! In which layer and in which step blocks were allocated: known of every block by its time and its thread, whether its stack was read or not.

use super::lives::Life;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use timeline::memory::{AllocatorIndex, MemoryEvent, MemoryEventKind, StackBasis, StackMissing};
use timeline::{Memory, NameIndex, SliceKind, Timeline, TrackIndex};

/// Bytes and blocks of one layer or step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part<K> {
    pub of: K,
    pub bytes: u64,
    pub blocks: u64,
}

/// When a block was allocated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum When {
    /// Or before the recording.
    BeforeSteps,
    /// By its number, from 0.
    Step(u32),
    /// Between two of them, or after the last.
    OutsideSteps,
}

/// Where and when each block of the lives was allocated.
#[derive(Default)]
pub struct Contexts {
    layers: Vec<Option<NameIndex>>,
    when: Vec<When>,
    has_layers: bool,
}

impl Contexts {
    /// `steps`: begin and end of each, as places of events, by begin; none where the recording has no steps.
    pub fn of(timeline: &Timeline, lives: &[Life], steps: &[(usize, usize)]) -> Contexts {
        let layers = layers(timeline, lives);
        let has_layers = layers.iter().any(Option::is_some);
        let when = if steps.is_empty() { Vec::new() } else { lives.iter().map(|life| when(life, steps)).collect() };
        Contexts { layers, when, has_layers }
    }

    /// Of these lives, most bytes first. Nothing where no block was allocated in a layer.
    pub fn by_layer<'a>(&self, lives: impl Iterator<Item = (usize, &'a Life)>) -> Vec<Part<Option<NameIndex>>> {
        if self.has_layers { parts(lives.map(|(at, life)| (self.layers[at], life))) } else { Vec::new() }
    }

    /// Of these lives, most bytes first. Nothing where there are no steps.
    pub fn by_step<'a>(&self, lives: impl Iterator<Item = (usize, &'a Life)>) -> Vec<Part<When>> {
        parts(lives.filter_map(|(at, life)| Some((*self.when.get(at)?, life))))
    }
}

fn parts<'a, K: Copy + Eq + Hash + Ord>(lives: impl Iterator<Item = (K, &'a Life)>) -> Vec<Part<K>> {
    let mut sums: HashMap<K, (u64, u64)> = HashMap::new();
    for (key, life) in lives {
        let sum = sums.entry(key).or_default();
        *sum = (sum.0.saturating_add(life.bytes), sum.1 + 1);
    }
    let mut all: Vec<_> = sums.into_iter().map(|(of, (bytes, blocks))| Part { of, bytes, blocks }).collect();
    all.sort_by_key(|part| (Reverse(part.bytes), part.of));
    all
}

fn when(life: &Life, steps: &[(usize, usize)]) -> When {
    let Some(start) = life.start else { return When::BeforeSteps };
    match steps.partition_point(|step| step.0 <= start) {
        0 => When::BeforeSteps,
        after if start < steps[after - 1].1 => When::Step(after as u32 - 1),
        _ => When::OutsideSteps,
    }
}

fn layers(timeline: &Timeline, lives: &[Life]) -> Vec<Option<NameIndex>> {
    let event = |life: &Life| life.start.and_then(|at| timeline.memory.events.get(at));
    innermost_layers(timeline, lives.iter().map(event))
}

/// The innermost layer around each event, on its thread.
pub fn innermost_layers<'a>(
    timeline: &Timeline,
    events: impl ExactSizeIterator<Item = Option<&'a MemoryEvent>>,
) -> Vec<Option<NameIndex>> {
    let mut found = vec![None; events.len()];
    let mut by_track: HashMap<TrackIndex, Vec<(u64, usize)>> = HashMap::new();
    for (place, event) in events.enumerate() {
        if let Some((event, track)) = event.and_then(|event| Some((event, event.track?))) {
            by_track.entry(track).or_default().push((event.time, place));
        }
    }
    for (track, mut places) in by_track {
        places.sort_unstable();
        let slices = timeline.tracks.get(track.0 as usize).map_or(0..0, |track| track.slices.clone());
        let layers = slices.filter(|index| timeline.slices.kind(*index) == SliceKind::Layer);
        let mut layers = layers.map(|index| timeline.slices.get(index)).peekable();
        let mut open: Vec<(u64, NameIndex)> = Vec::new();
        for (time, place) in places {
            while let Some(layer) = layers.next_if(|layer| layer.start <= time) {
                open.retain(|(end, _)| *end > layer.start);
                open.push((layer.end(), layer.name));
            }
            open.retain(|(end, _)| *end > time);
            found[place] = open.last().map(|(_, name)| *name);
        }
    }
    found
}

/// How many stacks of blocks were read, and why others were not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StackCounts {
    pub read: u64,
    /// Most first.
    pub missing: Vec<(StackMissing, u64)>,
}

/// Of one allocator. None: stacks were not recorded.
pub fn stack_counts(memory: &Memory, allocator: AllocatorIndex) -> Option<StackCounts> {
    memory.allocator(allocator).sampled_bytes?;
    let mut counts = StackCounts::default();
    let mut missing: HashMap<i32, (StackMissing, u64)> = HashMap::new();
    let requests = [MemoryEventKind::Alloc, MemoryEventKind::OutOfMemory];
    for event in memory.events.iter().filter(|event| event.allocator == allocator && requests.contains(&event.kind)) {
        match event.stack_basis {
            StackBasis::Sampled | StackBasis::Always => counts.read += 1,
            StackBasis::Missing(_, why) => missing.entry(why as i32).or_insert((why, 0)).1 += 1,
            StackBasis::Own | StackBasis::PassedOver => {}
        }
    }
    counts.missing = missing.into_values().collect();
    counts.missing.sort_by_key(|(why, count)| (Reverse(*count), *why as i32));
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::Frames;
    use crate::memory::{AllocatorMemory, measure};
    use crate::steps::Steps;

    fn measured(text: &str) -> (Timeline, AllocatorMemory) {
        let timeline = Timeline::from_text(text).unwrap();
        let memory = measure(&timeline, &Frames::new(&timeline), &Steps::find(&timeline, None)).remove(0);
        (timeline, memory)
    }

    #[test]
    fn what_is_held_at_the_peak_has_its_layer_and_its_step() {
        let text = "
            block alloc 1us 10M at 1
            track main
            repeat 6 every 1ms
            step request 10us..900us
            layer decoder 15us..500us
            layer attention 18us..25us
            block alloc 20us 4M at 2
            block alloc 30us 1M at 9 each
            block alloc 600us 2M at 3
            block alloc 950us 3M at 4
            block free 960us 4M at 2
            block free 970us 2M at 3
            block free 980us 3M at 4
            end";
        let (timeline, memory) = measured(text);
        let layers: Vec<_> = memory
            .peak
            .by_layer
            .iter()
            .map(|part| (part.of.map(|name| timeline.names.text(name)), part.bytes >> 20, part.blocks))
            .collect();
        // The peak is after the last request: what it kept, and what its parts hold just then.
        assert_eq!(layers, [(None, 15, 3), (Some("decoder"), 6, 6), (Some("attention"), 4, 1)]);
        let mut steps: Vec<_> = memory.peak.by_step.iter().map(|part| (part.of, part.bytes >> 20)).collect();
        steps.sort();
        let kept = (0..5).map(|step| (When::Step(step), 1));
        let mut expected = vec![(When::BeforeSteps, 10), (When::Step(5), 7), (When::OutsideSteps, 3)];
        expected.extend(kept);
        expected.sort();
        assert_eq!(steps, expected);
    }

    #[test]
    fn without_layers_and_steps_nothing_is_said_of_them() {
        let (_, memory) = measured("track main\n block alloc 1us 10M at 1");
        assert!(memory.peak.by_layer.is_empty() && memory.peak.by_step.is_empty());
        assert_eq!(memory.stacks, None);
    }

    #[test]
    fn stacks_that_are_there_and_that_are_missing_are_counted() {
        let mut timeline = Timeline::from_text(
            "sampled 512K\n block alloc 1us 4M at 1 main>f@a.py:1\n block alloc 2us 1K at 2\n block alloc 3us 4M at 3",
        )
        .unwrap();
        let why = StackMissing::NoPython;
        timeline.memory.events[2].stack_basis = StackBasis::Missing(timeline::memory::StackReason::Large, why);
        let counts = stack_counts(&timeline.memory, AllocatorIndex(0)).unwrap();
        assert_eq!(counts, StackCounts { read: 1, missing: vec![(why, 1)] });
    }
}
