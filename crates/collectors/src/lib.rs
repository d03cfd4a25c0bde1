//! Inside the workload: hooks that write records into the segment and return. One source, two libraries: the Python
//! extension (`extension` is its surface), and the one that the CUDA driver and NVTX load into any program (`injection`).

mod guard;
mod place;
mod session;
mod settings;
mod steps;
mod thread;

#[cfg(feature = "python")]
mod extension;
#[cfg(feature = "python")]
mod python;

#[cfg(not(feature = "python"))]
mod cost;
#[cfg(not(feature = "python"))]
mod gpu;
#[cfg(not(feature = "python"))]
mod injection;
#[cfg(not(feature = "python"))]
mod nvtx;
#[cfg(not(feature = "python"))]
mod recorded;
