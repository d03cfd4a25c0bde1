//! Segment folders that nobody will come back to: their recorder and writers are dead, and their trace is gone or whole.
//! Shared memory is memory, so each recording begins by giving such folders back.

use crate::lock::{Lock, Refused};
use crate::manifest::{Manifest, State};
use crate::output::TRACE_FILE;
use crate::proc;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use trace::segment::SUFFIX;
use trace::tables::LOCK;

pub(crate) fn sweep() {
    sweep_folder(Path::new("/dev/shm"));
    Lock::sweep();
}

fn sweep_folder(shared: &Path) {
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    let prefix = format!("inferscope-{user}-");
    for entry in fs::read_dir(shared).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = entry.metadata().is_ok_and(|metadata| metadata.is_dir() && metadata.uid() == user);
        if ours && name.starts_with(&prefix) && !name.ends_with("-locks") && is_stale(&entry.path(), &name) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_stale(folder: &Path, name: &str) -> bool {
    // inferscope-<user>-<supervisor>-<random>
    let supervisor = name.split('-').nth(2).and_then(|pid| pid.parse().ok()).unwrap_or(0);
    if supervisor != 0 && proc::runs(supervisor) || has_living_writer(folder) {
        return false;
    }
    // The recorder goes on without its supervisor.
    if Lock::is_held(&folder.join(TRACE_FILE)).is_ok_and(|held| held) {
        return false;
    }
    match fs::read(folder.join(TRACE_FILE)) {
        Ok(path) => is_done_with(Path::new(OsStr::from_bytes(&path))),
        // Its recorder never came, or is just about to.
        Err(_) => {
            let age = fs::metadata(folder).and_then(|folder| folder.modified()).map(|time| time.elapsed());
            age.is_ok_and(|age| age.is_ok_and(|age| age > Duration::from_secs(60)))
        }
    }
}

fn has_living_writer(folder: &Path) -> bool {
    fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        // `<pid>-<start>`, and a number after it for a program that took the process over (exec).
        let mut parts = name.strip_suffix(SUFFIX).unwrap_or_default().split('-');
        let identity =
            (parts.next().and_then(|pid| pid.parse().ok()), parts.next().and_then(|start| start.parse().ok()));
        matches!(identity, (Some(pid), Some(start)) if proc::alive(pid, start))
    })
}

/// A trace that is gone, or that needs nothing from shared memory any more.
fn is_done_with(trace: &Path) -> bool {
    if !trace.exists() {
        return true;
    }
    // The manifest first: to take the lock of a trace that needs recovery would turn away whoever recovers it just now.
    let complete = Manifest::read(trace).is_ok_and(|manifest| manifest.state != State::Recording);
    complete && !matches!(Lock::take(&trace.join(LOCK)), Err(Refused::Held(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_that_nobody_needs_go() {
        // SAFETY: always succeeds.
        let user = unsafe { libc::geteuid() };
        let shared = std::env::temp_dir().join(format!("inferscope-sweep-{}", std::process::id()));
        // A pid that is larger than the kernel gives out: no such process.
        let folder = |name: &str, pid: u32, trace: &Path| {
            let folder = shared.join(format!("inferscope-{user}-{pid}-{name}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(TRACE_FILE), trace.as_os_str().as_bytes()).unwrap();
            folder
        };
        let gone = Path::new("/nonexistent/trace");
        let unfinished = shared.join("unfinished");
        fs::create_dir_all(&unfinished).unwrap();
        let manifest = Manifest::new("x".into(), &crate::Settings::default(), trace::Source::Monotonic);
        manifest.write(&unfinished).unwrap();
        let stale = folder("a", u32::MAX >> 1, gone);
        let recorded = folder("b", std::process::id(), gone);
        let recoverable = folder("c", u32::MAX >> 1, &unfinished);
        let written = folder("d", u32::MAX >> 1, gone);
        let me = std::process::id();
        fs::write(written.join(format!("{me}-{}{SUFFIX}", proc::stat(me).unwrap().start_ticks)), "").unwrap();
        let orphaned = folder("e", u32::MAX >> 1, gone);
        let lock = Lock::take(&orphaned.join(TRACE_FILE)).unwrap();
        sweep_folder(&shared);
        assert_eq!([&stale, &recorded, &recoverable, &written].map(|f| f.exists()), [false, true, true, true]);
        assert!(orphaned.exists());
        drop(lock);
        fs::remove_dir_all(shared).unwrap();
    }
}
