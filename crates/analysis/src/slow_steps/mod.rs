//! What made the slow steps slow: the slowest in twenty beside the usual ones, by what their threads did, by what the device did
//! and why it was idle. What differs most comes first, with its place.

mod compare;
mod device;
mod host;

use crate::steps::groups::Groups;

use crate::StepAnalysis;
use crate::host::breakdown::PartKind;
use crate::idle::Cause;
use crate::place::Place;
use crate::steps::groups::FEWEST;
use crate::steps::{Step, StepSource};

#[derive(Clone, PartialEq, Debug)]
pub struct SlowSteps {
    pub comparison: Comparison,
    /// The steps that are slow, slowest first; at most 200 of `all_slow`.
    pub slow: Vec<u32>,
    pub all_slow: usize,
    /// How many usual ones they are compared with, nearest to the median.
    pub usual: usize,
    /// Means of both groups.
    pub slow_ns: u64,
    pub usual_ns: u64,
    /// What takes more time in the slow ones (or less), largest first.
    pub differences: Vec<Difference>,
    /// What there is more of (or less), in a step.
    pub counts: Vec<Count>,
}

/// How far slow and typical steps can be compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Comparison {
    /// Too few steps to tell slow ones from typical ones.
    TooFew,
    /// None is slow.
    NoneSlow,
    /// Steps overlap on a thread.
    Overlapping,
    Compared,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    pub side: Side,
    pub place: Place,
    /// Means of a step.
    pub slow_ns: u64,
    pub usual_ns: u64,
}

impl Difference {
    pub fn more_ns(&self) -> i64 {
        self.slow_ns as i64 - self.usual_ns as i64
    }
}

/// Whose time it is. Items of the thread add up to the step, and so do those of the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Thread(PartKind),
    Kernel,
    Copy,
    Idle(Cause),
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Side::Thread(_) => "thread",
            Side::Kernel => "kernel",
            Side::Copy => "copy",
            Side::Idle(_) => "gpu_idle",
        }
    }
}

#[derive(Clone, PartialEq, Debug)]
pub struct Count {
    pub what: Counted,
    pub slow: f64,
    pub usual: f64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counted {
    Kernels,
    Copies,
    CopiedBytes,
    Allocations,
}

/// None: there are no steps, or none to compare.
pub fn measure(case: &StepAnalysis) -> Option<SlowSteps> {
    let steps = &case.steps;
    if steps.source == StepSource::Whole || steps.count() < 2 {
        return None;
    }
    let groups = Groups::new(steps);
    let mean = |all: &[u32]| {
        let sum = all.iter().map(|index| u128::from(steps.steps[*index as usize].dur())).sum::<u128>();
        sum.checked_div(all.len() as u128).unwrap_or(0) as u64
    };
    let mut slow = SlowSteps {
        comparison: Comparison::Compared,
        all_slow: groups.all_slow,
        usual: groups.usual.len(),
        slow_ns: mean(&groups.slow),
        usual_ns: mean(&groups.usual),
        slow: groups.slow.clone(),
        differences: Vec::new(),
        counts: Vec::new(),
    };
    slow.comparison = match () {
        _ if steps.count() < FEWEST => Comparison::TooFew,
        _ if groups.slow.is_empty() => Comparison::NoneSlow,
        _ if case.windows.overlapping => Comparison::Overlapping,
        _ => {
            compare::fill(case, &groups, &mut slow);
            Comparison::Compared
        }
    };
    Some(slow)
}

/// What explains that the slow steps take longer, most first. A tenth of that is worth a word; less explains nothing.
pub fn telling(slow: &SlowSteps) -> impl Iterator<Item = &Difference> {
    let more = slow.slow_ns.saturating_sub(slow.usual_ns);
    compare::telling(slow).filter(move |one| one.more_ns() * 10 >= more as i64)
}

/// The slowest, to jump to.
pub fn slowest<'a>(steps: &'a crate::steps::Steps, slow: &'a SlowSteps) -> impl Iterator<Item = &'a Step> {
    slow.slow.iter().filter_map(|index| steps.steps.get(*index as usize))
}
