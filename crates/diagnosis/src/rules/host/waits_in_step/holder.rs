//! Who holds what a step waits for: another thread of the process that is in one place while the step waits, and hardly ever when it does not. Whether that
//! thread runs or sleeps there does not matter: a lock may be held by who sleeps.

use super::{MAX_HOLDER_OUTSIDE, MIN_HOLDER_SAMPLES};
use crate::finding::Evidence;
use crate::rule::Case;
use analysis::host::step_samples::StepSample;
use analysis::phrase;
use analysis::place::Place;
use std::collections::HashMap;
use timeline::{StackIndex, TrackIndex};

pub struct Holder {
    pub track: TrackIndex,
    pub place: Place,
    /// Waits in which it was there, of all that were seen with it; and the same of what is no wait.
    there: (u64, u64),
    else_there: (u64, u64),
}

/// In more than this part of the waits: by chance it would be there as often as at other times.
const MAJORITY: f64 = 0.5;

/// The thread whose stacks alternate with these waits of the steps' threads.
pub fn find(case: &Case, waits: impl Fn(&StepSample) -> bool) -> Option<Holder> {
    let mut places: HashMap<(TrackIndex, StackIndex), [u64; 2]> = HashMap::new();
    let mut seen: HashMap<TrackIndex, [u64; 2]> = HashMap::new();
    for one in &case.samples.all {
        let when = usize::from(!waits(one));
        for (track, stack) in beside(case, one) {
            seen.entry(track).or_default()[when] += 1;
            places.entry((track, case.frames.home(stack))).or_default()[when] += 1;
        }
    }
    let part = |count: u64, all: u64| count as f64 / all.max(1) as f64;
    let holders = places.iter().filter_map(|((track, stack), there)| {
        let all = seen.get(track)?;
        let (inside, outside) = (part(there[0], all[0]), part(there[1], all[1]));
        let enough = all[0].min(all[1]) as f64 >= case.threshold(MIN_HOLDER_SAMPLES);
        let holds = enough && inside > MAJORITY && outside <= case.threshold(MAX_HOLDER_OUTSIDE) * inside;
        holds.then_some((inside - outside, *track, *stack, (there[0], all[0]), (there[1], all[1])))
    });
    let most = holders.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)).then(b.2.0.cmp(&a.2.0)))?;
    let (_, track, stack, there, else_there) = most;
    Some(Holder { track, place: case.place(stack), there, else_there })
}

impl Holder {
    /// The name of its thread, or its number.
    pub fn thread(&self, case: &Case) -> String {
        let track = &case.timeline.tracks[self.track.0 as usize];
        if track.name.is_empty() { track.tid.to_string() } else { track.name.to_string() }
    }

    pub fn evidence(&self, case: &Case) -> Evidence {
        let text = format!(
            "thread {} is in {} in {} of {} of these waits, and in {} of {} samples otherwise",
            self.thread(case),
            phrase::place(&self.place),
            phrase::count(self.there.0),
            phrase::count(self.there.1),
            phrase::count(self.else_there.0),
            phrase::count(self.else_there.1)
        );
        Evidence { track: Some(self.track), ..Evidence::new(text) }.number("samples", self.there.0 as f64)
    }
}

/// What the other threads of the process were seen in at the same time: within half a period, for threads are read one after the other.
fn beside<'c>(case: &'c Case, one: &StepSample) -> impl Iterator<Item = (TrackIndex, StackIndex)> + use<'c> {
    let (track, time, timeline) = (case.track(one), case.sample(one).time, case.timeline);
    let (process, tolerance) = (timeline.tracks[track.0 as usize].process, case.samples.period_ns / 2);
    let others = timeline.tracks.iter().zip(0..).filter(move |(other, number)| {
        other.process == process && TrackIndex(*number) != track && !other.samples.is_empty()
    });
    others.filter_map(move |(other, number)| {
        let (first, end) = (other.samples.start, other.samples.end);
        let place = first + timeline.samples.time[first..end].partition_point(|at| *at < time);
        let around = [place.checked_sub(1).filter(|place| *place >= first), Some(place).filter(|place| *place < end)];
        let near = around.into_iter().flatten().map(|place| timeline.samples.get(place));
        let nearest = near.min_by_key(|sample| sample.time.abs_diff(time))?;
        (nearest.time.abs_diff(time) <= tolerance).then_some((TrackIndex(number), nearest.stack))
    })
}
