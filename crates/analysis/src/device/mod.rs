//! What the devices did: their work in numbers, kernels by what they are, operators by what they cost, and what a device can do at the most.

pub mod gpu;
pub mod kernel_kind;
pub mod kernel_name;
pub mod layers;
pub mod link;
pub mod ops;
pub mod peaks;
pub mod step_kernels;
pub mod to_host;
