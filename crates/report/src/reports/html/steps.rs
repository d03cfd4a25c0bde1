//! The steps on the page: those of the timeline's lane, and how busy a device was in them. Of more than the page can hold, one of
//! each few neighbours stands for them, over the whole run, with its own number; how many there are goes with them.

use super::names::short;
use super::pack;
use crate::units::count;
use analysis::device::gpu::DeviceMetrics;
use analysis::{Step, StepSource};
use diagnosis::Diagnosis;
use diagnosis::wording;
use serde::Serialize;
use timeline::Timeline;

const MOST_STEPS: usize = 15_000;
/// Bars beside each other: as many as can be told apart.
const MOST_BARS: usize = 240;

#[derive(Serialize)]
pub struct Steps {
    name: String,
    /// Which they are, and why.
    why: String,
    /// How many there are; fewer may be shown.
    all: usize,
    /// Which they are, from 0; empty where all are shown.
    number: String,
    start: String,
    dur: String,
    /// 1 for those of warm-up.
    warmup: String,
}

/// How much of each step a device was at work in; tenths of a percent.
#[derive(Serialize)]
pub struct PerStep {
    all: usize,
    number: String,
    busy: String,
}

pub fn steps(timeline: &Timeline, diagnosis: &Diagnosis) -> Steps {
    let (steps, places) = (&diagnosis.steps, shown(diagnosis));
    let shown = || places.iter().map(|place| &steps.steps[*place]);
    let all = if steps.source == StepSource::Whole { 0 } else { steps.steps.len() };
    Steps {
        name: short(&steps.name),
        why: wording::steps::why(steps),
        all,
        number: if places.len() < all { pack::delta(places.iter().map(|place| *place as i64)) } else { String::new() },
        start: pack::delta(shown().map(|step| step.start.saturating_sub(timeline.start) as i64)),
        dur: pack::plain(shown().map(Step::dur)),
        warmup: pack::plain(shown().map(|step| u64::from(step.warmup))),
    }
}

/// What is not drawn of them, for the reader to know.
pub fn left_out(diagnosis: &Diagnosis) -> Option<String> {
    let (all, shown) = (diagnosis.steps.steps.len(), shown(diagnosis).len());
    let said = || {
        let (shown, all) = (count(shown as u64), count(all as u64));
        format!("{shown} of {all} steps are drawn, the longest of neighbours; every number is of all of them")
    };
    (0 < shown && shown < all).then(said)
}

/// The longest of neighbours. A long one of the warm-up does not hide one that counts.
fn shown(diagnosis: &Diagnosis) -> Vec<usize> {
    match diagnosis.steps.source {
        StepSource::Whole => Vec::new(),
        _ => thinned(&diagnosis.steps.steps, MOST_STEPS, |step| (!step.warmup, step.dur())),
    }
}

pub fn per_step(timeline: &Timeline, diagnosis: &Diagnosis, device: &DeviceMetrics) -> PerStep {
    let bars = bars(timeline, diagnosis, device);
    PerStep {
        all: device.per_step_busy.len(),
        number: pack::delta(bars.iter().map(|bar| i64::from(bar.0))),
        busy: pack::plain(bars.iter().map(|bar| bar.1)),
    }
}

/// The least busy of neighbours: number of the step, and tenths of a percent.
fn bars(timeline: &Timeline, diagnosis: &Diagnosis, device: &DeviceMetrics) -> Vec<(u32, u64)> {
    let own = |step: &&Step| timeline.tracks[step.track.0 as usize].process == device.process && step.dur() > 0;
    let shares = device.per_step_busy.iter().map(|share| (share * 1e3).round() as u64);
    let steps: Vec<(u32, u64)> = diagnosis.steps.measured().filter(own).map(|step| step.index).zip(shares).collect();
    thinned(&steps, MOST_BARS, |(_, busy)| u64::MAX - busy).into_iter().map(|place| steps[place]).collect()
}

/// At most so many of all, by place: neighbours are one group each, and of a group the highest is shown, of several such the first.
fn thinned<T, K: Ord>(all: &[T], most: usize, rank: impl Fn(&T) -> K) -> Vec<usize> {
    let groups = all.len().min(most);
    let begin = |group: usize| group * all.len() / groups;
    let highest = |group: usize| (begin(group)..begin(group + 1)).rev().max_by_key(|place| rank(&all[*place]));
    (0..groups).filter_map(highest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_neighbours_the_highest_stands_for_them_over_the_whole_run() {
        assert_eq!(thinned(&[5, 9, 1, 1, 7, 3, 8], 3, |value| *value), [1, 2, 6]);
        assert_eq!(thinned(&[5, 9, 1], 3, |value| *value), [0, 1, 2]);
        assert_eq!(thinned(&[0u64; 0], 3, |value| *value), [0usize; 0]);
    }

    /// As many steps as no page holds; the last is the longest, and the slow one in between is there.
    #[test]
    fn the_last_step_is_on_the_page() {
        let long = MOST_STEPS * 2 + 1;
        let mut text = format!("track main\n repeat {} every 10us\n step decode 0..5us\n end\n", long - 1);
        text += &format!("step decode {}us..{}us\n", 10 * (long - 1), 10 * (long - 1) + 9);
        let timeline = Timeline::from_text(&text).unwrap();
        let diagnosis = diagnosis::diagnose(&timeline, &diagnosis::Options::default());
        let shown = shown(&diagnosis);
        assert_eq!((shown.len(), shown.last()), (MOST_STEPS, Some(&(long - 1))));
        assert!(shown.windows(2).all(|pair| pair[0] < pair[1] && pair[1] - pair[0] <= 4), "evenly over the run");
        assert_eq!(steps(&timeline, &diagnosis).all, long);
        let said = left_out(&diagnosis).unwrap();
        assert_eq!(said, "15,000 of 30,001 steps are drawn, the longest of neighbours; every number is of all of them");
    }

    #[test]
    fn a_step_in_which_the_device_is_idle_is_among_the_bars() {
        let mut text = "track main\n stream 7\n".to_owned();
        for number in 0..1000 {
            let at = |us: u64| format!("{}us", 100 * number + us);
            text += &format!("step decode {}..{}\n", at(0), at(80));
            if number != 777 {
                text += &format!("api cudaLaunchKernel {}..{}\n kernel k {}..{}\n", at(1), at(2), at(10), at(50));
            }
        }
        let timeline = Timeline::from_text(&text).unwrap();
        let diagnosis = diagnosis::diagnose(&timeline, &diagnosis::Options::default());
        let device = &diagnosis.gpu.as_ref().unwrap().devices[0];
        let bars = bars(&timeline, &diagnosis, device);
        assert_eq!((bars.len(), per_step(&timeline, &diagnosis, device).all), (MOST_BARS, 1000));
        let idle: Vec<u32> = bars.iter().filter(|bar| bar.1 == 0).map(|bar| bar.0).collect();
        assert_eq!(idle, [777]);
    }
}
