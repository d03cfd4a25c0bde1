//! The operators of a step on the CPU, and the layers by the CPU's time, for the page.

use super::names::short;
use super::words::MOST_ROWS;
use crate::operator_words::{basis, in_call, recorded, share, whole};
use analysis::{HostLayer, OperatorRow};
use diagnosis::Diagnosis;
use serde::Serialize;
use timeline::Timeline;

#[derive(Serialize)]
pub struct Operators {
    basis: String,
    whole: &'static str,
    rows: Vec<Operator>,
}

#[derive(Serialize)]
struct Operator {
    name: String,
    shapes: String,
    dtype: &'static str,
    file: String,
    line: u32,
    module: String,
    calls: f64,
    ns: u64,
    mean: u64,
    share: f64,
    gflops: Option<f64>,
}

#[derive(Serialize)]
pub struct Layers {
    basis: String,
    rows: Vec<Layer>,
}

#[derive(Serialize)]
struct Layer {
    name: String,
    calls: f64,
    own: u64,
    total: u64,
    share: f64,
}

pub fn operators(timeline: &Timeline, diagnosis: &Diagnosis) -> Option<Operators> {
    let operators = diagnosis.operators.as_ref()?;
    let row = |row: &OperatorRow| Operator {
        name: short(row.plain_name(timeline)),
        shapes: short(&row.shapes),
        dtype: row.dtype,
        file: short(row.place.file.as_deref().map_or("", analysis::phrase::short_file)),
        line: row.place.line.unwrap_or(0),
        module: row.module.as_ref().map(|module| short(&module.to_string())).unwrap_or_default(),
        calls: row.calls,
        ns: row.ns,
        mean: row.mean_ns(),
        share: share(operators, row),
        gflops: row.gflops(),
    };
    let rows = operators.rows.iter().take(MOST_ROWS).map(row).collect();
    Some(Operators { basis: basis(operators), whole: whole(operators), rows })
}

pub fn layers(timeline: &Timeline, diagnosis: &Diagnosis) -> Option<Layers> {
    let layers = Some(&diagnosis.host_layers).filter(|layers| !layers.is_empty())?;
    let row = |row: &HostLayer| {
        let mean = in_call(row);
        Layer {
            name: short(timeline.names.text(row.name)),
            calls: mean.calls,
            own: mean.own_ns,
            total: mean.total_ns,
            share: layers.share(row),
        }
    };
    let rows = layers.rows.iter().take(MOST_ROWS).map(row).collect();
    Some(Layers { basis: format!("by own CPU time, mean of {}", recorded(layers)), rows })
}
