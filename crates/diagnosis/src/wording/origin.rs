//! How much of a recording there is; why something is not recorded and how to record it, by what made the recording and what the program is built on.

use analysis::origin::{Outside, is_python, samples_damaged, uses_torch};
use timeline::{CollectorCode, Condition, RecordedBy, State, Timeline};

/// How to have the calls that launch GPU work.
pub fn for_launches(recorded_by: RecordedBy) -> &'static str {
    let torch = "profile with ProfilerActivity.CUDA and ProfilerActivity.CPU";
    recorded_by.choose("record with --gpu-detail launch", torch, "record with nsys --trace=cuda")
}

/// How to have the layers of a model.
pub fn for_layers(recorded_by: RecordedBy) -> &'static str {
    let torch = "profile with with_stack=True";
    recorded_by.choose("record with --layers", torch, "not in Nsight Systems files")
}

/// How to have every call.
pub fn for_calls(recorded_by: RecordedBy) -> &'static str {
    let torch = "profile with with_stack=True";
    recorded_by.choose("record with --calls", torch, "not in the file")
}

/// Why something that is recorded from inside is missing.
pub fn why(outside: Outside) -> &'static str {
    match outside {
        Outside::Attached => "`attach` records from outside only: use `inferscope run`",
        Outside::KeptOut => "collectors not loaded in the program",
        Outside::Unknown => {
            "nothing recorded inside the program: it was attached to, or the collectors were not loaded"
        }
    }
}

/// How to have it.
pub fn instead(outside: Outside) -> &'static str {
    match outside {
        Outside::Attached | Outside::Unknown => {
            "Start the program with `inferscope run -- <command>` to record its steps."
        }
        Outside::KeptOut => {
            "Load the collectors: the notes say what prevented it (Python's -I, -E or -S, a separate environment, a package that is not installed)."
        }
    }
}

/// How the program would mark its steps.
pub fn marks(timeline: &Timeline) -> &'static str {
    let nvtx = match uses_torch(timeline) {
        true => "with torch.cuda.nvtx.range(\"request\"): ...",
        false => "nvtxRangePushA(\"request\"); ... nvtxRangePop();",
    };
    let ours = if is_python(timeline) { "from inferscope import step, then with step(\"request\"): ..." } else { nvtx };
    let torch = "prof.step() after each, or with torch.profiler.record_function(\"request\"): ...";
    timeline.info.recorded_by.choose(ours, torch, nvtx)
}

/// Why a collector has nothing, in its own words where it left any.
pub fn not_recorded(timeline: &Timeline, collector: CollectorCode, plain: &str) -> String {
    if collector == CollectorCode::Stacks && samples_damaged(timeline) {
        return "the file with the stack samples is damaged".into();
    }
    let mut states = timeline.processes.iter().flat_map(|process| &process.collectors);
    let reason =
        states.find(|state| state.name == collector && state.state != Condition::On && !state.reason.is_empty());
    match reason {
        Some(state) => format!("{plain}: {}", state.reason),
        None => plain.to_owned(),
    }
}

/// How much of a recording there is, as it follows the word: `recording complete`.
pub fn completeness(state: State) -> &'static str {
    match state {
        State::Complete => "complete",
        State::Recording => "unfinished: still recording, or the recorder was killed",
        State::Recovered => "recovered after the recorder was killed",
        State::Cut { .. } => "truncated: only the beginning is readable",
        State::Unknown => "completeness unknown",
    }
}
