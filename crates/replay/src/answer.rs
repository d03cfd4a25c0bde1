//! What a replay answers: how well it reproduces the unchanged steps, what changes would gain, or why there is no answer.

use crate::assumption::{Assumption, Direction};
use crate::critical::Limit;
use crate::gain::Gain;
use crate::graph::{self, Graph};
use crate::run;
use std::collections::BTreeMap;
use timeline::RecordedBy;

/// A replay that misses the recorded step time by more than this explains nothing.
pub const MOST_OFF: f64 = 0.02;

/// Why there is no answer.
#[derive(Clone, PartialEq, Debug)]
pub enum Refusal {
    /// The steps have nothing to change, or nothing that can be replayed.
    NotThere(NotThere),
    /// The recording cannot say it.
    Unknown(Unknown),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotThere {
    /// No step takes any time.
    StepTime,
    /// No work of a device.
    Work,
    /// No steps, and the recording is too large to be replayed as one.
    Steps,
    /// A wait was to take longer or shorter, which is up to what it waits for.
    LengthOfWait,
    RemovableWait,
    Kernel(String, Near),
    Copy(String, Near),
    Call(String, Near),
    Function(String, Near),
    HostCode,
    QueuedWork,
    ChosenCalls,
    ChosenWork,
    PageableCopies,
    LaunchesInARow,
}

/// What might have been meant by a name that is not there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Near {
    Alike(String),
    /// None is alike: those with most time. Empty: there are no names.
    Longest(Vec<String>),
}

#[derive(Clone, PartialEq, Debug)]
pub enum Unknown {
    /// What waited for what: launch calls were not recorded.
    Launches(RecordedBy),
    /// GPU timestamps are too far off to link work to its launch calls.
    Clock,
    /// The replay does not come out as recorded.
    Missed(Check),
    /// No pinned copies to take the bandwidth from.
    PinnedCopies(Direction),
}

/// What was changed in the steps.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Changed {
    /// Work or calls of this name.
    Named(String),
    QueuedGaps,
    HostStretches,
    /// A function with what it calls, by its slices or by samples.
    Function {
        pattern: String,
        sampled: bool,
    },
}

/// How well the unchanged steps were reproduced: replayed with no more than the usual time from what held a thing back to its
/// start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Check {
    pub steps: u64,
    /// Those that are reproduced within [`MOST_OFF`]; gains are of these.
    pub explained: u64,
    /// The mean recorded step, and what it is in the replay.
    pub recorded_ns: u64,
    pub replayed_ns: u64,
    /// Their difference, as a fraction.
    pub off: f64,
    /// Of the step that is worst reproduced.
    pub worst: f64,
    /// The part of the steps that is holes of a device which lacks records, 0 to 1: see `held`.
    pub held: f64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    pub check: Check,
    /// The mean step as recorded, and with the changes: a gain is of all steps together.
    pub now_ns: u64,
    pub then_ns: u64,
    /// Nanoseconds of a step; negative where it gets slower.
    pub low_ns: i64,
    pub mid_ns: i64,
    pub high_ns: i64,
    /// What was changed in the steps, and how many.
    pub changed: BTreeMap<Changed, u64>,
    /// What the steps hang on, most first: as recorded, and with the changes.
    pub before: Vec<Limit>,
    pub after: Vec<Limit>,
    pub assumed: Vec<Assumption>,
}

impl Answer {
    /// In percent of the step.
    pub fn gain(&self) -> Gain {
        let percent = |ns: i64| ns as f64 * 100.0 / self.now_ns.max(1) as f64;
        let (low, mid, high) = (percent(self.low_ns), percent(self.mid_ns), percent(self.high_ns));
        Gain::replayed(low, mid, high)
    }
}

impl Check {
    /// Also which steps of each graph are explained.
    pub(crate) fn of(graphs: &[Graph]) -> Result<(Check, Vec<Vec<bool>>), Refusal> {
        let (mut recorded, mut replayed, mut worst) = (Vec::new(), Vec::new(), 0.0f64);
        let mut explained = Vec::new();
        for graph in graphs {
            let out = run::explain(graph);
            let mut of_graph = vec![false; graph.steps.len()];
            for (index, step) in graph.steps.iter().enumerate().filter(|(_, step)| step.measured) {
                let (was, is) = (step.end - step.start, out.step(index));
                worst = worst.max(off(was, is));
                of_graph[index] = off(was, is) <= MOST_OFF;
                recorded.push(was);
                replayed.push(is);
            }
            explained.push(of_graph);
        }
        if recorded.iter().all(|one| *one <= 0) {
            return Err(Refusal::NotThere(NotThere::StepTime));
        }
        let mean = |all: &[i64]| {
            let sum: i128 = all.iter().map(|one| i128::from(*one)).sum();
            i64::try_from(sum / all.len().max(1) as i128).unwrap_or(i64::MAX)
        };
        let (was, is) = (mean(&recorded), mean(&replayed));
        let check = Check {
            steps: recorded.len() as u64,
            explained: explained.iter().flatten().filter(|one| **one).count() as u64,
            recorded_ns: was as u64,
            replayed_ns: is.max(0) as u64,
            off: off(was, is),
            worst,
            held: graph::held::share(graphs),
        };
        Ok((check, explained))
    }

    /// Enough of the steps are explained for their gains to stand for all.
    pub fn tells(&self) -> bool {
        self.off <= MOST_OFF && 4 * self.explained >= 3 * self.steps
    }
}

fn off(was: i64, is: i64) -> f64 {
    (is - was).abs() as f64 / was.max(1) as f64
}
