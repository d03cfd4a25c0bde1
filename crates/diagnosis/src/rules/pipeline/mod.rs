//! Work of the host around the model: preparing a batch, waiting for the next one, handling results, looping over tensors.

pub(crate) mod input_pipeline;
pub(crate) mod no_request_waiting;
pub(crate) mod postprocess_tail;
pub(crate) mod preprocess_before_first_kernel;
pub(crate) mod python_loop_over_tensors;
pub(crate) mod single_threaded_loader;

use crate::rule::Family;

/// In the order of the page.
pub const FAMILY: Family = Family {
    name: "pipeline",
    title: "Input, output and loops",
    summary: "CPU work around the model: preparing a batch, waiting for the next one, handling results, looping over tensors.",
    is_of_recording: false,
    rules: &[
        &preprocess_before_first_kernel::PreprocessBeforeFirstKernel,
        &postprocess_tail::PostprocessTail,
        &single_threaded_loader::SingleThreadedLoader,
        &input_pipeline::InputPipeline,
        &no_request_waiting::NoRequestWaiting,
        &python_loop_over_tensors::PythonLoopOverTensors,
    ],
};
