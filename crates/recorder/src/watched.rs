//! Watches a command or a process without recording it: starts it, passes signals on, and calls back until it has ended.

use crate::command::Command;
use crate::launch::Running;
use crate::outcome::{Error, Exit};
use crate::proc;
use crate::signals::Signals;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Starts a command. `tend` is called with its pid again and again, and says when it wants to be called next.
pub fn run(command: &[OsString], mut tend: impl FnMut(u32) -> Duration) -> Result<Exit, Error> {
    let command = Command::resolve(command)?;
    let mut signals = Signals::block_and_tell_apart();
    let running = Running::start(&command, Vec::new(), &signals, || ())?;
    let pid = running.pid();
    Ok(running.wait(&mut signals, || tend(pid)))
}

/// How watching a process that was not started by us came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Watched {
    /// The process is gone; who did not start it cannot know how.
    Ended,
    /// The time is over.
    TimeOver,
    Interrupted,
}

/// The same for a process that runs already, or for the machine as a whole.
pub fn follow(
    pid: Option<u32>,
    duration: Option<Duration>,
    mut tend: impl FnMut() -> Duration,
) -> Result<Watched, Error> {
    let start = match pid {
        Some(pid) => Some(proc::stat(pid).ok_or(Error::NoSuchProcess { pid })?.start_ticks),
        None => None,
    };
    let mut signals = Signals::block();
    let end = duration.map(|duration| Instant::now() + duration);
    loop {
        if let Some((pid, start)) = pid.zip(start)
            && !proc::alive(pid, start)
        {
            return Ok(Watched::Ended);
        }
        let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return Ok(Watched::TimeOver);
        }
        let came = signals.next(tend().min(left).min(Duration::from_millis(100)));
        if came.is_some_and(|came| [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&came.number)) {
            return Ok(Watched::Interrupted);
        }
    }
}
