//! Blocks of an allocator as they are drawn: where each lies over time, which line allocated it and in which step. Pictures and the page share it.

use crate::memory_words;
use crate::units::{bytes, count, duration};
use analysis::Steps;
use analysis::frames::Frames;
use analysis::memory::lifetimes::{self, BlockLife, Lifetimes, Limits};
use analysis::memory::who::{by_place, categories};
use analysis::memory::{lives, positions};
use std::collections::HashMap;
use timeline::memory::AllocatorIndex;
use timeline::{StackIndex, Timeline};

pub struct DrawnBlocks {
    pub lifetimes: Lifetimes,
    /// The lines that allocated the drawn blocks, most bytes first.
    pub places: Vec<String>,
    /// Of each drawn block: its place in `places`, and the step that it was allocated in, from 0.
    pub place_of: Vec<usize>,
    pub step_of: Vec<Option<u32>>,
}

pub fn of(
    timeline: &Timeline,
    frames: &Frames,
    steps: &Steps,
    allocator: AllocatorIndex,
    limits: Limits,
) -> DrawnBlocks {
    let lives = lives::of(&timeline.memory, allocator);
    let categories = categories(timeline, &lives, &positions(&timeline.memory, steps));
    let lifetimes = lifetimes::of(timeline, &lives, &categories, limits);
    let drawn = lifetimes.blocks.iter().map(|block| (block.stack, block.bytes));
    let mut places: Vec<String> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for holder in by_place(timeline, frames, drawn) {
        let name = memory_words::place(&holder);
        numbers.entry(name.clone()).or_insert_with(|| {
            places.push(name);
            places.len() - 1
        });
    }
    let mut known: HashMap<StackIndex, usize> = HashMap::new();
    let mut place = |block: &BlockLife| {
        *known.entry(block.stack).or_insert_with(|| {
            let holders = by_place(timeline, frames, std::iter::once((block.stack, block.bytes)));
            let name = holders.first().map(memory_words::place).unwrap_or_default();
            numbers.get(&name).copied().unwrap_or(0)
        })
    };
    let place_of = lifetimes.blocks.iter().map(&mut place).collect();
    let step_of = lifetimes.blocks.iter().map(|block| step(steps, block)).collect();
    DrawnBlocks { lifetimes, places, place_of, step_of }
}

fn step(steps: &Steps, block: &BlockLife) -> Option<u32> {
    let after = steps.steps.partition_point(|step| step.start <= block.start);
    let step = steps.steps.get(after.checked_sub(1)?)?;
    (!block.from_before && block.start < step.end).then_some(step.index)
}

/// A moment of the recording, for people.
pub fn moment(timeline: &Timeline, time: u64) -> String {
    let since = time.saturating_sub(timeline.start);
    if timeline.memory.ordered_only { format!("event {}", count(since)) } else { duration(since) }
}

/// When a block came and went.
pub fn times(timeline: &Timeline, block: &BlockLife) -> [String; 2] {
    let came = match block.from_before {
        true => "there before the first event".to_owned(),
        false => format!("allocated at {}", moment(timeline, block.start)),
    };
    let went = match (block.alive, timeline.memory.ordered_only) {
        (true, _) => "not freed in the recording".to_owned(),
        (_, true) => format!("freed at {}", moment(timeline, block.end)),
        (_, false) => {
            let lived = duration(block.end.saturating_sub(block.start));
            format!("freed at {}, after {lived}", moment(timeline, block.end))
        }
    };
    [came, went]
}

/// What is not drawn.
pub fn left_out(drawn: &DrawnBlocks) -> Option<String> {
    let (shown, all) = (drawn.lifetimes.blocks.len(), drawn.lifetimes.all);
    let most = drawn.lifetimes.rest.iter().map(|step| step.1).max().unwrap_or(0);
    (shown < all).then(|| {
        format!(
            "{} of {} blocks drawn, those with the most bytes × time; the others, {} at most, are one grey area on top, drawn by the highest of neighbouring moments",
            count(shown as u64),
            count(all as u64),
            bytes(most)
        )
    })
}
