//! The recording that a program is part of, whoever of CUDA and NVTX is the first to ask.

use std::path::Path;
use std::sync::Mutex;
use trace::settings::internal;
use workload::library::Library;
use workload::session::{self, Session};
use workload::settings::Settings;

/// The recording of this process, begun by whoever comes first.
pub fn session() -> Result<&'static Session, String> {
    static STARTING: Mutex<()> = Mutex::new(());
    let _one = STARTING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(session) = session::current() {
        return Ok(session);
    }
    if let Some(child) = session::after_fork() {
        return child;
    }
    let settings = Settings::from_environment()
        .ok_or_else(|| format!("{} is not set: no recorder is there", internal::SEGMENTS))?;
    session::start(Library::Cuda, settings, program(), String::new())
}

/// The program's file name; never its arguments.
fn program() -> String {
    let path = std::fs::read_link("/proc/self/exe").unwrap_or_default();
    path.file_name().unwrap_or(Path::new("?").as_os_str()).to_string_lossy().into_owned()
}
