//! Which steps a replay looks at: all of them where they are few, else runs of neighbouring steps spread over the recording, so
//! that a gain costs the same whether an hour was recorded or a second.

use crate::steps::{Step, StepSource, Steps};
use timeline::Timeline;

/// So many events (calls and work) are replayed in some milliseconds.
const ENOUGH_EVENTS: usize = 40_000;
/// Steps that follow each other, so that work which trails behind its step is seen to.
const NEIGHBOURS: usize = 4;

/// Stretches of time, by start; they do not overlap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chosen(Vec<(u64, u64)>);

impl Chosen {
    pub fn all() -> Chosen {
        Chosen(vec![(0, u64::MAX)])
    }

    /// None: a recording without steps that is too large to be replayed as one.
    pub fn few(timeline: &Timeline, steps: &Steps) -> Option<Chosen> {
        let measured: Vec<&Step> = steps.measured().collect();
        let events = timeline.slices.len() + timeline.gpu.work.len();
        let each = events.div_ceil(measured.len().max(1)).max(1);
        let count = (ENOUGH_EVENTS / each).max(1);
        if count >= measured.len() {
            let small = steps.source != StepSource::Whole || events <= ENOUGH_EVENTS;
            return small.then(Chosen::all);
        }
        let length = count.min(NEIGHBOURS);
        let runs = count / length;
        // Each run in the middle of its part of the recording.
        let first = |run: usize| (2 * run + 1) * measured.len() / (2 * runs) - length / 2;
        let run = |run: usize| {
            let from = first(run).min(measured.len() - length);
            let steps = &measured[from..from + length];
            (steps[0].start, steps.iter().map(|step| step.end).max().unwrap_or(0))
        };
        let mut ranges: Vec<(u64, u64)> = (0..runs).map(run).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, last| {
            let joins = next.0 < last.1;
            if joins {
                last.1 = last.1.max(next.1);
            }
            joins
        });
        Some(Chosen(ranges))
    }

    pub fn ranges(&self) -> &[(u64, u64)] {
        &self.0
    }

    pub fn has(&self, time: u64) -> bool {
        let place = self.0.partition_point(|range| range.0 <= time);
        place > 0 && time < self.0[place - 1].1
    }

    /// A step that lies in one stretch as a whole.
    pub fn has_step(&self, step: &Step) -> bool {
        let place = self.0.partition_point(|range| range.0 <= step.start);
        place > 0 && step.end <= self.0[place - 1].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(count: u64, calls: u64) -> (Timeline, Steps) {
        let mut text = String::from("track main\n");
        for step in 0..count {
            text.push_str(&format!("step s {}us..{}us\n", step * 100, step * 100 + 90));
            for call in 0..calls {
                text.push_str(&format!("api cudaLaunchKernel {0}us..{0}us\n", step * 100 + call % 90));
            }
        }
        let timeline = Timeline::from_text(&text).unwrap();
        let steps = Steps::find(&timeline, None);
        (timeline, steps)
    }

    #[test]
    fn few_steps_are_all_replayed() {
        let (timeline, steps) = steps(50, 3);
        assert_eq!(Chosen::few(&timeline, &steps), Some(Chosen::all()));
    }

    #[test]
    fn of_many_steps_runs_are_taken_from_the_whole_recording() {
        let (timeline, steps) = steps(100, 3999);
        let chosen = Chosen::few(&timeline, &steps).unwrap();
        let taken: Vec<u32> = steps.measured().filter(|step| chosen.has_step(step)).map(|step| step.index).collect();
        assert!((8..=10).contains(&taken.len()), "{taken:?}");
        assert!(taken[0] < 40 && *taken.last().unwrap() > 60, "{taken:?}");
        assert!(taken.windows(2).filter(|two| two[1] == two[0] + 1).count() >= 6, "{taken:?}");
    }

    #[test]
    fn a_large_recording_without_steps_is_not_replayed_as_one() {
        let text = format!("track main\n{}", "api cudaLaunchKernel 1us..2us\n".repeat(ENOUGH_EVENTS + 1));
        let timeline = Timeline::from_text(&text).unwrap();
        assert_eq!(Chosen::few(&timeline, &Steps::find(&timeline, None)), None);
    }
}
