//! What the processor does for the workload: sampled Python stacks, and the time that the kernel gave each thread.

mod budget;
mod changed;
mod native_rows;
pub(crate) mod permission;
mod py_spy_reader;
mod reader;
mod remote_memory;
mod scheduling;
mod spy;
pub(crate) mod stacks;
mod thread_ids;
mod thread_list;
pub(crate) mod threads;
