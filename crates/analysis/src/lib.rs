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
