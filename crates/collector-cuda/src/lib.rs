//! Inside any program that uses CUDA or NVTX, with Python or without: callbacks that write records into the segment and return.
//! `injection` is how the library gets in.

mod gpu;
mod injection;
mod nvtx;
mod recorded;
mod recording;
mod thread;
mod torch_memory;
