//! Which steps stand for steady work: the slow first ones of a process are warm-up, the far out ones are outliers.

use super::Step;
use std::collections::HashMap;
use timeline::{ProcessIndex, Timeline};

/// With fewer there is no telling what is usual.
pub const MIN_STEPS: usize = 8;
/// Slower than usual by less is what any program does.
pub const NOTICEABLE: f64 = 1.5;
/// Of the steps: chance hardly ever goes so many standard deviations far.
pub const MIN_DEVIATIONS: f64 = 5.0;
/// One part of so many may be warm-up: what lasts longer is how the program is.
pub const MAX_PART: usize = 4;

/// `steps` are in order of start.
pub fn mark(timeline: &Timeline, steps: &mut [Step]) {
    let mut by_process: HashMap<ProcessIndex, Vec<usize>> = HashMap::new();
    for (index, step) in steps.iter().enumerate() {
        let process = timeline.tracks[step.track.0 as usize].process;
        by_process.entry(process).or_default().push(index);
    }
    for places in by_process.values().filter(|places| places.len() >= MIN_STEPS) {
        let durations: Vec<u64> = places.iter().map(|place| steps[*place].dur()).collect();
        let warm = warmup(&durations);
        places[..warm].iter().for_each(|place| steps[*place].warmup = true);
        let limit = far_out(&durations[warm..]);
        for (place, dur) in places.iter().zip(&durations).skip(warm) {
            steps[*place].outlier = *dur as f64 > limit;
        }
    }
}

/// How many of the first steps are slower than the second half ever shows by chance: so many times its usual deviation,
/// and noticeably.
fn warmup(durations: &[u64]) -> usize {
    let half = sorted(&durations[durations.len() / 2..]);
    let usual = at(&half, 0.5);
    let deviations = sorted(&half.iter().map(|dur| dur.abs_diff(usual as u64)).collect::<Vec<_>>());
    // 1.4826 turns a median deviation into a standard deviation.
    let limit = (usual + MIN_DEVIATIONS * 1.4826 * at(&deviations, 0.5)).max(NOTICEABLE * usual);
    durations.iter().take(durations.len() / MAX_PART).take_while(|dur| **dur as f64 > limit).count()
}

/// Tukey's outer fence.
fn far_out(durations: &[u64]) -> f64 {
    let durations = sorted(durations);
    let (first, third) = (at(&durations, 0.25), at(&durations, 0.75));
    (third + 3.0 * (third - first)).max(NOTICEABLE * at(&durations, 0.5))
}

fn sorted(durations: &[u64]) -> Vec<u64> {
    let mut durations = durations.to_vec();
    durations.sort_unstable();
    durations
}

fn at(sorted: &[u64], fraction: f64) -> f64 {
    let place = (sorted.len().saturating_sub(1) as f64 * fraction).round() as usize;
    sorted.get(place).copied().unwrap_or(0) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_first_steps_are_warmup_and_a_slow_later_one_is_an_outlier() {
        let mut durations = vec![100u64, 90, 40, 41, 40, 42, 40, 39, 41, 40, 40, 300, 41, 40];
        assert_eq!(warmup(&durations), 2);
        assert!(far_out(&durations[2..]) < 300.0 && far_out(&durations[2..]) > 42.0);
        durations.sort_unstable();
        assert_eq!(warmup(&durations), 0);
    }

    #[test]
    fn steps_that_are_all_alike_or_empty_are_neither() {
        assert_eq!(warmup(&[0; 10]), 0);
        assert_eq!(warmup(&[7; 10]), 0);
        assert!(far_out(&[7; 10]) > 7.0);
    }
}
