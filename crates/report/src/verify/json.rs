//! The same for programs: `inferscope verify --format json`.

use super::{answer, applied, basis};
use diagnosis::RuleCode;
use diagnosis::fixes::{FIXES, Fix};
use diagnosis::verify::{Experiment, Measure, Output, Run};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Grows by one after the point when something is added, before it when something changes its meaning or goes.
const VERSION: &str = "1.0";

pub fn write(experiment: &Experiment, out: &mut dyn Write) -> io::Result<()> {
    let (fix, prediction) = (experiment.chosen.fix, &experiment.prediction);
    let said = basis(&prediction.basis);
    let predicted = prediction
        .gain
        .map(|gain| json!({"change_percent": {"low": -gain.low, "mid": -gain.mid, "high": -gain.high}, "said": said}));
    let runs = |runs: &[Run]| -> Value {
        let one = |run: &Run| {
            let step = (run.times.steps > 0).then(|| {
                json!({"name": run.times.step, "count": run.times.steps, "mean_ns": run.times.step_mean_ns,
                       "p50_ns": run.times.step_p50_ns})
            });
            json!({"ns": experiment.measure.of_run(run), "steps": step, "process_ns": run.times.process_ns})
        };
        runs.iter().map(one).collect()
    };
    let percent = |fraction: f64| 100.0 * fraction;
    let document = json!({
        "verify_version": VERSION,
        "fix": fix.name,
        "value": experiment.chosen.value,
        "what": fix.what,
        "risk": fix.risk,
        "rule": prediction.rule.map(RuleCode::as_str),
        "applied": applied(experiment),
        "predicted": predicted,
        "not_predicted": predicted.is_none().then_some(&said),
        "measured": experiment.measured.map(|(interval, _)| json!({
            "change_percent": percent(interval.mid),
            "interval_percent": [percent(interval.low), percent(interval.high)],
            "confidence": 0.95,
        })),
        "of": match experiment.measure { Measure::Step(_) => "step", Measure::Process => "process" },
        "step": match &experiment.measure { Measure::Step(name) => Some(name), Measure::Process => None },
        "rounds": experiment.with.len(),
        "without": runs(&experiment.without),
        "with": runs(&experiment.with),
        "output": match experiment.output() {
            Output::Same => "same",
            Output::Differs => "differs",
            Output::Unstable => "unstable",
        },
        "verdict": experiment.outcome().name(),
        "answer": answer(experiment),
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

pub fn list(out: &mut dyn Write) -> io::Result<()> {
    let one = |fix: &Fix| {
        let rules: Vec<&str> = fix.rules().into_iter().map(RuleCode::as_str).collect();
        json!({"name": fix.name, "rules": rules, "what": fix.what, "risk": fix.risk})
    };
    let all: Vec<Value> = FIXES.iter().map(one).collect();
    serde_json::to_writer_pretty(&mut *out, &json!({"verify_version": VERSION, "fixes": all}))?;
    writeln!(out)
}
