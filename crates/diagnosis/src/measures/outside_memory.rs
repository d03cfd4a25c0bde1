//! What rules of memory beside a framework's allocator share: whether its calls were recorded, how a device and a site are called, and when growth is a
//! drift and not a start-up that went on for some steps.

use crate::rule::{Case, Verdict};
use analysis::memory::course::Course;
use analysis::memory::outside::Taken;
use analysis::{origin, phrase};
use timeline::ProcessIndex;

/// None: its calls were recorded.
pub fn not_recorded(case: &Case) -> Option<Verdict> {
    let timeline = case.timeline;
    if origin::is_snapshot(timeline) {
        return Some(Verdict::Abstain("a snapshot has only what PyTorch's allocator holds".into()));
    }
    if !timeline.gpu.allocations.is_empty() {
        return None;
    }
    Some(match timeline.gpu.is_empty() && timeline.memory.is_empty() {
        true => Verdict::Silent,
        false => {
            let ours = "CUDA memory calls not recorded (none in this program, or --gpu-detail off)";
            let said = timeline.info.recorded_by.choose(
                ours,
                "CUDA memory calls not recorded: torch.profiler's files do not have them",
                "CUDA memory calls not recorded: not read from files of Nsight Systems",
            );
            Verdict::Abstain(said.into())
        }
    })
}

/// "GPU 0"; with the process where there are several.
pub fn device(case: &Case, process: ProcessIndex, ordinal: u32) -> String {
    format!("GPU {ordinal}{}", of(case, process))
}

/// " of pid 7" where there are several processes.
pub fn of(case: &Case, process: ProcessIndex) -> String {
    match case.timeline.processes.get(process.0 as usize) {
        Some(process) if case.timeline.processes.len() > 1 => format!(" of pid {}", process.pid),
        _ => String::new(),
    }
}

/// "cudaMalloc in load (engine.py:44)"; "cudaMalloc by libnccl".
pub fn said(taken: &Taken) -> String {
    let (place, call) = (&taken.site.place, taken.site.place.api.as_deref().unwrap_or("calls of CUDA"));
    match &taken.site.library {
        _ if place.function.is_some() || place.file.is_some() => format!("{call} in {}", phrase::place(place)),
        Some(library) => format!("{call} by {library}"),
        None => call.to_owned(),
    }
}

/// The levels from which growth is a drift.
pub struct DriftLevels {
    pub bytes: f64,
    pub trend: f64,
    pub late: f64,
}

/// Whether it rises over the steps, and still does in the end. Without steps each third of the recording must have its part of the growth.
pub fn drifts(course: &Course, levels: &DriftLevels) -> bool {
    course.growth() as f64 >= levels.bytes
        && course.trend >= levels.trend
        && course.late() >= levels.late
        && (course.steps > 0 || course.steady() >= levels.late)
}

/// "by 32.0 MiB a step", "by 1.00 GiB".
pub fn rate(course: &Course) -> String {
    match course.per_step() {
        Some(bytes) => format!("by {} a step", phrase::bytes(bytes)),
        None => format!("by {}", phrase::bytes(course.growth())),
    }
}

/// Some of what is held at the ends of the windows, from first to last.
pub fn held(course: &Course) -> String {
    let every = course.held.len().div_ceil(5).max(1);
    let mut values: Vec<String> = course.held.iter().rev().step_by(every).map(|bytes| phrase::bytes(*bytes)).collect();
    values.reverse();
    let of = if course.steps > 0 { "steps" } else { "parts of the recording" };
    format!(
        "held after the {of}: {}; the trend is {:.1} standard deviations from chance",
        values.join(", "),
        course.trend
    )
}

/// That the next window would rise again, from those that did.
pub fn rises_again(course: &Course) -> f64 {
    (course.rises() as f64 + 1.0) / (course.held.len() as f64 + 1.0)
}
