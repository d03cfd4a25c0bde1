//! What a recording is asked to do. The command line fills it; this crate has no settings of its own.

pub use trace::settings::{Budget, Calls, GpuDetail, Recording as Settings};
