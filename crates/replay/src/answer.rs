//! What a replay answers: how well it reproduces the unchanged steps, what changes would gain, or why there is no answer.

use crate::critical::Limit;
use crate::gain::Gain;
use crate::graph::{self, Graph};
use crate::run;
use std::collections::BTreeMap;

/// A replay that misses the recorded step time by more than this explains nothing.
pub const MOST_OFF: f64 = 0.02;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The steps have nothing to change, or nothing that can be replayed.
    NotThere(String),
    /// The recording cannot say it.
    Unknown(String),
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        let (Refusal::NotThere(text) | Refusal::Unknown(text)) = self;
        out.write_str(text)
    }
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
    /// What was changed in the steps, by name, and how many.
    pub changed: BTreeMap<String, u64>,
    /// What the steps hang on, most first: as recorded, and with the changes.
    pub before: Vec<Limit>,
    pub after: Vec<Limit>,
    /// One sentence each.
    pub assumed: Vec<String>,
}

impl Answer {
    /// In percent of the step.
    pub fn gain(&self) -> Gain {
        let percent = |ns: i64| ns as f64 * 100.0 / self.now_ns.max(1) as f64;
        let (low, mid, high) = (percent(self.low_ns), percent(self.mid_ns), percent(self.high_ns));
        Gain::replayed(low, mid, high)
    }

    /// What was changed, the most frequent first.
    pub fn most_changed(&self) -> Vec<(&str, u64)> {
        let mut changed: Vec<_> = self.changed.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        changed.sort_by_key(|(name, count)| (u64::MAX - count, *name));
        changed
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
            return Err(Refusal::NotThere("this trace has no steps that take time".into()));
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

    /// How far the replay is off, for somebody who gets no answer.
    pub fn missed(&self) -> String {
        let percent = analysis::phrase::percent;
        match self.off > MOST_OFF {
            true => format!("the replay misses this step by {}", percent(self.off)),
            false => format!(
                "the replay misses {} of {} steps by more than {}",
                self.steps - self.explained,
                self.steps,
                percent(MOST_OFF)
            ),
        }
    }
}

fn off(was: i64, is: i64) -> f64 {
    (is - was).abs() as f64 / was.max(1) as f64
}
