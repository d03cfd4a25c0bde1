//! A `Timeline` in, [`Metrics`] out: what the recorded events add up to. Every number comes from events; what was not
//! recorded is `None` or stands in [`Metrics::absent`] with its reason, never zero. How it looks is left to `report`.

mod absent;
mod calls;
mod curve;
mod metrics;
mod processes;
mod samples;
mod spread;

pub use absent::Absent;
pub use calls::{CallFunction, CallMetrics};
pub use curve::{Curve, Peak};
pub use metrics::{LossTotal, Metrics, measure};
pub use processes::{ProcessMetrics, ThreadMetrics};
pub use samples::{SampleMetrics, SampledFunction, SampledLine};
pub use spread::Spread;

pub mod advice;
mod answer;
mod blame;
mod bottleneck;
pub mod breakdown;
pub mod compare;
mod confidence;
mod diagnose;
pub mod expression;
pub mod finding;
mod frames;
mod full_queue;
mod gain;
mod gil;
pub mod gpu;
pub mod health;
pub mod idle;
mod kernel_kind;
pub mod kernel_name;
mod layers;
pub mod named;
mod ops;
mod peaks;
pub mod phrase;
mod proof;
mod rank;
mod reach;
mod recorded;
pub mod replay;
mod rule;
pub mod rules;
mod seen;
mod series;
mod share;
pub mod slow_steps;
mod spans;
mod step_kernels;
pub mod steps;
#[cfg(test)]
mod testing;
mod too_short;
pub mod user_rules;
pub mod waterfall;
mod windows;

pub use bottleneck::{Bottleneck, BottleneckKind};
pub use breakdown::{Breakdown, Part, PartKind, Phase};
pub use diagnose::{Diagnosis, Options, diagnose};
pub use finding::{Abstention, ChangeId, Evidence, Finding, Gain, GainBy, Place, Severity};
pub use gpu::GpuMetrics;
pub use health::{HealthLine, HealthState};
pub use idle::{Cause, DeviceIdle, IdleCause};
pub use rule::{Case, Rule, RuleDocs, Verdict};
pub use slow_steps::SlowSteps;
pub use steps::{Step, StepSource, Steps};
