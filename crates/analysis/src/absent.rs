//! What the recording does not have, and why: so that an empty table is never mistaken for "nothing happened".

use crate::Metrics;
use timeline::{SliceKind, Timeline};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absent {
    pub what: &'static str,
    pub why: String,
}

pub fn find(timeline: &Timeline, metrics: &Metrics) -> Vec<Absent> {
    let settings = &timeline.info.settings;
    let mut absent = Vec::new();
    let mut say = |missing: bool, what, collector, other: &str| {
        if missing {
            absent.push(Absent { what, why: reason(timeline, collector).unwrap_or_else(|| other.to_owned()) });
        }
    };
    let rate = settings.rate_hz;
    let no_samples = match rate {
        Some(rate) if rate <= 0.0 => "sampling was off",
        _ => "no Python thread was sampled",
    };
    say(metrics.samples.is_none(), "stack samples", "stacks", no_samples);
    let no_calls = if settings.calls == Some(true) { "no call was seen" } else { "record with --calls to have them" };
    say(metrics.calls.is_none(), "calls", "calls", no_calls);
    let marked = !(metrics.scopes.is_empty() && metrics.steps.is_empty() && metrics.marks.is_empty());
    say(!marked, "scopes, steps and marks", "scopes", "the program marks none (from inferscope import scope, step)");
    // A machine without a device is not told what is missing of one.
    let device = !timeline.gpu.is_empty();
    let none = |kind| device && !(0..timeline.slices.len()).any(|index| timeline.slices.kind(index) == kind);
    say(
        none(SliceKind::ApiCall),
        "calls that launch GPU work",
        "launches",
        "record with --gpu-detail launch to have them",
    );
    say(none(SliceKind::Layer), "layers", "layers", "record with --layers to have them");
    say(metrics.cpu.is_none(), "CPU time", "threads", "it was not read");
    say(metrics.memory.is_none(), "memory", "memory", "it was not read");
    absent
}

/// What the recorder wrote about a collector that was not on in any process.
fn reason(timeline: &Timeline, collector: &str) -> Option<String> {
    let states: Vec<_> = timeline
        .processes
        .iter()
        .flat_map(|process| &process.collectors)
        .filter(|state| state.name == collector)
        .collect();
    if states.iter().any(|state| state.state == "on") {
        return None;
    }
    states.iter().find(|state| !state.reason.is_empty()).map(|state| state.reason.clone())
}
