//! Which steps are slow, which are usual, and which one stands for all: the median.

use crate::steps::{Step, StepSource, Steps};

/// Fewer steps have no tail.
pub const FEWEST: usize = 8;
/// Slow are the slowest in twenty, where they take a tenth longer than usual: less is what any program does.
pub const SLOW_PERCENT: usize = 95;
pub const NOTICEABLE: f64 = 1.1;
/// So many of a group settle its mean.
const MOST: usize = 200;

#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// Indices of steps: the slow by how slow, the usual by how near to the median.
    pub slow: Vec<u32>,
    pub usual: Vec<u32>,
    pub median: Option<u32>,
    /// How many are slow; `slow` has the slowest of them.
    pub all_slow: usize,
    /// By step: 0 none, else one more than the group.
    marks: Vec<u8>,
}

pub const USUAL: usize = 0;
pub const SLOW: usize = 1;

impl Groups {
    pub fn new(steps: &Steps) -> Groups {
        let mut groups = Groups::default();
        if steps.source == StepSource::Whole {
            return groups;
        }
        let p50 = steps.p50();
        groups.median = steps.measured().find(|step| step.dur() == p50).map(|step| step.index);
        if steps.count() < FEWEST {
            return groups;
        }
        let limit = steps.percentile(SLOW_PERCENT).max((p50 as f64 * NOTICEABLE) as u64 + 1);
        let by = |key: fn(&Step, u64) -> u64, fits: &dyn Fn(&Step) -> bool| {
            let mut all: Vec<&Step> = steps.measured().filter(|step| fits(step)).collect();
            all.sort_by_key(|step| (key(step, p50), step.index));
            all.iter().map(|step| step.index).collect::<Vec<u32>>()
        };
        groups.slow = by(|step, _| u64::MAX - step.dur(), &|step| step.dur() >= limit);
        groups.all_slow = groups.slow.len();
        groups.slow.truncate(MOST);
        groups.usual = by(|step, p50| step.dur().abs_diff(p50), &|step| step.dur() < limit);
        // The middle half, for both tails have reasons of their own.
        groups.usual.truncate(MOST.min(steps.count().div_ceil(2)));
        groups.marks = vec![0; steps.steps.len()];
        groups.usual.iter().for_each(|step| groups.marks[*step as usize] = USUAL as u8 + 1);
        groups.slow.iter().for_each(|step| groups.marks[*step as usize] = SLOW as u8 + 1);
        groups
    }

    /// The group of a step.
    pub fn of(&self, step: u32) -> Option<usize> {
        (*self.marks.get(step as usize)? as usize).checked_sub(1)
    }

    pub fn count(&self, group: usize) -> usize {
        if group == SLOW { self.slow.len() } else { self.usual.len() }
    }
}
