//! Python and the CPU.

pub(crate) mod cpu_memory_pressure;
pub(crate) mod cpu_oversubscribed;
pub(crate) mod event_loop_blocked;
pub(crate) mod gc_pauses;
pub(crate) mod gil_contention;
pub(crate) mod hot_line;
pub(crate) mod input_pipeline;
pub(crate) mod launch_thread_descheduled;
pub(crate) mod logging_in_step;
pub(crate) mod postprocess_tail;
pub(crate) mod preprocess_before_first_kernel;
pub(crate) mod python_loop_over_tensors;
pub(crate) mod single_threaded_loader;
pub(crate) mod waits_in_step;
pub(crate) mod wrong_numa_node;
