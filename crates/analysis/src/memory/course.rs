//! How an amount of memory goes over the steps: what there is at the end of each and at most in it, and from that whether it drifts, jumps once, or
//! comes and goes. From which size on that matters is left to the rules.

use super::growth::{LEAST_STEPS, MOST_WINDOWS, PARTS, trend};
use crate::steps::{StepSource, Steps};
use timeline::{ProcessIndex, Timeline};

/// Stretches of a process's time, one behind the other: its steps where there are enough, else equal parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Windows {
    /// Where the first one begins, and where each ends.
    pub start: u64,
    pub ends: Vec<u64>,
    /// Steps in all of them, and in each but for the first, which has the rest. 0: they are parts of the recording.
    pub steps: u64,
    every: u64,
}

impl Windows {
    /// `from`: where parts begin, if there are no steps.
    pub fn of(timeline: &Timeline, steps: &Steps, process: ProcessIndex, from: u64) -> Windows {
        let own = |track: timeline::TrackIndex| {
            timeline.tracks.get(track.0 as usize).is_some_and(|track| track.process == process)
        };
        let steps = steps.steps.iter().filter(|step| steps.source != StepSource::Whole && own(step.track));
        let mut ends: Vec<u64> = steps.map(|step| step.end).collect();
        ends.sort_unstable();
        if ends.len() < LEAST_STEPS {
            let ended = timeline.processes.get(process.0 as usize).and_then(|process| process.ended_ns);
            let dur = ended.unwrap_or(timeline.end).saturating_sub(from);
            let part = |number: usize| from + (u128::from(dur) * number as u128 / PARTS as u128) as u64;
            return Windows { start: from, ends: (1..=PARTS).map(part).collect(), steps: 0, every: 0 };
        }
        let (steps, every) = (ends.len() as u64, ends.len().div_ceil(MOST_WINDOWS).max(1));
        let mut ends: Vec<u64> = ends.into_iter().rev().step_by(every).collect();
        ends.reverse();
        Windows { start: timeline.start, ends, steps, every: every as u64 }
    }
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Course {
    /// At the end of each window, and the most in it.
    pub held: Vec<u64>,
    pub most: Vec<u64>,
    /// When each of them ends.
    pub ends: Vec<u64>,
    /// Standard deviations by which the order of what is held is more rising than chance (Mann and Kendall).
    pub trend: f64,
    /// Steps in all windows; 0: they are parts of the recording.
    pub steps: u64,
    /// Steps after the first window.
    pub steps_after: u64,
}

/// Memory that is there only for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spike {
    /// Beyond what is usually held, and held at the end.
    pub bytes: u64,
    /// Windows that have more than half of that, and the one that has most.
    pub windows: u64,
    pub window: usize,
}

impl Course {
    /// `points`: bytes from each of these times on, sorted by time.
    pub fn of(windows: &Windows, points: &[(u64, u64)]) -> Course {
        let (mut held, mut most, mut next, mut now) = (Vec::new(), Vec::new(), 0, 0);
        for end in &windows.ends {
            let mut highest = now;
            while let Some((time, bytes)) = points.get(next).filter(|(time, _)| time <= end) {
                // What came and went before the windows is no part of them.
                highest = if *time < windows.start { *bytes } else { highest.max(*bytes) };
                (now, next) = (*bytes, next + 1);
            }
            held.push(now);
            most.push(highest);
        }
        let trend = trend(&held);
        let steps_after = windows.ends.len().saturating_sub(1) as u64 * windows.every;
        Course { held, most, ends: windows.ends.clone(), trend, steps: windows.steps, steps_after }
    }

    /// After the first window: what start-up took.
    pub fn base(&self) -> u64 {
        self.held.first().copied().unwrap_or(0)
    }

    pub fn last(&self) -> u64 {
        self.held.last().copied().unwrap_or(0)
    }

    pub fn peak(&self) -> u64 {
        self.most.iter().copied().max().unwrap_or(0)
    }

    /// When it has most.
    pub fn growth(&self) -> u64 {
        self.last().saturating_sub(self.base())
    }

    /// Growth by step. None: there are no steps.
    pub fn per_step(&self) -> Option<u64> {
        (self.steps > 0).then(|| self.growth().checked_div(self.steps_after)).flatten()
    }

