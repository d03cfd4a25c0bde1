//! The time that the steps take, as stretches that do not overlap, per track or across tracks, and how much of any span
//! lies in them.

use crate::stats::share::Tally;
use crate::steps::{StepSource, Steps};
use std::ops::Range;
use timeline::{Timeline, TrackIndex};

/// A stretch of a track in which a step was open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    pub track: TrackIndex,
    pub start: u64,
    pub end: u64,
    /// The first of its steps.
    pub step: u32,
}

#[derive(Debug, Default)]
pub struct StepSpans {
    /// By track, then start.
    all: Vec<Window>,
    /// The length of all windows before each, and of all at the end.
    before: Vec<u128>,
    /// Steps that were open at the same time on one track.
    pub overlapping: bool,
}

/// A recording without steps is cut into so many stretches, for its spread to be known.
const STRETCHES: u64 = 32;

impl StepSpans {
    /// Warm-up is left out.
    pub fn of_steps(steps: &Steps) -> StepSpans {
        let mut all: Vec<Window> = Vec::with_capacity(steps.count());
        for step in steps.measured() {
            all.push(Window { track: step.track, start: step.start, end: step.end, step: step.index });
        }
        if steps.source == StepSource::Whole {
            all = all.iter().flat_map(cut).collect();
        }
        all.sort_by_key(|window| (window.track, window.start));
        StepSpans::joined(all)
    }

    /// Those of the windows that fit.
    pub fn only(&self, fits: impl Fn(&Window) -> bool) -> StepSpans {
        StepSpans::joined(self.all.iter().filter(|window| fits(window)).copied().collect())
    }

    /// The time in which any step was open on any of the tracks that fit.
    pub fn across(&self, fits: impl Fn(TrackIndex) -> bool) -> StepSpans {
        let mut all: Vec<Window> = self.all.iter().filter(|window| fits(window.track)).copied().collect();
        all.iter_mut().for_each(|window| window.track = TrackIndex(0));
        all.sort_by_key(|window| window.start);
        StepSpans::joined(all)
    }

    /// `all` is by track and start.
    fn joined(all: Vec<Window>) -> StepSpans {
        let mut windows = StepSpans::default();
        for window in all.into_iter().filter(|window| window.end > window.start) {
            match windows.all.last_mut() {
                Some(last) if last.track == window.track && window.start < last.end => {
                    last.end = last.end.max(window.end);
                    windows.overlapping = true;
                }
                _ => windows.all.push(window),
            }
        }
        let mut sum = 0;
        windows.before.push(0);
        for window in &windows.all {
            sum += u128::from(window.end - window.start);
            windows.before.push(sum);
        }
        windows
    }

    pub fn all(&self) -> &[Window] {
        &self.all
    }

    pub fn total(&self) -> u64 {
        u64::try_from(self.before.last().copied().unwrap_or(0)).unwrap_or(u64::MAX)
    }

    /// Laplace's rule of what was seen in all of them: a window counts for as much as it is long.
    pub fn repeats(&self) -> f64 {
        let mut lengths = Tally::default();
        self.all.iter().map(|window| (window.end - window.start) as f64).for_each(|length| lengths.add(length, length));
        lengths.repeats()
    }

    /// The tracks that have windows, each with where they are.
    pub fn tracks(&self) -> impl Iterator<Item = (TrackIndex, Range<usize>)> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let track = self.all.get(from)?.track;
            let range = from..from + self.all[from..].partition_point(|window| window.track == track);
            from = range.end;
            Some((track, range))
        })
    }

    fn of(&self, track: TrackIndex) -> Range<usize> {
        let from = self.all.partition_point(|window| window.track < track);
        from..self.all.partition_point(|window| window.track <= track)
    }

    /// The window of a track that holds the moment.
    pub fn at(&self, track: TrackIndex, time: u64) -> Option<usize> {
        let range = self.of(track);
        let place = range.start + self.all[range.clone()].partition_point(|window| window.start <= time);
        (place > range.start && time < self.all[place - 1].end).then(|| place - 1)
    }

    /// How much of the span lies in windows of the track.
    pub fn overlap(&self, track: TrackIndex, start: u64, end: u64) -> u64 {
        let range = self.of(track);
        let up_to = |time: u64| {
            let place = range.start + self.all[range.clone()].partition_point(|window| window.start < time);
            if place == range.start {
                return self.before[range.start];
            }
            let last = &self.all[place - 1];
            self.before[place - 1] + u128::from(time.min(last.end) - last.start)
        };
        if self.all.is_empty() || end <= start { 0 } else { (up_to(end) - up_to(start)) as u64 }
    }
}

fn cut(window: &Window) -> impl Iterator<Item = Window> + use<> {
    let (window, length) = (*window, (window.end - window.start).div_ceil(STRETCHES).max(1));
    (0..STRETCHES).map(move |piece| {
        let start = window.start.saturating_add(piece * length).min(window.end);
        Window { start, end: start.saturating_add(length).min(window.end), ..window }
    })
}

/// Whether a track belongs to the process.
pub fn of_process(timeline: &Timeline, process: timeline::ProcessIndex) -> impl Fn(TrackIndex) -> bool + '_ {
    move |track| timeline.tracks.get(track.0 as usize).is_some_and(|track| track.process == process)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(spans: &[(u32, u64, u64)]) -> StepSpans {
        let window = |(step, (track, start, end)): (usize, &(u32, u64, u64))| Window {
            track: TrackIndex(*track),
            start: *start,
            end: *end,
            step: step as u32,
        };
        StepSpans::joined(spans.iter().enumerate().map(window).collect())
    }

    #[test]
    fn overlapping_steps_are_one_window() {
        let windows = windows(&[(0, 10, 30), (0, 20, 50), (0, 50, 60), (2, 0, 5), (2, 7, 7)]);
        assert_eq!(windows.all().iter().map(|w| (w.start, w.end)).collect::<Vec<_>>(), [(10, 50), (50, 60), (0, 5)]);
        assert!(windows.overlapping);
        assert_eq!(windows.total(), 55);
        assert_eq!(windows.tracks().collect::<Vec<_>>(), [(TrackIndex(0), 0..2), (TrackIndex(2), 2..3)]);
    }

    #[test]
    fn a_span_lies_in_windows_by_so_much() {
        let windows = windows(&[(0, 10, 20), (0, 30, 40), (1, 0, 100)]);
        let overlap = |track, start, end| windows.overlap(TrackIndex(track), start, end);
        assert_eq!([overlap(0, 0, 9), overlap(0, 15, 35), overlap(0, 0, 99), overlap(1, 40, 50)], [0, 10, 20, 10]);
        assert_eq!([overlap(7, 0, 9), overlap(0, 35, 15), overlap(0, 20, 30), overlap(1, 99, 900)], [0, 0, 0, 1]);
        assert_eq!(
            [9, 10, 19, 20, 35, 99].map(|t| windows.at(TrackIndex(0), t)),
            [None, Some(0), Some(0), None, Some(1), None]
        );
    }
}
