//! What the reports say of operators and of layers on the CPU, in the words that all of them share.

use crate::units::{count, counted};
use analysis::phrase;
use analysis::{HostLayer, HostLayers, OperatorRow, StepOperators};
use timeline::Timeline;

/// "mean of 4 looked-at steps, 92 % of the median step": what the numbers of the table are.
pub fn basis(operators: &StepOperators) -> String {
    let turn = match operators.are_steps {
        true => format!("{} with recorded operators", counted(operators.turns, "step")),
        false => format!("{} of the loop with recorded operators", counted(operators.turns, "turn")),
    };
    let mut said = format!("mean of {turn}");
    if operators.is_cut {
        said += ", only the first operators of each";
    }
    if let Some(share) = operators.all_of_step() {
        said += &format!(", {} of the median step", phrase::percent(share));
    }
    said
}

/// What the share of a row is of.
pub fn whole(operators: &StepOperators) -> &'static str {
    if operators.all_of_step().is_some() { "of step" } else { "of operators" }
}

/// Of the step, where that is known, else of all operators.
pub fn share(operators: &StepOperators, row: &OperatorRow) -> f64 {
    operators.of_step(row).unwrap_or(row.share)
}

/// "addmm [768, 256] [256, 1024] float32".
pub fn named(timeline: &Timeline, row: &OperatorRow) -> String {
    let parts = [row.plain_name(timeline), &row.shapes, row.dtype];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// In a step: "12", "0.5".
pub fn calls(number: f64) -> String {
    if number.fract() == 0.0 || number >= 99.95 { count(number.round() as u64) } else { format!("{number:.1}") }
}

/// "5 calls of the model (2 excluded: the first, or with operators recorded)".
pub fn recorded(layers: &HostLayers) -> String {
    let calls = format!("{} of the model", counted(layers.model_calls, "call"));
    match layers.left_out {
        0 => calls,
        more => format!("{calls} ({} excluded: the first, or with operators recorded)", count(more)),
    }
}

/// What a layer has in a call of its model, on average.
pub struct InCall {
    pub calls: f64,
    pub own_ns: u64,
    pub total_ns: u64,
}

pub fn in_call(layer: &HostLayer) -> InCall {
    let turns = layer.each_ns.len().max(1) as u64;
    let calls = layer.calls as f64 / turns as f64;
    InCall { calls, own_ns: layer.own_ns / turns, total_ns: layer.total_ns / turns }
}
