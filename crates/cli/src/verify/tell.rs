//! What was tried and what came of it, as a terminal and as programs get it.

use super::fixes::{Chosen, FIXES, Fix};
use super::interval::{self, Interval};
use super::judge::{self, Gain, Verdict, judge, number};
use super::runs::{Fate, Run};
use analysis::phrase;
use diagnosis::{Diagnosis, RuleCode};
use report::{Ink, Style};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Grows by one after the point when something is added, before it when something changes its meaning or goes.
const VERSION: &str = "1.0";

/// What the analysis said before.
pub struct Prediction {
    pub rule: Option<RuleCode>,
    pub gain: Option<Gain>,
    /// The finding, or why there is none.
    pub said: String,
}

impl Prediction {
    pub fn of(diagnosis: &Diagnosis, chosen: &Chosen) -> Prediction {
        let rules: Vec<RuleCode> = chosen.rule.map_or_else(|| chosen.fix.rules(), |rule| vec![rule]);
        let mid = |gain: Option<replay::Gain>| gain.map_or(-1.0, |gain| gain.mid);
        let found = diagnosis.findings.iter().filter(|finding| rules.contains(&finding.code));
        if let Some(finding) = found.max_by(|a, b| mid(a.gain).total_cmp(&mid(b.gain))) {
            return Prediction {
                rule: Some(finding.code),
                gain: finding.gain.map(Gain::from),
                said: finding.title.clone(),
            };
        }
        let abstained = diagnosis.abstentions.iter().find(|abstention| rules.contains(&abstention.code));
        let said = match (abstained, rules.first()) {
            (Some(abstention), _) => format!("{} cannot be decided: {}", abstention.code, abstention.reason),
            (None, Some(rule)) => format!("{rule} found nothing here"),
            (None, None) => "no rule speaks of this fix".into(),
        };
        Prediction { rule: rules.first().copied(), gain: None, said }
    }

    /// For stderr, before the rounds.
    pub fn told(&self) -> Vec<String> {
        match self.gain {
            Some(gain) => vec![format!("predicted {} %: {}", number(-gain.mid / 100.0), self.said)],
            None => vec![format!("nothing is predicted: {}; measuring all the same", self.said)],
        }
    }
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

pub struct Tried<'a> {
    chosen: &'a Chosen,
    prediction: Prediction,
    measure: Measure,
    without: Vec<Run>,
    with: Vec<Run>,
    measured: Option<(Interval, Verdict)>,
}

impl Tried<'_> {
    pub fn new(chosen: &Chosen, prediction: Prediction, without: Vec<Run>, with: Vec<Run>) -> Tried<'_> {
        let measure = Measure::of(&without, &with);
        let times = |runs: &[Run]| runs.iter().map(|run| measure.of_run(run)).collect::<Vec<_>>();
        let interval = interval::paired(&times(&without), &times(&with));
        let measured = interval.map(|interval| (interval, judge(prediction.gain, interval)));
        Tried { chosen, prediction, measure, without, with, measured }
    }

    fn sentence(&self) -> String {
        match self.measured {
            Some((interval, verdict)) => judge::sentence(self.prediction.gain, interval, verdict),
            None => "cannot tell: a run took no time".into(),
        }
    }

    /// Whether the fix changes what the program prints, as far as that is the same from run to run at all.
    fn output(&self) -> (&'static str, &'static str) {
        let same = |runs: &[Run]| runs.windows(2).all(|pair| pair[0].output == pair[1].output);
        match (same(&self.without), same(&self.with)) {
            (true, true) if self.without.first().map(|run| run.output) == self.with.first().map(|run| run.output) => {
                ("same", "the same with and without")
            }
            (true, _) => ("differs", "differs with the fix, and only with it: compare the results"),
            (false, _) => ("unstable", "differs from run to run, so it says nothing of the fix"),
        }
    }

    fn applied(&self) -> String {
        match self.with.first().map(|run| &run.fix) {
            Some(Fate::Applied(what)) => what.clone(),
            _ => "set in the environment; no Python process was there to say whether it is read".into(),
        }
    }

    fn what(&self) -> String {
        let rounds = phrase::counted(self.with.len() as u64, "round");
        match &self.measure {
            Measure::Step(name) => {
                let steps = self.with.iter().chain(&self.without).map(|run| run.times.steps).min().unwrap_or(0);
                let each = phrase::counted(steps as u64, "step");
                format!("the mean step \"{name}\" of each run; {rounds}, {each} or more a run")
            }
            Measure::Process => format!("the whole process, for it marks no steps; {rounds}"),
        }
    }
}

