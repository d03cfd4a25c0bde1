//! What recording added to the steps. Gains are of the steps without it: a program that nobody records does not pay it, whether its fix is made or not.

use analysis::device::gpu::OverheadBy;
use analysis::device::gpu::call_cost::CallCost;
use analysis::phrase;

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
    pub(crate) fn ns(&self) -> i64 {
        self.call.ns.round().min(LONGEST_NS) as i64
    }

    /// One sentence.
    pub fn said(&self) -> String {
        let each = phrase::duration(u64::try_from(self.ns()).unwrap_or(0));
        let how = match self.call.by {
            OverheadBy::Steps => "recorded vs. unrecorded steps",
            OverheadBy::Windows => "recorded vs. unrecorded windows",
            OverheadBy::OwnTime => "the collector's own time",
        };
        let share = phrase::percent(self.share);
        format!("gain of the step without recording's own cost: {each} per CUDA call, {share} of the step ({how})")
    }
}
