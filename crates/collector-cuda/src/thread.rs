//! How this library finds the ring of a thread: CUDA and NVTX are called by many threads at the same time.

pub use workload::thread::Writing;
pub use workload::thread::concurrent::writing;
