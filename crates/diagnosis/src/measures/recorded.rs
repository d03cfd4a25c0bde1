//! Slices of a kind inside the steps, exactly: how much of every step they take, and which are the longest. And where in them the calls of functions are recorded.

use crate::rule::Case;
use analysis::host::breakdown;
use analysis::stats::share::Tally;
use analysis::steps::StepSource;
use analysis::steps::windows::Window;
use timeline::{Slice, TrackIndex};

#[derive(Debug, Default)]
pub struct Recorded {
    /// One stretch a step: nanoseconds inside it, and its length.
    pub tally: Tally,
    /// Slices that lie in steps, at least in part.
    pub count: u64,
    /// Steps that have any.
    pub windows: u64,
    pub longest: Vec<(TrackIndex, Slice)>,
}

/// As many as a reader looks at.
const MAX_SHOWN: usize = 3;

/// The outermost slices that fit, on the steps' own tracks.
pub fn inside(case: &Case, fits: impl Fn(&Slice) -> bool) -> Recorded {
    let mut recorded = Recorded::default();
    for (track, range) in case.windows.tracks() {
        let windows = &case.windows.all()[range];
        let mut parts = vec![0u64; windows.len()];
        let mut done = 0;
        let mut first = 0;
        for index in case.timeline.tracks[track.0 as usize].slices.clone() {
            let slice = case.timeline.slices.get(index);
            if !fits(&slice) || slice.end() <= done {
                continue;
            }
            let start = slice.start.max(done);
            done = slice.end();
            first += windows[first..].partition_point(|window| window.end <= start);
            let mut touched = false;
            for (place, window) in windows.iter().enumerate().skip(first).take_while(|(_, window)| window.start < done)
            {
                parts[place] += done.min(window.end).saturating_sub(start.max(window.start));
                touched = true;
            }
            if touched {
                recorded.count += 1;
                recorded.keep(track, slice);
            }
        }
        for (window, part) in windows.iter().zip(&parts) {
            recorded.tally.add(*part as f64, (window.end - window.start) as f64);
            recorded.windows += u64::from(*part > 0);
        }
    }
    recorded
}

/// The threads that do the work of the steps, each with the stretches in which it does.
pub fn call_stretches(case: &Case) -> Vec<(TrackIndex, Vec<Window>)> {
    breakdown::call_stretches(case.timeline, &case.windows, case.steps.source != StepSource::Whole)
}

impl Recorded {
    fn keep(&mut self, track: TrackIndex, slice: Slice) {
        if self.longest.len() == MAX_SHOWN && self.longest.last().is_some_and(|(_, last)| last.dur >= slice.dur) {
            return;
        }
        let place = self.longest.partition_point(|(_, kept)| kept.dur >= slice.dur);
        self.longest.insert(place, (track, slice));
        self.longest.truncate(MAX_SHOWN);
    }
}
