//! The sink: telemetry in files that are only appended to, about 25 bytes an event. A file is filled through a shared mapping, so that an event costs
//! a copy and no system call, and whoever writes may be killed at any moment: what was committed is in the file. Each file can be read
//! by itself, so the oldest can be removed.

mod encode;
mod file;
mod read;
mod write;

pub use read::{Damage, files, read, read_folder};
pub use write::{Limits, Sink};

/// What the files of a sink are called: `SESSION-000001.telemetry`.
pub const EXTENSION: &str = "telemetry";

#[cfg(test)]
mod tests;
