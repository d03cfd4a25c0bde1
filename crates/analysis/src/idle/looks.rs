//! The samples of a thread, each with what it says about an idle device. A sample stands for the time that is nearer to it
//! than to any other, up to two periods away, or to the next one where that shows the same; further off nothing is known.

use super::Cause;
use super::IdleInputs;
use crate::frames::{Frames, is};
use crate::host::step_samples::Doing;
use crate::host::waits::{For, waits_for};
use crate::stats::seek::seek;
use crate::steps::StepSource;
use timeline::{Sample, StackIndex, TrackIndex};

#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub time: u64,
    pub cause: Cause,
    /// The frame to name. 0: none.
    pub frame: StackIndex,
}

/// In periods: how far a look reaches, and how far towards one that shows the same.
const REACH: u64 = 2;
const SAME: u64 = 10;

/// By time.
#[derive(Default, Debug)]
pub struct Looks(pub Vec<Look>);

impl Looks {
    /// Gives every piece of a stretch to the look that stands for it, the rest to `left`.
    pub fn split(
        &self,
        near: &mut usize,
        (start, end): (u64, u64),
        period: u64,
        mut found: impl FnMut(u64, u64, &Look),
        mut left: impl FnMut(u64, u64),
    ) {
        let all = &self.0;
        let mut at = start;
        // The last look that is not after the start: it may stand for it.
        seek(all, near, |look| look.time <= start);
        let mut place = near.saturating_sub(1);
        while let Some(look) = all.get(place) {
            let before = place.checked_sub(1).map(|one| &all[one]);
            let after = all.get(place + 1);
            let same = |other: &Look| (other.cause, other.frame) == (look.cause, look.frame);
            // Stacks that could not be read leave holes: what is the same on both sides was so between.
            let reach = |other: Option<&Look>| period * if other.is_some_and(same) { SAME } else { REACH };
            let middle = |other: &Look| other.time.midpoint(look.time);
            let from = look.time.saturating_sub(reach(before)).max(before.map_or(0, middle));
            let to = look.time.saturating_add(reach(after)).min(after.map_or(u64::MAX, middle));
            if from >= end {
                break;
            }
            let (from, to) = (from.max(at), to.min(end));
            if from < to {
                if at < from {
                    left(at, from);
                }
                found(from, to, look);
                at = to;
            }
            place += 1;
        }
        if at < end {
            left(at, end);
        }
    }

    /// The first look in a stretch.
    pub fn inside(&self, start: u64, end: u64) -> Option<&Look> {
        let place = self.0.partition_point(|look| look.time < start);
        self.0.get(place).filter(|look| look.time < end)
    }
}

/// What the samples of a thread say: those taken outside its recorded calls, and those taken inside. The latter only say which
/// line of the program makes the call.
pub fn of_thread(inputs: IdleInputs, track: TrackIndex, mut in_call: impl FnMut(u64) -> bool) -> (Looks, Looks) {
    let timeline = inputs.timeline;
    let (mut free, mut inside) = (Looks::default(), Looks::default());
    let holders = {
        let process = timeline.tracks[track.0 as usize].process;
        let seen = |range: std::ops::Range<usize>| range.into_iter().any(|index| timeline.samples.get(index).gil);
        timeline.tracks_of(process).any(|track| seen(track.samples.clone()))
    };
    let range = timeline.tracks[track.0 as usize].samples.clone();
    // Samples of the steps were settled already; both lists are in the order of the samples.
    let mut settled = inputs.samples.all.partition_point(|one| (one.sample as usize) < range.start);
    for index in range {
        let sample = timeline.samples.get(index);
        while inputs.samples.all.get(settled).is_some_and(|one| (one.sample as usize) < index) {
            settled += 1;
        }
        let known = inputs.samples.all.get(settled).filter(|one| one.sample as usize == index).map(|one| one.doing);
        let doing = known.unwrap_or_else(|| doing(inputs.frames, &sample, holders));
        let frame = inputs.frames.home(sample.stack);
        if in_call(sample.time) {
            let cause = if sample.active { Cause::Python } else { Cause::Unknown };
            inside.0.push(Look { time: sample.time, cause, frame });
        } else {
            free.0.push(Look { time: sample.time, cause: cause(inputs, &sample, doing), frame });
        }
    }
    (free, inside)
}

/// For threads without steps; what is known of the others is in [`crate::host::step_samples`].
fn doing(frames: &Frames, sample: &Sample, holders: bool) -> Doing {
    let top = frames.on_top(sample.stack);
    match sample {
        _ if top & is::WAITS_FOR_GPU != 0 => Doing::Gpu,
        _ if sample.gil || sample.active && !holders => Doing::Python,
        _ if sample.active => Doing::Native,
        _ if top & is::TAKES_GIL != 0 => Doing::Gil,
        _ => Doing::Waiting,
    }
}

fn cause(inputs: IdleInputs, sample: &Sample, doing: Doing) -> Cause {
    match doing {
        Doing::Gc => Cause::Gc,
        Doing::Gil => Cause::Gil,
        _ if inputs.frames.on_path(sample.stack, is::COMPILES) => Cause::Compile,
        _ if inputs.frames.on_path(sample.stack, is::COMMUNICATES) => Cause::Communication,
        Doing::Python => Cause::Python,
        Doing::Native => Cause::Native,
        Doing::Gpu => Cause::Sync,
        Doing::Waiting => match waits_for(inputs.timeline, inputs.frames, sample.stack) {
            // Inside a step that the program marked there is a request: the loop awaits something for it.
            For::Nothing if !inputs.steps.source.is_marked() => Cause::NoRequest,
            // Without steps nothing says that there is a request.
            For::Lock | For::Io if inputs.steps.source == StepSource::Whole => Cause::NoRequest,
            _ => Cause::Waiting,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_stands_for_what_is_nearest_and_no_further_than_two_periods() {
        let look = |time| Look { time, cause: Cause::Python, frame: StackIndex(time as u32) };
        let looks = Looks(vec![look(100), look(120), look(220)]);
        let mut near = 0;
        let said = |stretch, near: &mut usize| {
            let (mut found, mut left) = (Vec::new(), Vec::new());
            looks.split(near, stretch, 20, |a, b, look| found.push((a, b, look.time)), |a, b| left.push((a, b)));
            (found, left)
        };
        assert_eq!(
            said((50, 270), &mut near),
            (vec![(60, 110, 100), (110, 160, 120), (180, 260, 220)], vec![(50, 60), (160, 180), (260, 270)])
        );
        assert_eq!(said((105, 107), &mut near).0, [(105, 107, 100)]);
        // Going back is allowed: each device is looked at from its start.
        assert_eq!(said((111, 112), &mut near).0, [(111, 112, 120)]);
        assert_eq!(said((300, 310), &mut near).1, [(300, 310)]);
    }

    #[test]
    fn between_two_that_show_the_same_it_was_the_same() {
        let look = |time, frame| Look { time, cause: Cause::Python, frame: StackIndex(frame) };
        let looks = Looks(vec![look(100, 7), look(200, 7), look(400, 8)]);
        let (mut found, mut left) = (Vec::new(), Vec::new());
        looks.split(&mut 0, (100, 400), 20, |a, b, look| found.push((a, b, look.time)), |a, b| left.push((a, b)));
        assert_eq!((found, left), (vec![(100, 150, 100), (150, 240, 200), (360, 400, 400)], vec![(240, 360)]));
    }
}
