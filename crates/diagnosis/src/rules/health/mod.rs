//! Whether the recording can be trusted.

pub(crate) mod clock_residual;
pub(crate) mod dropped_records;
pub(crate) mod no_steps_found;
pub(crate) mod overhead_in_window;
pub(crate) mod unstable_iterations;
pub(crate) mod warmup_in_window;
pub(crate) mod work_from_before_window;
