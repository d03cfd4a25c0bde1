//! What happened in a recording: a `Timeline` in, numbers out. Steps and what their threads did in them, what the devices did, why they were
//! idle, and what all recorded events add up to ([`Metrics`]). Every number comes from events; what was not recorded is `None` or stands in
//! [`Metrics::absent`] with its reason, never zero. What to do about it is left to `diagnosis`, how it looks to `report`.
//!
//! The modules stand in the order in which they use each other: none uses a later one.

pub mod stats;

pub mod place;

pub mod phrase;

pub mod spelling;

pub mod origin;

pub mod frames;

pub mod operators;

pub mod steps;

pub mod memory;

pub mod host;

pub mod device;

pub mod idle;

pub mod dataflow;

pub mod step_operators;

pub mod metrics;

pub mod step_analysis;

pub mod slow_steps;

pub mod waterfall;

pub use device::gpu::GpuMetrics;
pub use host::StepContext;
pub use host::breakdown::{Breakdown, Part, PartKind, Phase};
pub use host::layers::{HostLayer, HostLayers};
pub use idle::{Cause, DeviceIdle, IdleCause};
pub use memory::AllocatorMemory;
pub use metrics::absent::Absent;
pub use metrics::calls::{CallFunction, CallMetrics};
pub use metrics::processes::{ProcessMetrics, ThreadMetrics};
pub use metrics::samples::{SampleMetrics, SampledFunction, SampledLine};
pub use metrics::{LossTotal, Metrics, measure};
pub use place::Place;
pub use slow_steps::SlowSteps;
pub use stats::curve::{Curve, Peak};
pub use stats::spread::Spread;
pub use step_analysis::StepAnalysis;
pub use step_operators::{OperatorRow, StepOperators};
pub use steps::{Step, StepSource, Steps};