/// `12.3 ms (12.1 ms to 12.6 ms)`.
fn spread(measure: &Measure, runs: &[Run]) -> String {
    let times: Vec<f64> = runs.iter().map(|run| measure.of_run(run)).collect();
    let say = |ns: f64| phrase::duration(ns.max(0.0) as u64);
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    let (low, high) = times.iter().fold((f64::MAX, 0f64), |(low, high), time| (low.min(*time), high.max(*time)));
    format!("{} ({} to {})", say(mean), say(low), say(high))
}

pub fn write(tried: &Tried, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let ink = match tried.measured {
        Some((_, Verdict::Confirmed | Verdict::More | Verdict::Faster)) => Ink::Good,
        _ => Ink::Warn,
    };
    writeln!(out, "{}: {}", tried.chosen.title(), style.ink(ink, &style.plain(&tried.sentence())))?;
    writeln!(out)?;
    let gain = tried.prediction.gain.map_or("nothing", |_| "as above");
    let lines = [
        ("Fix", tried.chosen.fix.what.to_owned()),
        ("Applied", tried.applied()),
        ("Predicted", format!("{gain}: {}", tried.prediction.said)),
        ("Measured", tried.what()),
        ("Without", spread(&tried.measure, &tried.without)),
        ("With", spread(&tried.measure, &tried.with)),
        ("Output", tried.output().1.to_owned()),
        ("Risk", tried.chosen.fix.risk.to_owned()),
    ];
    lines.iter().try_for_each(|(word, text)| writeln!(out, "{word:<9}  {}", style.plain(text)))
}

pub fn write_json(tried: &Tried, out: &mut dyn Write) -> io::Result<()> {
    let predicted = tried.prediction.gain.map(|gain| {
        json!({"change_percent": {"low": -gain.low, "mid": -gain.mid, "high": -gain.high}, "said": tried.prediction.said})
    });
    let runs = |runs: &[Run]| -> Value {
        let one = |run: &Run| {
            let step = (run.times.steps > 0).then(|| {
                json!({"name": run.times.step, "count": run.times.steps, "mean_ns": run.times.step_mean_ns,
                       "p50_ns": run.times.step_p50_ns})
            });
            json!({"ns": tried.measure.of_run(run), "steps": step, "process_ns": run.times.process_ns})
        };
        runs.iter().map(one).collect()
    };
    let percent = |fraction: f64| 100.0 * fraction;
    let document = json!({
        "verify_version": VERSION,
        "fix": tried.chosen.fix.name,
        "value": tried.chosen.value,
        "what": tried.chosen.fix.what,
        "risk": tried.chosen.fix.risk,
        "rule": tried.prediction.rule.map(RuleCode::as_str),
        "applied": tried.applied(),
        "predicted": predicted,
        "not_predicted": predicted.is_none().then_some(&tried.prediction.said),
        "measured": tried.measured.map(|(interval, _)| json!({
            "change_percent": percent(interval.mid),
            "interval_percent": [percent(interval.low), percent(interval.high)],
            "confidence": 0.95,
        })),
        "of": match tried.measure { Measure::Step(_) => "step", Measure::Process => "process" },
        "step": match &tried.measure { Measure::Step(name) => Some(name), Measure::Process => None },
        "rounds": tried.with.len(),
        "without": runs(&tried.without),
        "with": runs(&tried.with),
        "output": tried.output().0,
        "verdict": tried.measured.map_or(Verdict::CannotTell, |(_, verdict)| verdict).name(),
        "answer": tried.sentence(),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

pub fn list(style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for fix in &FIXES {
        writeln!(out, "{}", style.ink(Ink::Heading, fix.name))?;
        let rules: Vec<&str> = fix.rules().into_iter().map(RuleCode::as_str).collect();
        let rules = if rules.is_empty() { "none: no finding speaks of it".to_owned() } else { rules.join(", ") };
        for (word, text) in [("rules", rules.as_str()), ("does", fix.what), ("risk", fix.risk)] {
            writeln!(out, "  {word:<5}  {}", style.plain(text))?;
        }
    }
    Ok(())
}

pub fn list_json(out: &mut dyn Write) -> io::Result<()> {
    let one = |fix: &Fix| {
        let rules: Vec<&str> = fix.rules().into_iter().map(RuleCode::as_str).collect();
        json!({"name": fix.name, "rules": rules, "what": fix.what, "risk": fix.risk})
    };
    let all: Vec<Value> = FIXES.iter().map(one).collect();
    serde_json::to_writer_pretty(&mut *out, &json!({"verify_version": VERSION, "fixes": all}))?;
    writeln!(out)
}
