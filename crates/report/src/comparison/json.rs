//! Two recordings side by side, for programs: everything that was compared, times in nanoseconds of a mean step.

use crate::comparison::{Titles, answer};
use diagnosis::compare::gate::GateState;
use diagnosis::compare::{Comparison, GateResult, relative};
use diagnosis::named::{METRICS, Measured};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Grows by one after the point when something is added, before it when something changes its meaning or goes.
pub const VERSION: &str = "1.1";

pub fn write(comparison: &Comparison, titles: &Titles, gates: &[GateResult], out: &mut impl Write) -> io::Result<()> {
    let environment = |one: &diagnosis::compare::Difference| {
        let side = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        json!({"what": one.what, "a": side(&one.a), "b": side(&one.b)})
    };
    let document = json!({
        "comparison_version": VERSION,
        "a": titles.a,
        "b": titles.b,
        "answer": answer(comparison),
        "environment": comparison.environment.iter().map(environment).collect::<Vec<_>>(),
        "steps": {
            "name": comparison.step,
            "whole_recordings": comparison.whole,
            "a": comparison.steps.0,
            "b": comparison.steps.1,
        },
        "metrics": comparison.metrics.iter().map(metric).collect::<Vec<_>>(),
        "changes": comparison.changes.iter().map(change).collect::<Vec<_>>(),
        "memory": comparison.memory.as_ref().map(super::memory::value),
        "gates": gates.iter().map(gate).collect::<Vec<_>>(),
        "notes": comparison.notes,
    });
    serde_json::to_writer_pretty(&mut *out, &document)?;
    writeln!(out)
}

fn metric(change: &diagnosis::compare::MetricChange) -> Value {
    let side = |side: &Result<Measured, String>| match side {
        Ok(measured) => json!({"value": measured.value, "error": measured.error}),
        Err(why) => json!({"value": null, "why": why}),
    };
    let share = change.values().and_then(|(a, b)| relative(a, b));
    json!({
        "name": change.name(),
        "unit": METRICS[change.metric].unit.name(),
        "a": side(&change.a),
        "b": side(&change.b),
        "change_percent": share.map(|share| 100.0 * share),
        "noise": change.noise.map(diagnosis::named::noise::Noise::name),
    })
}

fn change(change: &diagnosis::compare::Change) -> Value {
    let side = |side: Measured, count: Option<f64>| json!({"ns": side.value, "error_ns": side.error, "count": count});
    json!({
        "group": change.group.name(),
        "name": change.label,
        "file": if change.place.is_empty() { Value::Null } else { change.place.as_str().into() },
        "a": side(change.a, change.count.map(|count| count.0)),
        "b": side(change.b, change.count.map(|count| count.1)),
        "delta_ns": change.delta(),
        "noise": change.noise.name(),
    })
}

fn gate(gate: &GateResult) -> Value {
    json!({"gate": gate.text, "state": state_name(gate.state), "said": gate.said})
}

pub(crate) fn state_name(state: GateState) -> &'static str {
    match state {
        GateState::Holds => "passed",
        GateState::Failed => "failed",
        GateState::Undecided => "undecided",
    }
}
