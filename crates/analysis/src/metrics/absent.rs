//! What the recording does not have, and why: so that an empty table is never mistaken for "nothing happened".

use crate::metrics::Metrics;
use crate::origin::{self, Outside};
use crate::phrase;
use timeline::{CollectorCode, Condition, RecordedBy, SliceKind, Timeline};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absent {
    pub what: &'static str,
    pub why: String,
    /// Who would have recorded it.
    pub collector: CollectorCode,
    /// Why is what that collector left as its reason, which reports say of every collector that was not on.
    pub reported: bool,
}

pub fn find(timeline: &Timeline, metrics: &Metrics) -> Vec<Absent> {
    if crate::memory::is_all(timeline) {
        return Vec::new();
    }
    let settings = &timeline.info.settings;
    let mut absent = Vec::new();
    let mut say = |missing: bool, what, collector, other: &str| {
        if missing {
            let own = reason(timeline, collector);
            let (reported, why) = (own.is_some(), own.unwrap_or_else(|| other.to_owned()));
            absent.push(Absent { what, why, collector, reported });
        }
    };
    let recorder = timeline.info.recorded_by;
    let python = origin::is_python(timeline);
    let outside = Outside::of(timeline).map(Outside::why);
    let no_samples = match settings.rate_hz {
        _ if recorder == RecordedBy::Kineto => "torch.profiler does not sample",
        _ if recorder == RecordedBy::Nsight => "not read from Nsight Systems files",
        Some(rate) if rate <= 0.0 => "sampling was off",
        _ => "no Python thread was sampled",
    };
    say(metrics.samples.is_none(), "stack samples", CollectorCode::Stacks, no_samples);
    let no_calls = match settings.calls {
        _ if recorder == RecordedBy::InferScope && !python => "the program is not Python",
        _ if outside.is_some() => outside.unwrap_or_default(),
        Some(true) => "no calls seen",
        _ => origin::for_calls(recorder),
    };
    say(metrics.calls.is_none(), "calls", CollectorCode::Calls, no_calls);
    let marked = !(metrics.scopes.is_empty() && metrics.steps.is_empty() && metrics.marks.is_empty());
    let ours = if python { "from inferscope import scope, step" } else { "NVTX ranges" };
    let how = recorder.choose(ours, "torch.profiler.record_function, prof.step()", "NVTX ranges");
    let unmarked = match (outside, origin::only_from_outside(timeline)) {
        (Some(outside), _) => outside.to_owned(),
        (None, 0) => format!("none in the program ({how})"),
        (None, some) => {
            let processes = phrase::counted(some as u64, "Python process");
            format!("none in the recorded processes; collectors not loaded in {processes}")
        }
    };
    say(!marked, "scopes, steps and marks", CollectorCode::Scopes, &unmarked);
    // A machine without a device is not told what is missing of one.
    let device = !timeline.gpu.is_empty();
    let none = |kind| device && !(0..timeline.slices.len()).any(|index| timeline.slices.kind(index) == kind);
    say(
        none(SliceKind::ApiCall),
        "calls that launch GPU work",
        CollectorCode::Launches,
        origin::for_launches(recorder),
    );
    // Layers are those of PyTorch's modules.
    say(
        none(SliceKind::Layer) && !origin::without_torch(timeline),
        "layers",
        CollectorCode::Layers,
        origin::for_layers(recorder),
    );
    let unread = recorder.choose("not read", "not recorded by torch.profiler", "not read from the file");
    say(metrics.cpu.is_none(), "CPU time", CollectorCode::Threads, unread);
    say(metrics.memory.is_none(), "memory", CollectorCode::Memory, unread);
    absent
}

/// What the recorder wrote about a collector that was not on in any process.
fn reason(timeline: &Timeline, collector: CollectorCode) -> Option<String> {
    let states: Vec<_> = timeline
        .processes
        .iter()
        .flat_map(|process| &process.collectors)
        .filter(|state| state.name == collector)
        .collect();
    if states.iter().any(|state| state.state == Condition::On) {
        return None;
    }
    states.iter().find(|state| !state.reason.is_empty()).map(|state| state.reason.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str, what: &str) -> String {
        let timeline = Timeline::from_text(text).unwrap();
        let all = find(&timeline, &crate::measure(&timeline));
        all.into_iter().find(|one| one.what == what).map(|one| one.why).unwrap_or_default()
    }

    /// Whether a program marks anything is not known where nothing could see it.
    #[test]
    fn nobody_is_told_that_a_program_marks_nothing_that_was_not_looked_into() {
        let seen = "track main\n samples 0..1s every 10ms active gil f:1";
        let of = |before: &str| why(&format!("{before}{seen}"), "scopes, steps and marks");
        assert_eq!(of("collector scopes on\n"), "none in the program (from inferscope import scope, step)");
        assert_eq!(of(""), "none in the program (from inferscope import scope, step)");
        assert_eq!(of("attached\n collector stacks on\n"), "`attach` records from outside only: use `inferscope run`");
        assert_eq!(
            why(&format!("attached\n{seen}"), "calls"),
            "`attach` records from outside only: use `inferscope run`"
        );
        let note = "note not-injected it~was~started~with~-I\n";
        assert_eq!(of(&format!("collector stacks on\n {note}")), "collectors not loaded in the program");
        assert!(of("collector stacks on\n").starts_with("nothing recorded inside the program"));
        assert_eq!(
            of("process a.py\n collector scopes on\n process b.py\n collector stacks on\n"),
            "none in the recorded processes; collectors not loaded in 1 Python process"
        );
    }
}
