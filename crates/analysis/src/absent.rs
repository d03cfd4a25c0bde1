//! What the recording does not have, and why: so that an empty table is never mistaken for "nothing happened".

use crate::Metrics;
use crate::advice::{self, Recorder};
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
    let recorder = Recorder::of(timeline);
    let python = advice::is_python(timeline);
    let no_samples = match settings.rate_hz {
        _ if recorder == Recorder::Torch => "torch.profiler takes none",
        _ if recorder == Recorder::Nsight => "those of Nsight Systems are not read",
        Some(rate) if rate <= 0.0 => "sampling was off",
        _ => "no Python thread was sampled",
    };
    say(metrics.samples.is_none(), "stack samples", "stacks", no_samples);
    let no_calls = match settings.calls {
        _ if recorder == Recorder::Ours && !python => "the program is not Python",
        Some(true) => "no call was seen",
        _ => recorder.for_calls(),
    };
    say(metrics.calls.is_none(), "calls", "calls", no_calls);
    let marked = !(metrics.scopes.is_empty() && metrics.steps.is_empty() && metrics.marks.is_empty());
    let ours = if python { "from inferscope import scope, step" } else { "NVTX ranges" };
    let how = recorder.choose(ours, "torch.profiler.record_function, prof.step()", "NVTX ranges");
    say(!marked, "scopes, steps and marks", "scopes", &format!("the program marks none ({how})"));
    // A machine without a device is not told what is missing of one.
    let device = !timeline.gpu.is_empty();
    let none = |kind| device && !(0..timeline.slices.len()).any(|index| timeline.slices.kind(index) == kind);
    say(none(SliceKind::ApiCall), "calls that launch GPU work", "launches", recorder.for_launches());
    // Layers are those of PyTorch's modules.
    say(none(SliceKind::Layer) && !advice::without_torch(timeline), "layers", "layers", recorder.for_layers());
    let unread =
        recorder.choose("it was not read", "torch.profiler does not record it", "it is not read from the file");
    say(metrics.cpu.is_none(), "CPU time", "threads", unread);
    say(metrics.memory.is_none(), "memory", "memory", unread);
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
