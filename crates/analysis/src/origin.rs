//! Where a recording is from: who made it, from inside the program or from outside, and what the program is built on. That decides how to
//! record more of it, and what can be changed in the program: `diagnosis` has the words.

use timeline::{CollectorCode, Condition, NameIndex, NoteCode, Process, RecordedBy, SliceKind, Timeline};

/// Whether the recording is a snapshot of PyTorch's allocator: of memory, and of nothing else.
pub fn is_snapshot(timeline: &Timeline) -> bool {
    timeline.info.recorded_by == RecordedBy::Snapshot
}

/// Why nothing was recorded from inside the program, where nothing was: then what it marks is not in the recording, whatever it marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outside {
    /// It ran already.
    Attached,
    /// The collectors were to be brought in, and are in no process: the notes say why.
    KeptOut,
    /// Traces from before the manifest told.
    Unknown,
}

impl Outside {
    pub fn of(timeline: &Timeline) -> Option<Outside> {
        let any = |fits: fn(&Process) -> bool| timeline.processes.iter().any(fits);
        match timeline.info.recorded_by {
            RecordedBy::InferScope if timeline.info.attached => Some(Outside::Attached),
            RecordedBy::InferScope if any(is_outside) && !any(is_inside) && timeline.slices.is_empty() => {
                let kept_out = [NoteCode::NotInjected, NoteCode::NoPackage];
                let said = timeline.notes.iter().any(|note| kept_out.contains(&note.code));
                Some(if said { Outside::KeptOut } else { Outside::Unknown })
            }
            _ => None,
        }
    }
}

/// Python processes that were looked at from outside only, where others had the collectors.
pub fn only_from_outside(timeline: &Timeline) -> usize {
    let inside = timeline.processes.iter().any(is_inside);
    timeline.processes.iter().filter(|process| inside && is_outside(process)).count()
}

fn is_outside(process: &Process) -> bool {
    !process.python.is_empty() && !process.collectors.is_empty() && !is_inside(process)
}

/// Everything but these is recorded from inside.
fn is_inside(process: &Process) -> bool {
    process.collectors.iter().any(|one| one.name.known().is_none_or(|name| !name.is_outside()))
}

/// Whether any Python was seen in it; where nothing tells, it is taken to be.
pub fn is_python(timeline: &Timeline) -> bool {
    let processes = &timeline.processes;
    let named = processes.iter().any(|process| !process.python.is_empty() || process.program.contains("python"));
    named || processes.iter().all(|process| process.program.is_empty()) || any_name(timeline, |_, file| is_py(file))
}

/// Whether anything in the recording is of PyTorch.
pub fn uses_torch(timeline: &Timeline) -> bool {
    let layer = || (0..timeline.slices.len()).any(|index| timeline.slices.kind(index) == SliceKind::Layer);
    const SIGNS: [&str; 7] = ["aten::", "at::native", "at::cuda", "c10::", "c10d", "torch", "triton_"];
    timeline.info.recorded_by == RecordedBy::Kineto
        || is_snapshot(timeline)
        || any_name(timeline, |text, file| file.contains("/torch/") || SIGNS.iter().any(|sign| text.contains(sign)))
        || layer()
}

/// Nothing is of PyTorch, and that says something: the program is not Python, uses no device, or shows what it uses instead.
pub fn without_torch(timeline: &Timeline) -> bool {
    const OTHERS: [&str; 7] = ["jax", "jaxlib", "tensorflow", "cupy", "numba", "onnxruntime", "tensorrt"];
    let other = |file: &str| OTHERS.iter().any(|one| file.contains(&format!("/{one}/")));
    !uses_torch(timeline)
        && (!is_python(timeline) || any_name(timeline, |_, file| other(file)) || {
            timeline.gpu.is_empty() && any_name(timeline, |_, file| is_py(file))
        })
}

fn is_py(file: &str) -> bool {
    file.ends_with(".py")
}

fn any_name(timeline: &Timeline, fits: impl Fn(&str, &str) -> bool) -> bool {
    (0..timeline.names.len()).any(|index| {
        let name = timeline.names.get(NameIndex(index as u32));
        fits(&name.text, &name.file)
    })
}

pub fn samples_damaged(timeline: &Timeline) -> bool {
    timeline.info.damaged.iter().any(|file| file.starts_with("samples."))
}

pub fn failed(timeline: &Timeline, collector: CollectorCode) -> bool {
    let mut states = timeline.processes.iter().flat_map(|process| &process.collectors);
    states.any(|state| state.name == collector && state.state == Condition::Failed)
}
