//! How this library finds the ring of a thread: every hook of CPython's runs under the GIL.

pub use workload::thread::under_gil::{last, writing};
pub use workload::thread::{DeepCall, Writing};
