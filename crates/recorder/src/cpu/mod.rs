//! What the processor does for the workload: sampled Python stacks, and the time that the kernel gave each thread.

pub(crate) mod permission;
mod spy;
pub(crate) mod stacks;
pub(crate) mod thread_ids;
pub(crate) mod threads;
