//! Two recordings side by side: what is different around them first, then what got slower or faster in a step, by how much,
//! and whether that is more than the spread of the steps. Recordings whose steps are not the same kind are refused.

mod changes;
mod environment;
pub mod gate;
pub mod memory;

pub use changes::{Change, Group};
pub use environment::Difference;
pub use gate::{Gate, GateResult};

use crate::Diagnosis;
use crate::named::noise::{self, Noise};
use crate::named::{METRICS, Measured, Named, durations};
use analysis::Metrics;
use analysis::steps::StepSource;
use timeline::Timeline;

/// One recording with what was measured of it.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    pub timeline: &'a Timeline,
    pub metrics: &'a Metrics,
    pub diagnosis: &'a Diagnosis,
}

#[derive(Clone, Debug)]
pub struct Comparison {
    pub environment: Vec<Difference>,
    /// What the steps of both are called, and how many each has.
    pub step: String,
    pub whole: bool,
    pub steps: (usize, usize),
    pub metrics: Vec<MetricChange>,
    /// By group in the order of [`Group::ALL`]; in each, the largest difference of a step first.
    pub changes: Vec<Change>,
    /// Of allocators that both have recorded. None: one of the two has none.
    pub memory: Option<memory::MemoryComparison>,
    /// What one of the two cannot tell, and so is not compared.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct MetricChange {
    /// Place in the table of metrics.
    pub metric: usize,
    pub a: Result<Measured, String>,
    pub b: Result<Measured, String>,
    /// None: one of the two has no value.
    pub noise: Option<Noise>,
}

impl MetricChange {
    pub fn name(&self) -> &'static str {
        METRICS[self.metric].name
    }

    pub fn values(&self) -> Option<(f64, f64)> {
        Some((self.a.as_ref().ok()?.value, self.b.as_ref().ok()?.value))
    }
}

/// The share by which b is more than a. None: of nothing, nothing is a share.
pub fn relative(a: f64, b: f64) -> Option<f64> {
    if a == b {
        return Some(0.0);
    }
    (a != 0.0).then(|| (b - a) / a.abs())
}

/// Why the two cannot be compared.
pub fn incomparable(a: &Diagnosis, b: &Diagnosis) -> Option<String> {
    let (left, right) = (&a.steps, &b.steps);
    let whole = |source| source == StepSource::Whole;
    for (steps, which) in [(left, "A"), (right, "B")] {
        if steps.count() == 0 || steps.total() == 0 {
            return Some(format!("{which} has no step that takes time"));
        }
    }
    match (whole(left.source), whole(right.source)) {
        (true, true) => None,
        (true, false) => Some(format!("A has no steps, B has \"{}\"", right.name)),
        (false, true) => Some(format!("A has steps \"{}\", B has none", left.name)),
        (false, false) if left.name != right.name => {
            Some(format!("the steps are \"{}\" in A and \"{}\" in B", left.name, right.name))
        }
        _ => None,
    }
}

/// The error says why the two cannot be compared.
pub fn compare(a: Side, b: Side) -> Result<Comparison, String> {
    if let Some(why) = incomparable(a.diagnosis, b.diagnosis) {
        return Err(why);
    }
    let named = [a, b].map(|side| Named::new(side.timeline, side.metrics, side.diagnosis.figures()));
    let metric = |metric: usize| {
        let (x, y) = (named[0].get(metric).clone(), named[1].get(metric).clone());
        let noise = x.as_ref().ok().zip(y.as_ref().ok()).map(|(x, y)| match METRICS[metric].name {
            "step_p50" => noise::of_ranks(&durations(&a.diagnosis.steps), &durations(&b.diagnosis.steps)),
            _ => Noise::of(*x, *y),
        });
        MetricChange { metric, a: x, b: y, noise }
    };
    let (changes, notes) = changes::between(a, b);
    Ok(Comparison {
        environment: environment::differences(a.timeline, b.timeline),
        step: a.diagnosis.steps.name.clone(),
        whole: a.diagnosis.steps.source == StepSource::Whole,
        steps: (a.diagnosis.steps.count(), b.diagnosis.steps.count()),
        metrics: (0..METRICS.len()).map(metric).collect(),
        changes,
        memory: memory::of_recordings(a, b),
        notes,
    })
}
