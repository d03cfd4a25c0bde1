//! What if: the recorded steps played again on their dependency graph with some of the work changed. A replay with nothing
//! changed must come out as it was recorded; where it does not, there is no answer. What to change is read in `expression`.

mod apply;
mod copies;
mod critical;
mod expression;
mod floors;
mod graph;
mod host;
mod plan;
mod run;
mod stretches;
mod waits;

pub use critical::{Limit, On};
pub use expression::{Change, Target, Wrong, parse};

use crate::finding::Gain;
use crate::steps::Steps;
use critical::Tally;
use graph::Graph;
use plan::Plan;
use std::collections::BTreeMap;
use timeline::{ProcessIndex, Timeline};

/// A replay that misses the recorded step time by more than this explains nothing.
pub const MOST_OFF: f64 = 0.02;

const STRETCHES: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assume {
    Best = 0,
    Usual = 1,
    Worst = 2,
}

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

/// How well the unchanged steps were reproduced.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Check {
    pub steps: u64,
    /// The mean recorded step, and what it is in the replay with the usual way from each launch to its start.
    pub recorded_ns: u64,
    pub replayed_ns: u64,
    /// Their difference, as a fraction.
    pub off: f64,
    /// Of the step that is worst reproduced.
    pub worst: f64,
    median_ns: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    pub check: Check,
    /// The median step as recorded, and with the changes.
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
        Gain { low: percent(self.low_ns), mid: percent(self.mid_ns), high: percent(self.high_ns) }
    }
}

/// Replays the measured steps with nothing changed.
pub fn check(timeline: &Timeline, steps: &Steps) -> Result<Check, Refusal> {
    checked(&graphs(timeline, steps)?)
}

/// Replays the measured steps with the changes.
pub fn replay(timeline: &Timeline, steps: &Steps, changes: &[Change]) -> Result<Answer, Refusal> {
    let graphs = graphs(timeline, steps)?;
    let check = checked(&graphs)?;
    if check.off > MOST_OFF {
        let off = crate::phrase::percent(check.off);
        return Err(Refusal::Unknown(format!("the replay misses this step by {off}: no answer")));
    }
    let (mut before, mut after) = (Tally::new(), Tally::new());
    let mut changed: Vec<BTreeMap<String, u64>> = vec![BTreeMap::new(); changes.len()];
    // Each step as it was and as it would be.
    let mut gains: [Vec<(i64, i64)>; 3] = Default::default();
    let mut notes: Vec<String> = Vec::new();
    for graph in &graphs {
        let unchanged = Plan::unchanged(graph);
        let as_it_was = run::run(graph, &unchanged, Assume::Usual);
        critical::tally(graph, &unchanged, &as_it_was, &mut before);
        for assume in [Assume::Best, Assume::Usual, Assume::Worst] {
            let mut plan = Plan::unchanged(graph);
            for (change, sum) in changes.iter().zip(&mut changed) {
                let done = apply::apply(graph, &mut plan, change, assume)?;
                if assume == Assume::Usual {
                    done.into_iter().for_each(|(name, count)| *sum.entry(name).or_default() += count);
                }
            }
            let replayed = run::run(graph, &plan, assume);
            let measured = (0..graph.steps.len()).filter(|step| graph.steps[*step].measured);
            if assume == Assume::Usual {
                critical::tally(graph, &plan, &replayed, &mut after);
                notes.append(&mut plan.notes);
            }
            gains[assume as usize].extend(measured.map(|step| (as_it_was.step(step), replayed.step(step))));
        }
    }
    if let Some((change, _)) = changes.iter().zip(&changed).find(|(_, changed)| changed.is_empty()) {
        return Err(apply::nothing(&graphs, change));
    }
    let now_ns = check.median_ns;
    let scaled = |fraction: f64| (fraction * now_ns as f64).round() as i64;
    let at = |assume: Assume, percent: usize| {
        let fractions = spread(&gains[assume as usize]);
        scaled(fractions.get(fractions.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0.0))
    };
    // Of all steps together: where they are of two kinds, no single one stands for them.
    let mid_ns = scaled(together(&gains[Assume::Usual as usize]));
    let mut assumed: Vec<String> = changes.iter().map(|change| apply::assumed(change).to_owned()).collect();
    assumed.append(&mut notes);
    assumed.push(
        "everything else takes its recorded time; what no longer waits starts as soon after its launch, or after the work before it, as this trace shows (low, mid, high: the 95th, 50th, 5th percentile)"
            .into(),
    );
    assumed.push("mid is of all steps together; low and high also span the recording: the 10th and the 90th percentile of ten or more stretches of steps".into());
    Ok(Answer {
        check,
        now_ns,
        then_ns: u64::try_from(now_ns as i64 - mid_ns).unwrap_or(0),
        low_ns: at(Assume::Worst, 10).min(mid_ns),
        mid_ns,
        high_ns: at(Assume::Best, 90).max(mid_ns),
        changed: changed.into_iter().flatten().fold(BTreeMap::new(), |mut all, (name, count)| {
            all.entry(name).and_modify(|most: &mut u64| *most = count.max(*most)).or_insert(count);
            all
        }),
        before: critical::limits(&before, timeline),
        after: critical::limits(&after, timeline),
        assumed,
    })
}

