//! What frameworks' allocators held: over time, at the peak and at the end, by whom and for what; what of it is free and cannot be used; and what
//! grows. All of it from events of the allocator and from snapshots of it.

pub mod attribution;
pub mod context;
pub mod course;
pub mod growth;
pub mod heat;
pub mod history;
pub mod kept;
pub mod levels;
pub mod lifetimes;
pub mod lives;
pub mod map;
pub mod outside;
mod owners;
pub mod ranks;
pub mod sampled;
pub mod segments;
mod sites;
pub mod who;

use crate::frames::Frames;
use crate::origin;
use crate::steps::{StepSource, Steps};
use context::{Contexts, Part, StackCounts, When};
use growth::Growth;
use history::History;
use lives::Lives;
use map::BlockMap;
use timeline::memory::AllocatorIndex;
use timeline::{Memory, NameIndex, Timeline};
use who::{Category, Holder};

#[derive(Clone, Debug)]
pub struct AllocatorMemory {
    pub allocator: AllocatorIndex,
    pub history: History,
    /// At the end. None: no state was recorded.
    pub map: Option<BlockMap>,
    /// At the end of the last step, of an allocator without a state whose segments are known: a program that ends gives everything back.
    pub at_last_step: Option<BlockMap>,
    pub peak: Held,
    pub end: Held,
    /// What each place holds more than before, most first.
    pub growth: Vec<Growth>,
    /// Steps that growth was looked at over. 0: parts of the recording, for it has no steps or too few.
    pub steps: u64,
    /// Frees that must be missing.
    pub missing_frees: u64,
    /// Stacks of its blocks. None: they were not recorded.
    pub stacks: Option<StackCounts>,
}

impl AllocatorMemory {
    /// The last moment whose holes are the program's, and not of its end.
    pub fn last_map(&self) -> Option<&BlockMap> {
        self.map.as_ref().or(self.at_last_step.as_ref())
    }

    /// Bytes handed out at the end: as the allocator counts them where its blocks were recorded, else by events.
    pub fn in_use(&self) -> u64 {
        self.map.as_ref().map_or(self.history.last, |map| map.active)
    }
}

/// What is held at one moment.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Held {
    pub bytes: u64,
    pub by_place: Vec<Holder>,
    /// By what it is for, with the number of blocks; those that hold something, most first.
    pub by_category: Vec<(Category, u64, u64)>,
    /// By the innermost layer that allocated it, None where none was recorded around it. Empty: no layer was recorded.
    pub by_layer: Vec<Part<Option<NameIndex>>>,
    /// By the step that allocated it. Empty: the recording has no steps.
    pub by_step: Vec<Part<When>>,
}

/// Whether the recording is of memory alone: a snapshot. Nothing else can be said of it.
pub fn is_all(timeline: &Timeline) -> bool {
    origin::is_snapshot(timeline)
}

/// How recordings call PyTorch's allocator of ordinary memory.
pub const CPU_BACKEND: &str = "torch.cpu";

/// "GPU 0"; with the process where there are several.
pub fn name(timeline: &Timeline, allocator: AllocatorIndex) -> String {
    let about = timeline.memory.allocator(allocator);
    let of = match timeline.processes.get(about.process.0 as usize) {
        Some(process) if timeline.processes.len() > 1 => format!(" of pid {}", process.pid),
        _ => String::new(),
    };
    match about.device {
        Some(device) => format!("GPU {device}{of}"),
        // PyTorch has an allocator of each kind.
        None if &*about.backend == CPU_BACKEND => format!("CPU{of}"),
        None => format!("Pinned memory{of}"),
    }
}

/// Of each allocator that has events or a state.
pub fn measure(timeline: &Timeline, frames: &Frames, steps: &Steps) -> Vec<AllocatorMemory> {
    let memory = &timeline.memory;
    let steps = positions(memory, steps);
    let all = (0..memory.allocators.len() as u32).map(AllocatorIndex);
    all.filter_map(|allocator| one(timeline, frames, &steps, allocator)).collect()
}

