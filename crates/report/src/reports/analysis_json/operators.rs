//! The operators of a step on the CPU, and the layers by the CPU's time, in the analysis JSON.

use super::times::Micros;
use crate::operator_words::in_call;
use analysis::{HostLayer, HostLayers, OperatorRow, StepOperators};
use diagnosis::Diagnosis;
use serde::Serialize;
use timeline::Timeline;

/// Rows of a list; the exports have every event.
const MOST: usize = 1000;

#[derive(Serialize)]
pub struct Operators<'a> {
    /// How many were looked at, and what they are.
    looked_at: u64,
    unit: &'static str,
    complete: bool,
    total_us: Micros,
    step_us: Option<Micros>,
    rows: Vec<Operator<'a>>,
}

#[derive(Serialize)]
struct Operator<'a> {
    operator: &'a str,
    shapes: &'a str,
    dtype: Option<&'static str>,
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
    module: Option<&'a str>,
    calls: f64,
    own_us: Micros,
    percent_of_operators: f64,
    percent_of_step: Option<f64>,
    gflop_per_s: Option<f64>,
}

#[derive(Serialize)]
pub struct Layers<'a> {
    model_calls: u64,
    excluded_calls: u64,
    model_call_us: Micros,
    rows: Vec<Layer<'a>>,
}

#[derive(Serialize)]
struct Layer<'a> {
    name: &'a str,
    model: &'a str,
    calls: f64,
    own_us: Micros,
    total_us: Micros,
    percent: f64,
}

fn thousandths(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

pub fn operators<'a>(timeline: &'a Timeline, diagnosis: &'a Diagnosis) -> Option<Operators<'a>> {
    let operators = diagnosis.operators.as_ref()?;
    Some(Operators {
        looked_at: operators.turns,
        unit: if operators.are_steps { "step" } else { "turn" },
        complete: !operators.is_cut,
        total_us: Micros::of(operators.ns),
        step_us: operators.step_ns.map(Micros::of),
        rows: operators.rows.iter().take(MOST).map(|row| operator(timeline, operators, row)).collect(),
    })
}

fn operator<'a>(timeline: &'a Timeline, operators: &StepOperators, row: &'a OperatorRow) -> Operator<'a> {
    Operator {
        operator: timeline.names.text(row.name),
        shapes: &row.shapes,
        dtype: Some(row.dtype).filter(|dtype| !dtype.is_empty()),
        file: row.place.file.as_deref(),
        line: row.place.line,
        function: row.place.function.as_deref(),
        module: row.module.as_ref().and_then(|module| module.path()),
        calls: thousandths(row.calls),
        own_us: Micros::of(row.ns),
        percent_of_operators: thousandths(100.0 * row.share),
        percent_of_step: operators.of_step(row).map(|share| thousandths(100.0 * share)),
        gflop_per_s: row.gflops().map(thousandths),
    }
}

pub fn layers<'a>(timeline: &'a Timeline, diagnosis: &'a Diagnosis) -> Option<Layers<'a>> {
    let layers = Some(&diagnosis.host_layers).filter(|layers| !layers.is_empty())?;
    Some(Layers {
        model_calls: layers.model_calls,
        excluded_calls: layers.left_out,
        model_call_us: Micros::of(layers.call_ns()),
        rows: layers.rows.iter().take(MOST).map(|row| layer(timeline, layers, row)).collect(),
    })
}

fn layer<'a>(timeline: &'a Timeline, layers: &HostLayers, row: &HostLayer) -> Layer<'a> {
    let mean = in_call(row);
    Layer {
        name: timeline.names.text(row.name),
        model: timeline.names.text(row.model),
        calls: thousandths(mean.calls),
        own_us: Micros::of(mean.own_ns),
        total_us: Micros::of(mean.total_ns),
        percent: thousandths(100.0 * layers.share(row)),
    }
}
