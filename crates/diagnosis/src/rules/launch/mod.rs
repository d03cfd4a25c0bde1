//! The host launches too slowly or too late, loads or compiles while a step runs, or does not use the CUDA graphs that it has.

pub(crate) mod compile_in_request;
pub(crate) mod graph_breaks;
pub(crate) mod graph_input_copies;
pub(crate) mod graph_not_used;
pub(crate) mod host_wait;
pub(crate) mod launch_bound;
pub(crate) mod launch_queue_full;
pub(crate) mod module_loading;
pub(crate) mod queue_never_builds;
pub(crate) mod short_kernel_gaps;

use crate::rule::Family;

/// In the order of the page.
pub const FAMILY: Family = Family {
    name: "launch",
    title: "Launches and CUDA graphs",
    summary: "The CPU launches too slowly or too late, loads or compiles code during a step, or does not use the CUDA graphs it has.",
    is_of_recording: false,
    rules: &[
        &host_wait::HostWait,
        &launch_bound::LaunchBound,
        &queue_never_builds::QueueNeverBuilds,
        &launch_queue_full::LaunchQueueFull,
        &short_kernel_gaps::ShortKernelGaps,
        &graph_not_used::GraphNotUsed,
        &graph_input_copies::GraphInputCopies,
        &graph_breaks::GraphBreaks,
        &module_loading::ModuleLoading,
        &compile_in_request::CompileInRequest,
    ],
};
