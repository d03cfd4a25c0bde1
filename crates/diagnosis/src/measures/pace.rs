//! Whether a device sets the pace of the steps.

use analysis::StepAnalysis;

/// One that is busy for so much sets the pace: where it idles for more than a fifth of the step, whatever makes it idle does so too.
pub const MIN_PACING_SHARE: f64 = 0.8;

/// The part of the steps in which the busiest device works. 0 without one.
pub fn busiest(steps: &StepAnalysis) -> f64 {
    let devices = steps.idle().iter().filter(|device| device.window_ns > 0);
    devices.map(|device| device.busy_ns as f64 / device.window_ns as f64).fold(0.0, f64::max)
}
