//! What the recording does not have, and why: so that an empty table is never mistaken for "nothing happened". `report` has the words.

use crate::metrics::Metrics;
use crate::origin::{self, Outside};
use timeline::{CollectorCode, Condition, RecordedBy, SliceKind, Timeline};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Absent {
    pub what: Missing,
    pub why: Why,
    /// Who would have recorded it.
    pub collector: CollectorCode,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Missing {
    Samples,
    Calls,
    Marks,
    Launches,
    Layers,
    CpuTime,
    Memory,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Why {
    /// What its collector left as the reason, which reports say of every collector that was not on.
    Reported(String),
    /// It was not asked for.
    NotAsked(RecordedBy),
    /// The tool that made the recording does not record it, or its file is not read for it.
    NotFrom(RecordedBy),
    SamplingOff,
    NoPythonThread,
    NotPython,
    NoneSeen,
    Outside(Outside),
    /// The program has none.
    Unmarked {
        recorded_by: RecordedBy,
        python: bool,
    },
    /// So many Python processes had no collectors.
    NotLoaded(usize),
}

pub fn find(timeline: &Timeline, metrics: &Metrics) -> Vec<Absent> {
    if crate::memory::is_all(timeline) {
        return Vec::new();
    }
    let settings = &timeline.info.settings;
    let mut absent = Vec::new();
    let mut add = |missing: bool, what, collector, other: Why| {
        if missing {
            let why = reason(timeline, collector).map_or(other, Why::Reported);
            absent.push(Absent { what, why, collector });
        }
    };
    let recorder = timeline.info.recorded_by;
    let python = origin::is_python(timeline);
    let outside = Outside::of(timeline);
    let no_samples = match settings.rate_hz {
        _ if matches!(recorder, RecordedBy::Kineto | RecordedBy::Nsight) => Why::NotFrom(recorder),
        Some(rate) if rate <= 0.0 => Why::SamplingOff,
        _ => Why::NoPythonThread,
    };
    add(metrics.samples.is_none(), Missing::Samples, CollectorCode::Stacks, no_samples);
    let no_calls = match (settings.calls, outside) {
        _ if recorder == RecordedBy::InferScope && !python => Why::NotPython,
        (_, Some(outside)) => Why::Outside(outside),
        (Some(true), None) => Why::NoneSeen,
        _ => Why::NotAsked(recorder),
    };
    add(metrics.calls.is_none(), Missing::Calls, CollectorCode::Calls, no_calls);
    let marked = !(metrics.scopes.is_empty() && metrics.steps.is_empty() && metrics.marks.is_empty());
    let unmarked = match (outside, origin::only_from_outside(timeline)) {
        (Some(outside), _) => Why::Outside(outside),
        (None, 0) => Why::Unmarked { recorded_by: recorder, python },
        (None, some) => Why::NotLoaded(some),
    };
    add(!marked, Missing::Marks, CollectorCode::Scopes, unmarked);
    // A machine without a device is not told what is missing of one.
    let device = !timeline.gpu.is_empty();
    let none = |kind| device && !(0..timeline.slices.len()).any(|index| timeline.slices.kind(index) == kind);
    add(none(SliceKind::ApiCall), Missing::Launches, CollectorCode::Launches, Why::NotAsked(recorder));
    // Layers are those of PyTorch's modules.
    let layers = none(SliceKind::Layer) && !origin::without_torch(timeline);
    add(layers, Missing::Layers, CollectorCode::Layers, Why::NotAsked(recorder));
    add(metrics.cpu.is_none(), Missing::CpuTime, CollectorCode::Threads, Why::NotFrom(recorder));
    add(metrics.memory.is_none(), Missing::Memory, CollectorCode::Memory, Why::NotFrom(recorder));
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

    fn why(text: &str, what: Missing) -> Option<Why> {
        let timeline = Timeline::from_text(text).unwrap();
        let all = find(&timeline, &crate::measure(&timeline));
        all.into_iter().find(|one| one.what == what).map(|one| one.why)
    }

    /// Whether a program marks anything is not known where nothing could see it.
    #[test]
    fn nobody_is_told_that_a_program_marks_nothing_that_was_not_looked_into() {
        let seen = "track main\n samples 0..1s every 10ms active gil f:1";
        let of = |before: &str| why(&format!("{before}{seen}"), Missing::Marks);
        let unmarked = Some(Why::Unmarked { recorded_by: RecordedBy::InferScope, python: true });
        assert_eq!((of("collector scopes on\n"), of("")), (unmarked.clone(), unmarked));
        let attached = Some(Why::Outside(Outside::Attached));
        assert_eq!(of("attached\n collector stacks on\n"), attached);
        assert_eq!(why(&format!("attached\n{seen}"), Missing::Calls), attached);
        let note = "note not-injected it~was~started~with~-I\n";
        assert_eq!(of(&format!("collector stacks on\n {note}")), Some(Why::Outside(Outside::KeptOut)));
        assert_eq!(of("collector stacks on\n"), Some(Why::Outside(Outside::Unknown)));
        let one = of("process a.py\n collector scopes on\n process b.py\n collector stacks on\n");
        assert_eq!(one, Some(Why::NotLoaded(1)));
    }
}
