//! What recording adds to a CUDA call on the program's own threads, where recorded and unrecorded stretches of the program can be compared. What the collector measured of
//! itself is not taken for it: CUPTI adds several times as much, and a gain that is without a part of the cost is neither of the recorded step nor of the program's.

use super::OverheadBy;
use super::overhead::slowdown;
use crate::steps::Steps;
use crate::steps::spans::Spans;
use std::collections::BTreeMap;
use timeline::{ProcessIndex, SliceKind, Timeline};

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallCost {
    /// Of one call, the mean of all.
    pub ns: f64,
    pub by: OverheadBy,
}

/// None: nobody measured it, or there are no calls.
pub fn measure(timeline: &Timeline, steps: &Steps) -> Option<CallCost> {
    let slices = &timeline.slices;
    let is_call = |index: &usize| slices.kind(*index) == SliceKind::ApiCall;
    let (longer, by) = slowdown(timeline, steps)?;
    let spans = spans(timeline, steps);
    let inside = |process: ProcessIndex, index: usize| {
        let start = slices.start[index];
        spans.get(&process).is_some_and(|spans| spans.overlap(start, start.saturating_add(1)) > 0)
    };
    let tracks = timeline.tracks.iter().map(|track| (track.process, track.slices.clone()));
    let calls = tracks.map(|(process, all)| all.filter(is_call).filter(|call| inside(process, *call)).count());
    let time: f64 = steps.measured().map(|step| step.dur() as f64).sum();
    let each = time * longer / (1.0 + longer) / calls.sum::<usize>() as f64;
    (each.is_finite() && each > 0.0).then_some(CallCost { ns: each, by })
}

/// The measured steps of each process.
fn spans(timeline: &Timeline, steps: &Steps) -> BTreeMap<ProcessIndex, Spans> {
    let mut all: BTreeMap<ProcessIndex, Vec<(u64, u64)>> = BTreeMap::new();
    for step in steps.measured() {
        all.entry(timeline.tracks[step.track.0 as usize].process).or_default().push((step.start, step.end));
    }
    all.into_iter().map(|(process, steps)| (process, Spans::union(steps))).collect()
}
