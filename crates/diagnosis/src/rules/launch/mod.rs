//! The host cannot feed the device: launches, CUDA graphs, loading and compiling.

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
