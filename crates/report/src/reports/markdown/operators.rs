//! The operators of a step on the CPU, and the layers by the CPU's time.

use super::code::{code, short_place};
use super::table::{Table, bar};
use crate::operator_words::{basis, calls, in_call, recorded, share};
use crate::units::{count, duration};
use analysis::device::gpu::KernelLayer;
use analysis::phrase::percent_or_less;
use diagnosis::Diagnosis;
use std::io::{self, Write};
use timeline::Timeline;

const TOP: usize = 15;

pub fn write(timeline: &Timeline, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    operators(timeline, diagnosis, out)?;
    layers(timeline, diagnosis, out)
}

fn of(all: usize) -> String {
    if all > TOP { format!(", {TOP} of {}", count(all as u64)) } else { String::new() }
}

fn operators(timeline: &Timeline, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let Some(operators) = &diagnosis.operators else { return Ok(()) };
    let share_of = if operators.all_of_step().is_some() { " of step" } else { " of operators" };
    let mut table = Table::new([
        share_of,
        "",
        " time",
        " calls",
        " each",
        " GFLOP/s",
        "operator",
        "shapes",
        "dtype",
        "called from",
        "module",
    ]);
    for row in operators.rows.iter().take(TOP) {
        let part = share(operators, row);
        let shapes = if row.shapes.is_empty() { String::new() } else { code(&row.shapes) };
        let file = row.place.file.as_deref().unwrap_or("");
        table.row([
            percent_or_less(part),
            bar(part),
            duration(row.ns),
            calls(row.calls),
            duration(row.mean_ns()),
            row.gflops().map_or(String::new(), |speed| format!("{speed:.1}")),
            code(row.plain_name(timeline)),
            shapes,
            row.dtype.into(),
            short_place(file, row.place.line.unwrap_or(0)),
            row.module.as_ref().map(module).unwrap_or_default(),
        ]);
    }
    writeln!(out, "## Operators on the CPU\n\nPer step ({}){}:\n", basis(operators), of(operators.rows.len()))?;
    table.write(out)
}

/// A path is code, a number of layers is words.
fn module(module: &KernelLayer) -> String {
    module.path().map_or_else(|| module.to_string(), code)
}

fn layers(timeline: &Timeline, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let layers = &diagnosis.host_layers;
    if layers.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([" share", "", " own", " total", " calls", "layer"]);
    for layer in layers.rows.iter().take(TOP) {
        let (part, mean) = (layers.share(layer), in_call(layer));
        let name = code(timeline.names.text(layer.name));
        table.row([
            percent_or_less(part),
            bar(part),
            duration(mean.own_ns),
            duration(mean.total_ns),
            calls(mean.calls),
            name,
        ]);
    }
    writeln!(out, "## Layers, by own CPU time\n\nMean of {}{}:\n", recorded(layers), of(layers.rows.len()))?;
    table.write(out)
}
