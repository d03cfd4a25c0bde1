//! What idle time is read from: a case without what it computes on demand, which threads cannot share.

use crate::frames::Frames;
use crate::replay::Chosen;
use crate::rule::Case;
use crate::seen::SeenSamples;
use crate::steps::Steps;
use crate::windows::Windows;
use timeline::Timeline;

#[derive(Clone, Copy)]
pub struct Scene<'c> {
    pub timeline: &'c Timeline,
    pub steps: &'c Steps,
    pub windows: &'c Windows,
    pub frames: &'c Frames,
    pub seen: &'c SeenSamples,
    /// Recorded calls say what the steps' threads did, not samples.
    pub by_calls: bool,
    /// The steps that are replayed.
    pub chosen: Option<&'c Chosen>,
}

impl<'c> Scene<'c> {
    pub fn new(case: &'c Case) -> Scene<'c> {
        Scene {
            timeline: case.timeline,
            steps: &case.steps,
            windows: &case.windows,
            frames: &case.frames,
            seen: &case.seen,
            by_calls: case.breakdown.by_calls,
            chosen: case.chosen(),
        }
    }

    /// Whether a moment lies in a step that is replayed.
    pub fn is_replayed(&self, time: u64) -> bool {
        self.chosen.is_some_and(|chosen| chosen.has(time))
    }
}