/// One per process that has steps.
fn graphs<'a>(timeline: &'a Timeline, steps: &Steps) -> Result<Vec<Graph<'a>>, Refusal> {
    let process = |track: timeline::TrackIndex| timeline.tracks[track.0 as usize].process;
    let mut processes: Vec<ProcessIndex> = steps.measured().map(|step| process(step.track)).collect();
    processes.sort_unstable();
    processes.dedup();
    if processes.is_empty() {
        return Err(Refusal::NotThere("this trace has no steps that take time".into()));
    }
    let graphs: Vec<Graph> = processes.into_iter().map(|process| Graph::new(timeline, steps, process)).collect();
    let mut jobs = graphs.iter().flat_map(|graph| &graph.jobs).peekable();
    if jobs.peek().is_some() && jobs.all(|job| job.call == 0) {
        let text = "the calls that launch the GPU's work were not recorded, so nothing says what waited for what; record with --gpu-detail launch";
        return Err(Refusal::Unknown(text.into()));
    }
    Ok(graphs)
}

fn checked(graphs: &[Graph]) -> Result<Check, Refusal> {
    let (mut recorded, mut replayed, mut worst) = (Vec::new(), Vec::new(), 0.0f64);
    for graph in graphs {
        let out = run::explain(graph);
        for (index, step) in graph.steps.iter().enumerate().filter(|(_, step)| step.measured) {
            let (was, is) = (step.end - step.start, out.step(index));
            worst = worst.max(off(was, is));
            recorded.push(was);
            replayed.push(is);
        }
    }
    recorded.sort_unstable();
    let median = recorded.get(recorded.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    if median <= 0 {
        return Err(Refusal::NotThere("this trace has no steps that take time".into()));
    }
    let mean = |all: &[i64]| {
        let sum: i128 = all.iter().map(|one| i128::from(*one)).sum();
        i64::try_from(sum / all.len().max(1) as i128).unwrap_or(i64::MAX)
    };
    let (was, is) = (mean(&recorded), mean(&replayed));
    let (recorded_ns, replayed_ns, median_ns) = (was as u64, is.max(0) as u64, median as u64);
    Ok(Check { steps: recorded.len() as u64, recorded_ns, replayed_ns, off: off(was, is), worst, median_ns })
}

fn off(was: i64, is: i64) -> f64 {
    (is - was).abs() as f64 / was.max(1) as f64
}

/// What steps gain together, as a fraction.
fn together(steps: &[(i64, i64)]) -> f64 {
    let (was, is) =
        steps.iter().fold((0i64, 0i64), |sum, one| (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1)));
    1.0 - is as f64 / was.max(1) as f64
}

/// How much that differs over the recording, smallest first. In stretches, for what is known from samples is true of many steps
/// and not of one.
fn spread(steps: &[(i64, i64)]) -> Vec<f64> {
    let length = (steps.len() / STRETCHES).max(1);
    let mut fractions: Vec<f64> = steps.chunks(length).map(together).collect();
    fractions.sort_by(f64::total_cmp);
    fractions
}
