//! One fix tried: what was predicted, the runs without and with it, and what they say.

use super::interval::{Interval, paired};
use super::judge::{Outcome, PredictedGain, judge};
use crate::fixes::ChosenFix;
use crate::{Diagnosis, RuleCode};

/// What the analysis said before.
#[derive(Clone, PartialEq, Debug)]
pub struct Prediction {
    pub rule: Option<RuleCode>,
    pub gain: Option<PredictedGain>,
    pub basis: Basis,
}

/// What a prediction rests on, or why there is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Basis {
    /// A finding, by its title.
    Finding(String),
    /// The rule was skipped: why.
    Skipped(RuleCode, String),
    NoFinding(RuleCode),
    /// No rule recommends the fix.
    NoRule,
}

impl Prediction {
    pub fn of(diagnosis: &Diagnosis, chosen: &ChosenFix) -> Prediction {
        let rules = chosen.rules();
        let mid = |gain: Option<replay::Gain>| gain.map_or(-1.0, |gain| gain.mid);
        let found = diagnosis.findings.iter().filter(|finding| rules.contains(&finding.code));
        if let Some(finding) = found.max_by(|a, b| mid(a.gain).total_cmp(&mid(b.gain))) {
            let gain = finding.gain.map(PredictedGain::from);
            return Prediction { rule: Some(finding.code), gain, basis: Basis::Finding(finding.title.clone()) };
        }
        let skipped = diagnosis.abstentions.iter().find(|abstention| rules.contains(&abstention.code));
        let rule = rules.first().copied();
        let basis = match (skipped, rule) {
            (Some(abstention), _) => Basis::Skipped(abstention.code, abstention.reason.clone()),
            (None, Some(rule)) => Basis::NoFinding(rule),
            (None, None) => Basis::NoRule,
        };
        Prediction { rule, gain: None, basis }
    }
}

/// A run that ended well.
pub struct Run {
    pub times: RunTimes,
    pub fix: FixState,
    /// A digest of what it wrote to stdout.
    pub output: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct RunTimes {
    /// Empty: the program has no steps.
    pub step: String,
    pub steps: usize,
    pub step_mean_ns: f64,
    pub step_p50_ns: f64,
    /// From the moment that the program had started.
    pub process_ns: f64,
}

/// What the processes of a run said about the fix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FixState {
    /// What exactly was done.
    Applied(String),
    NotApplied(String),
    /// No Python process was there to say anything.
    Unknown,
}

/// What of a run is compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Measure {
    /// The mean of the steps of this name.
    Step(String),
    Process,
}

impl Measure {
    /// Steps, where every run has those of one name.
    pub fn of(without: &[Run], with: &[Run]) -> Measure {
        let name = without.first().map(|run| run.times.step.clone()).filter(|name| !name.is_empty());
        match name {
            Some(name) if without.iter().chain(with).all(|run| run.times.step == name) => Measure::Step(name),
            _ => Measure::Process,
        }
    }

    pub fn of_run(&self, run: &Run) -> f64 {
        match self {
            Measure::Step(_) => run.times.step_mean_ns,
            Measure::Process => run.times.process_ns,
        }
    }
}

/// Whether the fix changes what the program prints, as far as that is the same from run to run at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    Same,
    Differs,
    Unstable,
}

pub struct Experiment<'a> {
    pub chosen: &'a ChosenFix,
    pub prediction: Prediction,
    pub measure: Measure,
    pub without: Vec<Run>,
    pub with: Vec<Run>,
    /// None: a run took no time, or there are fewer than two pairs.
    pub measured: Option<(Interval, Outcome)>,
}

impl Experiment<'_> {
    pub fn new(chosen: &ChosenFix, prediction: Prediction, without: Vec<Run>, with: Vec<Run>) -> Experiment<'_> {
        let measure = Measure::of(&without, &with);
        let times = |runs: &[Run]| runs.iter().map(|run| measure.of_run(run)).collect::<Vec<_>>();
        let interval = paired(&times(&without), &times(&with));
        let measured = interval.map(|interval| (interval, judge(prediction.gain, interval)));
        Experiment { chosen, prediction, measure, without, with, measured }
    }

    pub fn outcome(&self) -> Outcome {
        self.measured.map_or(Outcome::CannotTell, |(_, outcome)| outcome)
    }

    pub fn output(&self) -> Output {
        let same = |runs: &[Run]| runs.windows(2).all(|pair| pair[0].output == pair[1].output);
        let first = |runs: &[Run]| runs.first().map(|run| run.output);
        match (same(&self.without), same(&self.with)) {
            (true, true) if first(&self.without) == first(&self.with) => Output::Same,
            (true, _) => Output::Differs,
            (false, _) => Output::Unstable,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixes::FIXES;

    fn run(step: &str, mean: f64, process: f64, output: u64) -> Run {
        let times = RunTimes {
            step: step.into(),
            steps: usize::from(!step.is_empty()) * 10,
            step_mean_ns: mean,
            step_p50_ns: mean,
            process_ns: process,
        };
        Run { times, fix: FixState::Unknown, output }
    }

    fn tried(without: [Run; 2], with: [Run; 2]) -> (Measure, Outcome, Output) {
        let chosen = ChosenFix { fix: &FIXES[0], rule: None, value: None };
        let prediction = Prediction { rule: None, gain: None, basis: Basis::NoRule };
        let experiment = Experiment::new(&chosen, prediction, without.into(), with.into());
        (experiment.measure.clone(), experiment.outcome(), experiment.output())
    }

    #[test]
    fn steps_count_where_every_run_has_them_and_the_process_otherwise() {
        let step = || [run("r", 10.0, 99.0, 1), run("r", 10.0, 99.0, 1)];
        let faster = || [run("r", 8.0, 99.0, 1), run("r", 8.0, 99.0, 1)];
        assert_eq!(tried(step(), faster()), (Measure::Step("r".into()), Outcome::Faster, Output::Same));
        let [first, _] = faster();
        let mixed = [first, run("other", 8.0, 99.0, 1)];
        assert_eq!(tried(step(), mixed), (Measure::Process, Outcome::NoDifference, Output::Same));
    }

    #[test]
    fn output_that_changes_from_run_to_run_says_nothing_of_the_fix() {
        let runs = |a, b| [run("", 0.0, 10.0, a), run("", 0.0, 10.0, b)];
        assert_eq!(tried(runs(1, 1), runs(2, 2)).2, Output::Differs);
        assert_eq!(tried(runs(1, 1), runs(1, 2)).2, Output::Differs);
        assert_eq!(tried(runs(1, 2), runs(1, 2)).2, Output::Unstable);
    }
}
