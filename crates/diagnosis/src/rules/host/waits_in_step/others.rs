//! What the program's other threads do while a step waits: where one of them runs, the step waits for work that somebody does.

use crate::rule::Case;
use analysis::host::step_samples::StepSample;
use std::collections::{BTreeSet, HashMap};
use timeline::{StackIndex, TrackIndex};

/// The waits in which another thread of the process runs, by their samples, and the stack that it was seen in most.
#[derive(Default)]
pub struct AtWork {
    waits: BTreeSet<u32>,
    pub stack: Option<StackIndex>,
}

impl AtWork {
    pub fn meanwhile(&self, wait: &StepSample) -> bool {
        self.waits.contains(&wait.sample)
    }

    pub fn count(&self) -> u64 {
        self.waits.len() as u64
    }
}

pub fn at_work(case: &Case, waits: impl Fn(&StepSample) -> bool) -> AtWork {
    let mut found = AtWork::default();
    let mut stacks: HashMap<StackIndex, u64> = HashMap::new();
    for wait in case.samples.all.iter().filter(|one| waits(one)) {
        for stack in running_beside(case, wait) {
            found.waits.insert(wait.sample);
            *stacks.entry(stack).or_default() += 1;
        }
    }
    found.stack = stacks.into_iter().max_by_key(|(stack, count)| (*count, u32::MAX - stack.0)).map(|(stack, _)| stack);
    found
}

/// Threads are read one after the other: what was seen within half a period of the wait was seen with it.
fn running_beside<'c>(case: &'c Case, wait: &StepSample) -> impl Iterator<Item = StackIndex> + use<'c> {
    let (track, time, timeline) = (case.track(wait), case.sample(wait).time, case.timeline);
    let (process, tolerance) = (timeline.tracks[track.0 as usize].process, case.samples.period_ns / 2);
    let others = timeline.tracks.iter().zip(0..).filter(move |(other, number)| {
        other.process == process && TrackIndex(*number) != track && !other.samples.is_empty()
    });
    others.filter_map(move |(other, _)| {
        let (first, end) = (other.samples.start, other.samples.end);
        let place = first + timeline.samples.time[first..end].partition_point(|at| *at < time);
        let around = [place.checked_sub(1).filter(|place| *place >= first), Some(place).filter(|place| *place < end)];
        let near = around.into_iter().flatten().map(|place| timeline.samples.get(place));
        let nearest = near.min_by_key(|sample| sample.time.abs_diff(time))?;
        (nearest.active && nearest.time.abs_diff(time) <= tolerance).then_some(nearest.stack)
    })
}
