//! The metrics by name: what limits, gates and user rules can ask of a recording. Each is one number of a mean step, or of
//! the recording as a whole; a metric that was not recorded has no value, and says why.

mod gather;
pub mod noise;
pub mod per_step;
mod table;

pub(crate) use gather::{durations, part_time};
pub use table::{METRICS, Metric, Unit, find, nearest};

use analysis::host::breakdown::Breakdown;
use analysis::{GpuMetrics, Metrics, Steps};
use timeline::Timeline;

/// A number, and how far off it may be by chance: half of its 95 % interval. None: too few steps to know.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    pub value: f64,
    pub error: Option<f64>,
}

impl Measured {
    pub fn exactly(value: f64) -> Measured {
        Measured { value, error: Some(0.0) }
    }
}

/// The values of all metrics of one recording.
#[derive(Clone, Debug)]
pub struct Named {
    /// As many as [`METRICS`], in their order; the error says why there is no value.
    values: Vec<Result<Measured, String>>,
}

/// What the metrics of the steps are made from.
#[derive(Clone, Copy, Debug)]
pub struct Figures<'a> {
    pub steps: &'a Steps,
    pub breakdown: &'a Breakdown,
    /// None: no device work was recorded.
    pub gpu: Option<&'a GpuMetrics>,
}

impl Named {
    pub fn new(timeline: &Timeline, metrics: &Metrics, figures: Figures) -> Named {
        Named { values: gather::all(timeline, metrics, figures) }
    }

    pub fn get(&self, metric: usize) -> &Result<Measured, String> {
        &self.values[metric]
    }

    /// By name; None: there is no such metric.
    pub fn by_name(&self, name: &str) -> Option<&Result<Measured, String>> {
        find(name).map(|place| &self.values[place])
    }
}
