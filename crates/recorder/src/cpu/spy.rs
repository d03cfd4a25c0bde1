//! Getting hold of the interpreter inside another process, with patience while it starts up, and with a reason when it
//! cannot be had.

use super::permission::{self, Unreadable};
use super::stacks::{Sampler, Target};
use py_spy::PythonSpy;
use py_spy::config::LockingStrategy;
use std::time::{Duration, Instant};
use trace::codes::{Condition, Note, NoteCode};

/// How long a Python process may take until its stacks can be read: imports of its own start-up included.
const READABLE_TIMEOUT: Duration = Duration::from_secs(10);

impl Sampler {
    /// Finds the interpreter in the process. None: it has ended, or cannot be sampled, and that was noted.
    pub(super) fn connect(&self) -> Option<PythonSpy> {
        let Target { pid, process, .. } = self.target;
        let blocking = LockingStrategy::NonBlocking;
        // Short names of files are not for us, and finding them asks the disk.
        let config = py_spy::Config { blocking, full_filenames: true, ..py_spy::Config::default() };
        let started = Instant::now();
        let mut pause = Duration::from_millis(10);
        loop {
            // The interpreter is usually not there yet when the process has just begun.
            std::thread::sleep(pause);
            if !self.wanted() {
                return None;
            }
            let attempt = guarded(|| {
                let mut spy = PythonSpy::new(pid as i32, &config)?;
                spy.get_stack_traces().map(|_| spy)
            });
            let error = match attempt {
                Ok(spy) => {
                    self.shared.processes.set_python(process, spy.version.to_string());
                    trim();
                    return Some(spy);
                }
                Err(error) => error,
            };
            if !self.wanted() {
                return None;
            }
            let reason = match permission::check(pid) {
                // If it is there again in a moment, it is looked at again; if not, there is nothing to say.
                Err(Unreadable::Ended) if started.elapsed() <= READABLE_TIMEOUT => continue,
                Err(Unreadable::Ended) => return None,
                Err(Unreadable::Forbidden(reason)) => reason,
                Ok(()) if error.contains("Unsupported version") => error,
                Ok(()) if started.elapsed() > READABLE_TIMEOUT => error,
                Ok(()) => {
                    pause = (pause * 2).min(Duration::from_millis(500));
                    continue;
                }
            };
            self.report(Condition::Failed, &reason, None);
            self.shared.notes.add(Note::new(NoteCode::NoStacks).with(reason).of(pid));
            return None;
        }
    }
}

/// Runs py-spy, which may stumble over memory that changes under it.
pub(super) fn guarded<T, E: std::fmt::Display>(work: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(result) => result.map_err(|error| format!("{error:#}")),
        Err(_) => Err("the stack reader failed".into()),
    }
}

/// Gives back what looking for symbols took: tens of megabytes for a large interpreter.
fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: only returns free memory to the system.
    unsafe {
        libc::malloc_trim(0);
    }
}
