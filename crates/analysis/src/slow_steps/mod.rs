//! What made the slow steps slow: the slowest in twenty beside the usual ones, by what their threads did, by what the device did
//! and why it was idle. What differs most is named first, with its place.

mod compare;
mod device;
mod host;

use crate::steps::groups::Groups;

use crate::StepAnalysis;
use crate::host::breakdown::PartKind;
use crate::idle::Cause;
use crate::phrase;
use crate::place::Place;
use crate::steps::groups::FEWEST;
use crate::steps::{Step, StepSource};

#[derive(Clone, PartialEq, Debug)]
pub struct SlowSteps {
    /// One sentence for somebody who reads nothing else of it.
    pub sentence: String,
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

#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    pub side: Side,
    /// For people: "garbage collection", "Python", "kernels", "idle: copy wait".
    pub what: String,
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
    pub what: &'static str,
    pub slow: f64,
    pub usual: f64,
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
        sentence: String::new(),
        all_slow: groups.all_slow,
        usual: groups.usual.len(),
        slow_ns: mean(&groups.slow),
        usual_ns: mean(&groups.usual),
        slow: groups.slow.clone(),
        differences: Vec::new(),
        counts: Vec::new(),
    };
    let p99 = phrase::duration(steps.p99());
    slow.sentence = match () {
        _ if steps.count() < FEWEST => {
            format!("{}: too few to tell slow from typical ones.", phrase::counted(steps.count() as u64, "step"))
        }
        _ if groups.slow.is_empty() => {
            format!("No slow steps: p99 {p99} is within 10 % of p50 {}.", phrase::duration(steps.p50()))
        }
        _ if case.windows.overlapping => "Steps overlap on a thread: slow and typical steps are not comparable.".into(),
        _ => {
            compare::fill(case, &groups, &mut slow);
            sentence(case, &slow)
        }
    };
    Some(slow)
}

/// "Slow steps (3 of 200, +12.4 ms on 40.1 ms) spent 11.8 ms more in garbage collection at serve.py:41."
fn sentence(case: &StepAnalysis, slow: &SlowSteps) -> String {
    let more = slow.slow_ns.saturating_sub(slow.usual_ns);
    let who = format!(
        "Slow steps ({} of {}, +{} on {})",
        phrase::count(slow.all_slow as u64),
        phrase::count(case.steps.count() as u64),
        phrase::duration(more),
        phrase::duration(slow.usual_ns)
    );
    // A tenth of what they take longer is worth a word; less explains nothing.
    let telling: Vec<&Difference> = compare::telling(slow).filter(|one| one.more_ns() * 10 >= more as i64).collect();
    let said = |one: &Difference| format!("{} more {}", phrase::duration(one.more_ns() as u64), compare::said(one));
    match telling.as_slice() {
        [] => format!("{who}: no single cause recorded."),
        [one] => format!("{who} spent {}.", said(one)),
        [first, second, ..] => format!("{who} spent {}, and {}.", said(first), said(second)),
    }
}

/// The slowest, to jump to.
pub fn slowest<'a>(steps: &'a crate::steps::Steps, slow: &'a SlowSteps) -> impl Iterator<Item = &'a Step> {
    slow.slow.iter().filter_map(|index| steps.steps.get(*index as usize))
}