/// Begin and end of each step, as places of events.
pub fn positions(memory: &Memory, steps: &Steps) -> Vec<(usize, usize)> {
    if steps.source == StepSource::Whole {
        return Vec::new();
    }
    let place = |time: u64| memory.events.partition_point(|event| event.time < time);
    let all = steps.steps.iter().map(|step| (place(step.start), place(step.end)));
    all.filter(|(start, end)| start < end).collect()
}

fn one(
    timeline: &Timeline,
    frames: &Frames,
    steps: &[(usize, usize)],
    allocator: AllocatorIndex,
) -> Option<AllocatorMemory> {
    let memory = &timeline.memory;
    let lives = lives::of(memory, allocator);
    let history = history::of(memory, allocator, &lives)?;
    let state = memory.states.iter().rev().find(|state| state.allocator == allocator);
    let categories = who::categories(timeline, &lives, steps);
    let contexts = Contexts::of(timeline, &lives.all, steps);
    let held = |at: Option<usize>| held(timeline, frames, &lives, (&categories, &contexts), at);
    let windows = growth::windows(memory.events.len(), steps);
    let last = steps.iter().map(|step| step.1).max().unwrap_or(memory.events.len());
    let at_last_step = match state {
        Some(_) => None,
        None => segments::until(timeline, allocator, last).ok(),
    };
    Some(AllocatorMemory {
        allocator,
        map: state.map(|state| map::of(timeline, frames, state)),
        at_last_step: at_last_step.map(|memory| map::of(timeline, frames, &memory.states[0])),
        peak: held(history.peak_at),
        end: held(Some(usize::MAX - 1)),
        growth: growth::of(timeline, frames, &lives, &windows),
        steps: if steps.len() >= growth::LEAST_STEPS { steps.len() as u64 } else { 0 },
        missing_frees: lives.missing_frees,
        stacks: context::stack_counts(memory, allocator),
        history,
    })
}

/// What an allocator held before the event at this place of [`Memory::events`].
pub fn held_before(
    timeline: &Timeline,
    frames: &Frames,
    steps: &Steps,
    allocator: AllocatorIndex,
    event: usize,
) -> Held {
    let memory = &timeline.memory;
    let lives = lives::of(memory, allocator);
    let steps = positions(memory, steps);
    let categories = who::categories(timeline, &lives, &steps);
    let contexts = Contexts::of(timeline, &lives.all, &steps);
    held(timeline, frames, &lives, (&categories, &contexts), event.checked_sub(1))
}

/// What is alive after this event; None: before the first one.
fn held(
    timeline: &Timeline,
    frames: &Frames,
    lives: &Lives,
    (categories, contexts): (&[Category], &Contexts),
    at: Option<usize>,
) -> Held {
    let alive = |life: &lives::Life| at.map_or(life.start.is_none(), |at| life.at(at));
    let blocks = || lives.all.iter().zip(categories).filter(|(life, _)| alive(life));
    let by_place = sampled::by_place(timeline, frames, blocks().map(|(life, _)| life));
    let of = |category: Category| {
        let own = blocks().filter(|(_, one)| **one == category);
        let (bytes, count) = own.fold((0u64, 0), |sum, (life, _)| (sum.0.saturating_add(life.bytes), sum.1 + 1));
        (category, bytes, count)
    };
    let mut by_category: Vec<_> = Category::ALL.into_iter().map(of).filter(|(_, bytes, _)| *bytes > 0).collect();
    by_category.sort_by_key(|(_, bytes, _)| std::cmp::Reverse(*bytes));
    let numbered = || lives.all.iter().enumerate().filter(|(_, life)| alive(life));
    Held {
        bytes: blocks().map(|(life, _)| life.bytes).fold(0, u64::saturating_add),
        by_place,
        by_category,
        by_layer: contexts.by_layer(numbered()),
        by_step: contexts.by_step(numbered()),
    }
}

#[cfg(test)]
mod tests;
