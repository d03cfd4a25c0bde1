//! The recorder: everything that happens outside the workload while it is recorded.
//! launch → drain → sample → store → finish.

mod outcome;
mod settings;

pub use outcome::{Error, Exit, Outcome, Recovered, SourceCost};
pub use settings::{Calls, Settings};

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Starts a command and records it until it ends. Signals and the exit pass through.
pub fn run(settings: &Settings, command: &[OsString]) -> Result<Outcome, Error> {
    let _ = (settings, command);
    unimplemented!()
}

/// Records a process that was not started by us, until it ends, `duration` has passed, or Ctrl-C.
pub fn attach(settings: &Settings, pid: u32, duration: Option<Duration>) -> Result<Outcome, Error> {
    let _ = (settings, pid, duration);
    unimplemented!()
}

/// The recorder that the Python package starts for its own process. `finish` is called with the trace's folder when
/// the trace is complete, and says where the report is; the package is told after that.
pub fn record(
    settings: &Settings,
    segments: &Path,
    pid: u32,
    finish: impl FnOnce(&Path) -> Option<PathBuf>,
) -> Result<Outcome, Error> {
    let _ = (settings, segments, pid, finish);
    unimplemented!()
}

/// Completes a trace whose recorder was killed, from the segments that it left. None: there is nothing to do.
pub fn recover(trace: &Path) -> Result<Option<Recovered>, Error> {
    let _ = trace;
    unimplemented!()
}

/// What each source of outside samples costs for this process, for `doctor`.
pub fn source_costs(pid: u32) -> Vec<SourceCost> {
    let _ = pid;
    unimplemented!()
}

/// Whether the stacks of this process can be sampled; if not, which setting forbids it.
pub fn can_sample(pid: u32) -> Result<(), String> {
    let _ = pid;
    unimplemented!()
}

/// The Python package beside this command, whose `_inject` folder brings the collectors in.
pub fn package() -> Option<PathBuf> {
    unimplemented!()
}

/// Whether native frames were built in.
pub fn has_native() -> bool {
    cfg!(feature = "native")
}
