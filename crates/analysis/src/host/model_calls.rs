//! When a program is in one of its models: the recorded calls into entry points, requests apart. What runs outside them is not the model.

use super::StepContext;
use crate::host::step_samples::StepSample;
use crate::steps::is_request;
use crate::steps::spans::Spans;
use std::collections::HashMap;
use timeline::{SliceKind, TrackIndex};

#[derive(Debug)]
pub struct ModelCalls {
    by_track: HashMap<TrackIndex, Spans>,
}

impl ModelCalls {
    /// On the threads of the steps. None: no call of a model lies inside them, so nothing tells the model from the rest.
    pub fn inside_steps(context: &StepContext) -> Option<ModelCalls> {
        let timeline = context.timeline;
        let mut by_track = HashMap::new();
        for (track, _) in context.windows.tracks() {
            let of = |index: usize| {
                let slice = timeline.slices.get(index);
                let calls = slice.kind == SliceKind::Entry && !is_request(timeline.names.text(slice.name));
                let inside = calls && context.windows.overlap(track, slice.start, slice.end()) > 0;
                inside.then(|| (slice.start, slice.end()))
            };
            let calls: Vec<(u64, u64)> = timeline.tracks[track.0 as usize].slices.clone().filter_map(of).collect();
            if !calls.is_empty() {
                by_track.insert(track, Spans::union(calls));
            }
        }
        (!by_track.is_empty()).then_some(ModelCalls { by_track })
    }

    pub fn holds(&self, context: &StepContext, one: &StepSample) -> bool {
        let time = context.sample(one).time;
        self.by_track.get(&context.track(one)).is_some_and(|calls| calls.overlap(time, time.saturating_add(1)) > 0)
    }
}
