//! Whether the recording can be trusted: lost records, warm-up, clocks, and what recording costs.

pub(crate) mod clock_residual;
pub(crate) mod dropped_records;
pub(crate) mod no_steps_found;
pub(crate) mod overhead_in_window;
pub(crate) mod unstable_iterations;
pub(crate) mod warmup_in_window;
pub(crate) mod work_from_before_window;

use crate::rule::Family;

/// In the order of the page.
pub const FAMILY: Family = Family {
    name: "health",
    title: "The recording itself",
    summary: "Whether the recording can be trusted: lost records, warm-up, clocks, and recording overhead.",
    is_of_recording: true,
    rules: &[
        &no_steps_found::NoStepsFound,
        &warmup_in_window::WarmupInWindow,
        &unstable_iterations::UnstableIterations,
        &dropped_records::DroppedRecords,
        &work_from_before_window::WorkFromBeforeWindow,
        &clock_residual::ClockResidual,
        &overhead_in_window::OverheadInWindow,
    ],
};
