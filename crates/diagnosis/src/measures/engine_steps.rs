//! The steps of a serving engine, by its own markers: prefill, decode, or both, in the order of their thread.

use crate::rule::Case;
use timeline::{EnginePhase, TrackIndex};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EngineStep {
    pub phase: EnginePhase,
    pub start: u64,
    pub end: u64,
}

impl EngineStep {
    pub fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

/// Those of the thread that has most of them. Empty: the program has no such markers.
pub fn find(case: &Case) -> (TrackIndex, Vec<EngineStep>) {
    let timeline = case.timeline;
    let mut most = (TrackIndex(0), Vec::new());
    for (number, track) in timeline.tracks.iter().enumerate() {
        let steps = track.slices.clone().filter_map(|index| {
            let phase = timeline.engine_phase(index)?;
            let slice = timeline.slices.get(index);
            Some(EngineStep { phase, start: slice.start, end: slice.end() })
        });
        let steps: Vec<EngineStep> = steps.collect();
        if steps.len() > most.1.len() {
            most = (TrackIndex(number as u32), steps);
        }
    }
    most
}
