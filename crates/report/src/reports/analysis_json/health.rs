//! How far the analysis can be trusted, in the analysis JSON.

use crate::absent_words;
use analysis::Metrics;
use diagnosis::Diagnosis;
use serde::Serialize;
use timeline::{State, Timeline};

#[derive(Serialize)]
pub struct Health<'a> {
    dropped: u64,
    clock_residual_ns: Option<u64>,
    /// What recording the devices cost; nothing else is measured.
    overhead_percent: Option<f64>,
    state: &'static str,
    losses: Vec<Loss<'a>>,
    not_recorded: Vec<Missing>,
    notes: Vec<String>,
    /// The codes of the notes, in their order.
    note_codes: Vec<&'a str>,
    lines: Vec<Line<'a>>,
}

#[derive(Serialize)]
struct Loss<'a> {
    collector: &'a str,
    /// A code: see `timeline::LossReason`.
    reason: &'a str,
    what: &'a str,
    count: u64,
}

#[derive(Serialize)]
struct Missing {
    what: &'static str,
    why: String,
}

#[derive(Serialize)]
struct Line<'a> {
    state: &'static str,
    label: &'static str,
    text: &'a str,
}

/// No measurement of it is finer.
fn thousandths(percent: f64) -> f64 {
    (percent * 1e3).round() / 1e3
}

pub fn health<'a>(timeline: &'a Timeline, metrics: &'a Metrics, diagnosis: &'a Diagnosis) -> Health<'a> {
    let clock = &timeline.info.clock;
    Health {
        dropped: metrics.losses.iter().fold(0, |sum, loss| sum.saturating_add(loss.count)),
        clock_residual_ns: (clock.residual_ns > 0 || !clock.source.is_empty()).then_some(clock.residual_ns),
        overhead_percent: diagnosis.gpu.as_ref().and_then(|gpu| gpu.overhead.as_ref()?.percent).map(thousandths),
        state: match timeline.info.state {
            State::Recording => "recording",
            State::Complete => "complete",
            State::Recovered => "recovered",
            State::Cut { .. } => "cut",
            State::Unknown => "unknown",
        },
        losses: metrics
            .losses
            .iter()
            .map(|loss| Loss {
                collector: &loss.collector,
                reason: loss.reason.name(),
                what: loss.reason.said(loss.count),
                count: loss.count,
            })
            .collect(),
        not_recorded: metrics
            .absent
            .iter()
            .map(|absent| Missing { what: absent_words::what(absent), why: absent_words::why(absent) })
            .collect(),
        notes: timeline.notes_said(),
        note_codes: timeline.notes.iter().map(|note| note.code.name()).collect(),
        lines: diagnosis
            .health
            .iter()
            .map(|line| Line { state: line.state.name(), label: line.label(), text: &line.text })
            .collect(),
    }
}
