//! The scope in which a step waits, where the program marks one: under an event loop no line of the program is on the stack.

use crate::rule::Case;
use analysis::host::step_samples::StepSample;
use std::collections::HashMap;
use timeline::{NameIndex, SliceKind, TrackIndex};

/// The scope that most of these samples lie in, by the one that was opened last. None: most lie in none, or in no one scope.
pub fn of(case: &Case, fits: impl Fn(&StepSample) -> bool) -> Option<String> {
    let mut counts: HashMap<NameIndex, usize> = HashMap::new();
    let mut all = 0;
    for (track, _) in case.windows.tracks() {
        let of_track = case.samples.all.iter().filter(|one| case.track(one) == track && fits(one));
        let times: Vec<u64> = of_track.map(|one| case.sample(one).time).collect();
        all += times.len();
        count(case, track, times, &mut counts);
    }
    let (name, most) = counts.into_iter().max_by_key(|(name, count)| (*count, u32::MAX - name.0))?;
    (2 * most > all).then(|| case.timeline.names.text(name).to_owned())
}

fn count(case: &Case, track: TrackIndex, mut times: Vec<u64>, counts: &mut HashMap<NameIndex, usize>) {
    let slices = &case.timeline.slices;
    // The steps may be scopes themselves.
    let is_step = |name: NameIndex| case.timeline.names.text(name) == case.steps.name;
    let range = case.timeline.tracks[track.0 as usize].slices.clone();
    let mut scopes = range.filter(|index| slices.kind(*index) == SliceKind::Scope).map(|index| slices.get(index));
    let mut next = scopes.next();
    let mut open: Vec<(u64, NameIndex)> = Vec::new();
    times.sort_unstable();
    for time in times {
        while let Some(scope) = next.as_ref().filter(|scope| scope.start <= time) {
            if !is_step(scope.name) {
                open.push((scope.end(), scope.name));
            }
            next = scopes.next();
        }
        open.retain(|(end, _)| *end > time);
        if let Some((_, name)) = open.last() {
            *counts.entry(*name).or_default() += 1;
        }
    }
}