    /// The window with the largest rise after the first one, and that rise.
    pub fn jump(&self) -> (usize, u64) {
        let rises = self.held.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).enumerate();
        rises.max_by_key(|(at, rise)| (*rise, usize::MAX - at)).map_or((0, 0), |(at, rise)| (at + 1, rise))
    }

    /// Windows after the first one that end with more than they began with.
    pub fn rises(&self) -> usize {
        self.held.windows(2).filter(|pair| pair[0] < pair[1]).count()
    }

    /// The part of the growth that the last third of the windows has.
    pub fn late(&self) -> f64 {
        self.part(self.held.len() * 2 / 3, self.held.len().saturating_sub(1))
    }

    /// The least part of the growth that any third of the windows has.
    pub fn steady(&self) -> f64 {
        let last = self.held.len().saturating_sub(1);
        (0..3).map(|third| self.part(last * third / 3, last * (third + 1) / 3)).fold(1.0, f64::min)
    }

    fn part(&self, from: usize, to: usize) -> f64 {
        let at = |place: usize| self.held.get(place).copied().unwrap_or(0);
        if self.growth() == 0 { 0.0 } else { at(to).saturating_sub(at(from)) as f64 / self.growth() as f64 }
    }

    /// What comes and goes after the first window. Memory that the program holds and gives back at its end does neither.
    pub fn spike(&self) -> Spike {
        let mut sorted = self.held.clone();
        sorted.sort_unstable();
        let usual = sorted.get(sorted.len() / 2).copied().unwrap_or(0).max(self.last());
        let above = |at: usize| self.most[at].saturating_sub(usual);
        let highest = (1..self.most.len()).max_by_key(|at| (above(*at), usize::MAX - at));
        let Some(window) = highest else { return Spike { bytes: 0, windows: 0, window: 0 } };
        let bytes = above(window);
        let windows = (1..self.most.len()).filter(|at| above(*at) > bytes / 2).count() as u64;
        Spike { bytes, windows, window }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(held: &[u64], most: &[u64]) -> Course {
        let ends: Vec<u64> = (1..=held.len() as u64).map(|at| at * 100).collect();
        let windows = Windows { start: 0, steps: held.len() as u64, every: 1, ends };
        let points = held.iter().zip(most).enumerate().flat_map(|(at, (held, most))| {
            let start = at as u64 * 100;
            [(start + 10, *most), (start + 20, *held)]
        });
        Course::of(&windows, &points.collect::<Vec<_>>())
    }

    #[test]
    fn a_drift_has_a_rate_and_parts_everywhere() {
        let held: Vec<u64> = (0..13).map(|at| 100 + at * 32).collect();
        let drift = course(&held, &held);
        assert_eq!((drift.base(), drift.growth(), drift.per_step()), (100, 384, Some(32)));
        assert!(drift.trend > 4.0 && drift.rises() == 12, "{drift:?}");
        assert!((drift.late() - 1.0 / 3.0).abs() < 1e-9 && (drift.steady() - 1.0 / 3.0).abs() < 1e-9, "{drift:?}");
        assert_eq!(drift.spike().bytes, 0);
    }

    #[test]
    fn a_jump_is_told_from_what_comes_and_goes() {
        let jump = course(&[5, 5, 5, 905, 905, 905, 905], &[5, 5, 5, 905, 905, 905, 905]);
        assert_eq!((jump.jump(), jump.rises(), jump.late(), jump.spike().bytes), ((3, 900), 1, 0.0, 0));
        let spike = course(&[5, 5, 5, 5, 5, 5], &[5, 5, 800, 5, 790, 5]);
        assert_eq!(spike.spike(), Spike { bytes: 795, windows: 2, window: 2 });
        let freed_at_the_end = course(&[700, 700, 700, 700, 0], &[700, 700, 700, 700, 700]);
        assert_eq!(freed_at_the_end.spike().bytes, 0);
        assert_eq!((course(&[], &[]).spike().bytes, course(&[], &[]).jump()), (0, (0, 0)));
    }

    #[test]
    fn steps_are_windows_of_their_own_process() {
        let text = "track main\n repeat 100 every 1ms\n step request 0..900us\n end\n process other\n track main";
        let timeline = Timeline::from_text(text).unwrap();
        let steps = Steps::find(&timeline, None);
        let own = Windows::of(&timeline, &steps, ProcessIndex(0), 0);
        assert!(own.steps == 100 && own.ends.len() <= MOST_WINDOWS && own.ends.is_sorted(), "{own:?}");
        let other = Windows::of(&timeline, &steps, ProcessIndex(1), 1_000_000);
        assert_eq!((other.steps, other.ends.len(), other.ends.last()), (0, PARTS, Some(&timeline.end)));
    }
}
