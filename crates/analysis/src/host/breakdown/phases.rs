//! The named stretches of a step: which scopes it consists of, when they begin and how long they take, on average.

use crate::steps::Steps;
use crate::steps::windows::StepSpans;
use std::collections::HashMap;
use timeline::{NameIndex, SliceKind, Timeline};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Phase {
    pub name: String,
    /// 1: directly inside the step; 2: inside the phase before it that has 1; and so on.
    pub depth: u32,
    /// How many in all steps.
    pub count: u64,
    /// Mean over all steps, those without it included.
    pub ns: u64,
    /// From the begin of the step to the first of them, mean over the steps that have it.
    pub offset_ns: u64,
}

/// Deeper or more than this is not read by anybody.
const DEEPEST: usize = 6;
const MOST: usize = 200;

struct Sum {
    name: NameIndex,
    parent: usize,
    depth: u32,
    count: u64,
    total: u64,
    /// The window it was last seen in, the offset there, and how many windows had it.
    window: usize,
    offsets: u64,
    windows: u64,
}

pub fn phases(timeline: &Timeline, steps: &Steps, windows: &StepSpans) -> Vec<Phase> {
    let mut sums: Vec<Sum> = Vec::new();
    let mut places: HashMap<(usize, NameIndex), usize> = HashMap::new();
    for (track, range) in windows.tracks() {
        let mut at = range.start;
        let mut open: Vec<(u64, usize)> = Vec::new();
        for index in timeline.tracks[track.0 as usize].slices.clone() {
            if !matches!(timeline.slices.kind(index), SliceKind::Scope | SliceKind::Step | SliceKind::Nvtx) {
                continue;
            }
            let slice = timeline.slices.get(index);
            // An NVTX range of no length is a mark.
            if slice.kind == SliceKind::Nvtx && slice.dur == 0 {
                continue;
            }
            while at < range.end && windows.all()[at].end <= slice.start {
                at += 1;
                open.clear();
            }
            let Some(window) = windows.all()[..range.end].get(at) else { break };
            // The step itself, and what is around it, is no part of it.
            let whole = slice.start <= window.start && slice.end() >= window.end;
            if slice.start < window.start || slice.end() > window.end || whole || slice.open {
                continue;
            }
            while open.last().is_some_and(|(end, _)| *end <= slice.start) {
                open.pop();
            }
            if open.len() >= DEEPEST {
                continue;
            }
            let parent = open.last().map_or(usize::MAX, |(_, place)| *place);
            let place = *places.entry((parent, slice.name)).or_insert(sums.len());
            if place == sums.len() {
                if sums.len() >= MOST {
                    places.remove(&(parent, slice.name));
                    continue;
                }
                let depth = open.len() as u32 + 1;
                let name = slice.name;
                sums.push(Sum { name, parent, depth, count: 0, total: 0, window: usize::MAX, offsets: 0, windows: 0 });
            }
            let sum = &mut sums[place];
            sum.count += 1;
            sum.total = sum.total.saturating_add(slice.dur);
            if sum.window != at {
                sum.window = at;
                sum.windows += 1;
                sum.offsets = sum.offsets.saturating_add(slice.start - window.start);
            }
            open.push((slice.end(), place));
        }
    }
    in_order(timeline, &sums, steps.count() as u64)
}

/// Parents before children, and each by when it begins.
fn in_order(timeline: &Timeline, sums: &[Sum], steps: u64) -> Vec<Phase> {
    let offset = |sum: &Sum| sum.offsets.checked_div(sum.windows).unwrap_or(0);
    let mut children: HashMap<usize, Vec<usize>> = HashMap::new();
    for (place, sum) in sums.iter().enumerate() {
        children.entry(sum.parent).or_default().push(place);
    }
    children.values_mut().for_each(|all| all.sort_by_key(|place| (u64::MAX - offset(&sums[*place]), *place)));
    let mut phases = Vec::new();
    let mut next: Vec<usize> = children.remove(&usize::MAX).unwrap_or_default();
    while let Some(place) = next.pop() {
        let sum = &sums[place];
        phases.push(Phase {
            name: timeline.names.text(sum.name).to_owned(),
            depth: sum.depth,
            count: sum.count,
            ns: sum.total.checked_div(steps).unwrap_or(0),
            offset_ns: offset(sum),
        });
        next.extend(children.remove(&place).unwrap_or_default());
    }
    phases
}
