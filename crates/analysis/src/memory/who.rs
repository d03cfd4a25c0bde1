//! Who holds memory: blocks by the line of the program's own code that they were allocated from, and by what they are for.

use super::lives::{Life, Lives};
use crate::frames::Frames;
use crate::place::Place;
use std::cmp::Reverse;
use std::collections::HashMap;
use timeline::{NameIndex, StackIndex, Timeline};

/// What a block is for, as far as its life tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Category {
    /// Alive before the first step (or event) and to the end.
    Weights,
    /// Allocated and freed within a step, or within the recording where it has no steps.
    Activations,
    /// Kept over steps, or to the end of the recording.
    Cache,
    /// Of a library: cuBLAS, cuDNN.
    Workspace,
    /// In a pool of its own.
    Graphs,
    /// From before the recording, and freed in it.
    Unknown,
}

impl Category {
    pub const ALL: [Category; 6] = [
        Category::Weights,
        Category::Activations,
        Category::Cache,
        Category::Workspace,
        Category::Graphs,
        Category::Unknown,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Category::Weights => "weights",
            Category::Activations => "activations",
            Category::Cache => "cache",
            Category::Workspace => "workspace",
            Category::Graphs => "graphs",
            Category::Unknown => "unknown",
        }
    }

    pub fn said(self) -> &'static str {
        match self {
            Category::Weights => "held throughout (weights, buffers)",
            Category::Activations => "temporary (activations)",
            Category::Cache => "kept (caches, results, gradients)",
            Category::Workspace => "library workspaces",
            Category::Graphs => "CUDA graph pools",
            Category::Unknown => "from before the recording, freed in it",
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Holder {
    /// Nothing in it: its stacks were not recorded.
    pub place: Place,
    pub stack: StackIndex,
    pub bytes: u64,
    pub blocks: u64,
    pub largest: u64,
    /// Of the bytes, where they are estimated from blocks whose stacks were sampled: one standard error. 0: every block's stack was read.
    pub error: u64,
}

/// By place, most first.
pub fn by_place(timeline: &Timeline, frames: &Frames, blocks: impl Iterator<Item = (StackIndex, u64)>) -> Vec<Holder> {
    let mut holders: HashMap<(NameIndex, u32), Holder> = HashMap::new();
    for (stack, bytes) in blocks {
        let home = frames.home(stack);
        let holder = holders.entry(line(timeline, home)).or_insert_with(|| {
            let place = self::place(timeline, home);
            Holder { place, stack, bytes: 0, blocks: 0, largest: 0, error: 0 }
        });
        holder.bytes = holder.bytes.saturating_add(bytes);
        holder.largest = holder.largest.max(bytes);
        holder.blocks += 1;
    }
    let mut holders: Vec<Holder> = holders.into_values().collect();
    holders.sort_by_key(|holder| (Reverse(holder.bytes), holder.stack));
    holders
}

/// The line of a frame, whoever called it.
pub fn line(timeline: &Timeline, home: StackIndex) -> (NameIndex, u32) {
    let frame = timeline.stacks.frame(home);
    (frame.name, frame.line)
}

/// Where this frame is in the program.
pub fn place(timeline: &Timeline, stack: StackIndex) -> Place {
    if stack.0 == 0 {
        return Place::default();
    }
    let frame = timeline.stacks.frame(stack);
    let name = timeline.names.get(frame.name);
    Place {
        file: (!name.file.is_empty()).then(|| name.file.to_string()),
        line: (frame.line > 0).then_some(frame.line),
        function: Some(name.text.to_string()),
        ..Place::default()
    }
}

/// What each block is for. `steps`: begin and end of each, as places of events, by begin.
pub fn categories(timeline: &Timeline, lives: &Lives, steps: &[(usize, usize)]) -> Vec<Category> {
    let mut workspace: HashMap<StackIndex, bool> = HashMap::new();
    let first = steps.first().map_or(0, |step| step.0);
    let category = |life: &Life| {
        let named = *workspace.entry(life.stack).or_insert_with(|| is_workspace(timeline, life.stack));
        let before = life.start.is_none_or(|start| start < first);
        match (life.end, life.start) {
            _ if life.own_pool => Category::Graphs,
            _ if named => Category::Workspace,
            (None, _) if before => Category::Weights,
            (None, _) => Category::Cache,
            (Some(_), None) => Category::Unknown,
            (Some(end), Some(start)) => match steps.partition_point(|step| step.0 <= start) {
                0 => Category::Activations,
                next if end <= steps.get(next).map_or(usize::MAX, |step| step.0) => Category::Activations,
                _ => Category::Cache,
            },
        }
    };
    lives.all.iter().map(category).collect()
}

/// Libraries' functions that fetch a workspace have it in their names.
fn is_workspace(timeline: &Timeline, stack: StackIndex) -> bool {
    let mut frames = timeline.stacks.walk(stack).take(40);
    frames.any(|(_, frame)| {
        let name = timeline.names.text(frame.name);
        name.contains("Workspace") || name.contains("workspace")
    })
}
