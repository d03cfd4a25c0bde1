//! What recording added to the steps. Gains are of the steps without it: a program that nobody records does not pay it, whether its fix is made or not.

use analysis::device::gpu::call_cost::CallCost;

/// A second: no call costs that, and sums must not overflow.
const LONGEST_NS: f64 = 1e9;

#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RecordingCost {
    pub call: CallCost,
    /// The part of the recorded steps that goes with it.
    pub share: f64,
}

impl RecordingCost {
    /// Of one call.
    pub fn ns(&self) -> i64 {
        self.call.ns.round().min(LONGEST_NS) as i64
    }
}
