//! What the devices did, in numbers: how busy they were, which kernels and copies took the time, what the calls that asked
//! for it cost. Everything is from recorded work; what the numbers mean for a step is left to the rules.

mod apis;
mod busy;
pub mod call_cost;
mod copies;
mod graphs;
mod inside;
mod kernel_layer;
mod kernels;
mod launches;
pub mod moved;
mod only;
mod overhead;
mod parts;
mod ranges;
mod steps;

pub use graphs::Graphs;
pub use inside::InSteps;
pub use kernel_layer::KernelLayer;
pub use parts::{DeviceInputs, Parts};

pub use crate::device::layers::Unnamed;
use crate::host::StepContext;
use crate::place::Place;
use crate::stats::curve::Curve;
use crate::steps::windows::Window;
use std::sync::Arc;
use timeline::gpu::{GpuClock, Shape};
use timeline::{NameIndex, ProcessIndex, SliceKind};

#[derive(Clone, Debug)]
pub struct GpuMetrics {
    /// By process and ordinal: every device that had work.
    pub devices: Vec<DeviceMetrics>,
    /// Most time first; these lists hold all of the recording, not only the steps.
    pub kernels: Vec<KernelRow>,
    pub copies: Vec<CopyRow>,
    pub apis: Vec<ApiRow>,
    /// None: the calls that asked for the work were not recorded.
    pub launch: Option<LaunchMetrics>,
    /// Most time first. Empty: layers were not recorded.
    pub layers: Vec<LayerRow>,
    /// The kernels without one, where layers were asked for.
    pub unnamed: Option<Unnamed>,
    /// Steps, scopes and NVTX ranges by the work launched inside them, most time first.
    pub ranges: Vec<RangeRow>,
    /// By step, for the steps that launched anything.
    pub steps: Vec<StepWork>,
    pub clock: GpuClock,
    pub overhead: Option<Overhead>,
    /// Work whose launch was not recorded. Not that which only a wrong clock puts before its launch: see [`GpuClock::early`].
    pub before_window: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct DeviceMetrics {
    pub process: ProcessIndex,
    pub ordinal: u32,
    /// Empty when it was not recorded.
    pub name: Arc<str>,
    /// The time in which any chosen step was open, or the whole recording.
    pub window_ns: u64,
    /// In it: when any work ran, kernels, copies (with memsets and migrations), copies with no kernel beside them.
    pub busy_ns: u64,
    pub kernel_ns: u64,
    pub copy_ns: u64,
    pub exposed_copy_ns: u64,
    /// From the start of the first work to the end of the last, in the whole recording.
    pub span_ns: u64,
    /// From the start of the recording to the first work, and from the last to its end.
    pub leading_gap_ns: u64,
    pub trailing_gap_ns: u64,
    /// In the whole recording.
    pub kernels: u64,
    /// Per measured step of the process, 0 to 1: the part of it in which any work ran. Empty without steps.
    pub per_step_busy: Vec<f64>,
    /// Those of its kernels that start inside the steps.
    pub in_steps: InSteps,
}

#[derive(Clone, PartialEq, Debug)]
pub struct KernelRow {
    pub name: NameIndex,
    pub count: u64,
    pub total_ns: u64,
    pub mean_ns: u64,
    pub p95_ns: u64,
    /// Of all kernel time, 0 to 1.
    pub share: f64,
    /// The most frequent one.
    pub shape: Option<Shape>,
    /// The line that launched most of them, from stack samples taken while they were launched.
    pub place: Option<Place>,
    /// The layer of most of them; None: most are in none that is known.
    pub layer: Option<KernelLayer>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct CopyRow {
    /// See [`trace::tables::detail`]; all 0 for memsets.
    pub direction: u8,
    pub source: u8,
    pub target: u8,
    /// "host → device, pageable".
    pub label: String,
    pub count: u64,
    pub bytes: u64,
    /// The sum of their times.
    pub total_ns: u64,
    /// Achieved: bytes over time, 10⁹ bytes a second.
    pub gb_per_s: f64,
    /// With no kernel of the device beside them.
    pub exposed_ns: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiRow {
    pub name: NameIndex,
    pub count: u64,
    pub total_ns: u64,
    pub mean_ns: u64,
    pub p95_ns: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct LaunchMetrics {
    /// From the begin of a launch call to the start of its first work, for the calls that launch kernels.
    pub latency_p50_ns: u64,
    pub latency_p95_ns: u64,
    /// How long a launch call takes.
    pub call_p50_ns: u64,
    /// Nanoseconds, the median of the launches of each bucket; its peak is the longest of all. None: only copies were launched.
    pub latency: Option<Curve>,
    /// Work launched and not finished, over the recording.
    pub depth: Curve,
    pub max_depth: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayerRow {
    pub name: NameIndex,
    pub total_ns: u64,
    pub kernels: u64,
    /// How its kernels got the name: launched inside the layer, as the same sequence was elsewhere, or as captured.
    pub direct: u64,
    pub by_sequence: u64,
    pub by_capture: u64,
}

/// The work that was launched inside a range, on the thread of the range or on one that has none of that kind open, while no other
/// thread of the process has; a range around it has it too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeRow {
    pub kind: SliceKind,
    pub name: NameIndex,
    pub kernels: u64,
    /// Sum of the times of its kernels, copies and memsets.
    pub total_ns: u64,
}

/// What one step gave to the devices; see `steps` for which work is whose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepWork {
    /// Place in [`crate::steps::Steps::steps`].
    pub step: u32,
    pub kernels: u64,
    pub copies: u64,
    /// Sum of the times of its work.
    pub total_ns: u64,
    /// From the start of its first work to the end of its last, which may lie after the step.
    pub first_start: u64,
    pub last_end: u64,
}

/// What recording the device cost.
#[derive(Clone, PartialEq, Debug)]
pub struct Overhead {
    /// In the collectors' own code, as they measured it.
    pub own_ns: u64,
    /// Launch calls that were recorded: those that gave a device something to do.
    pub launches: u64,
    /// What CUPTI says that it took itself.
    pub cupti_ns: u64,
    /// Of the recording. None: the data cannot say it.
    pub percent: Option<f64>,
    pub how: OverheadHow,
}

/// How the overhead was got.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum OverheadHow {
    /// Steps with recording of the GPU take longer than those without, by their medians and as a part of these.
    Steps {
        with: u64,
        without: u64,
        longer: f64,
    },
    /// The GPU was recorded for a part of the time, and that cost so much meanwhile.
    Windows {
        recorded: f64,
        cost: f64,
    },
    OwnTime,
    /// Another tool's file.
    NotMeasured,
    /// Only what comes beside the collectors' time on the program's threads.
    OwnTimeUnknown,
}

impl OverheadHow {
    /// None: there is no number.
    pub fn by(self) -> Option<OverheadBy> {
        match self {
            OverheadHow::Steps { .. } => Some(OverheadBy::Steps),
            OverheadHow::Windows { .. } => Some(OverheadBy::Windows),
            OverheadHow::OwnTime => Some(OverheadBy::OwnTime),
            OverheadHow::NotMeasured | OverheadHow::OwnTimeUnknown => None,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OverheadBy {
    /// Steps that were recorded against steps that were not.
    Steps,
    /// The collector's windows against each other, by the program's waits.
    Windows,
    /// The collectors' own time: what CUPTI adds is not in it, so it is the least that it can be.
    OwnTime,
}

impl OverheadBy {
    pub fn name(self) -> &'static str {
        match self {
            OverheadBy::Steps => "steps",
            OverheadBy::Windows => "windows",
            OverheadBy::OwnTime => "own_time",
        }
    }
}

/// The time in which any chosen step was open, for the devices of a process; the whole recording where nothing takes time.
pub fn windows_of(context: &StepContext, process: ProcessIndex) -> Vec<Window> {
    DeviceInputs::from(context).windows_of(process)
}
