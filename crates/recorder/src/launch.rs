//! Starts the command and waits for it. It keeps our standard streams, process group and signal settings; it only gets
//! a few variables more. It is never tied to us: when we die, it goes on.

use crate::command::Command;
use crate::inject::Injection;
use crate::lock::Lock;
use crate::outcome::{Error, Exit};
use crate::output::{Output, TRACE_FILE};
use crate::settings::Settings;
use crate::signals::{Came, Signals};
use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;
use trace::settings::{Group, internal};

const RECORDER_PID: &str = internal::RECORDER_PID;
const SEGMENTS: &str = internal::SEGMENTS;
/// The trace's folder, for whoever asks where the report will be.
const TRACE: &str = internal::TRACE;

/// The recorder that already records whatever this process starts.
pub(crate) fn outer_recorder() -> Option<u32> {
    let pid: u32 = std::env::var(RECORDER_PID).ok()?.parse().ok()?;
    let folder = PathBuf::from(std::env::var_os(SEGMENTS)?);
    // The supervisor may be dead and the recorder go on; where that cannot be asked (another user's), the pid has to do.
    let lives = || Lock::is_held(&folder.join(TRACE_FILE)).unwrap_or_else(|_| crate::proc::runs(pid));
    (pid != std::process::id() && folder.is_dir() && lives()).then_some(pid)
}

/// A variable and its value.
pub(crate) type Variable = (Cow<'static, str>, OsString);

/// What the collectors in the workload are told: where their segments go, and every setting that is theirs, whether or not
/// it was given anywhere.
pub(crate) fn told(settings: &Settings, output: &Output) -> Vec<Variable> {
    let own = [
        (SEGMENTS, output.segments.clone().into()),
        (TRACE, output.trace.clone().into()),
        (RECORDER_PID, std::process::id().to_string().into()),
    ];
    let settings =
        Settings::ROWS.iter().filter(|row| row.told).map(|row| (row.variable().into(), settings.text(row).into()));
    own.map(|(name, value): (_, OsString)| (name.into(), value)).into_iter().chain(settings).collect()
}

/// With what is told, how the collectors get in.
pub(crate) fn environment(told: Vec<Variable>, package: Option<&Path>, injection: &Injection) -> Vec<Variable> {
    let mut variables = told;
    variables.extend(injection.variables.iter().map(|(name, value)| ((*name).into(), value.clone())));
    if let Some(package) = package {
        let mut path = package.join("_inject").into_os_string();
        if let Some(before) = std::env::var_os("PYTHONPATH").filter(|before| !before.is_empty()) {
            path.push(":");
            path.push(before);
        }
        variables.push(("PYTHONPATH".into(), path));
    }
    variables
}

pub(crate) struct Running {
    child: Child,
}

impl Running {
    /// `announce` is called in the new process, and makes only async-signal-safe calls.
    pub fn start(
        command: &Command,
        variables: Vec<Variable>,
        signals: &Signals,
        announce: impl Fn() + Send + Sync + 'static,
    ) -> Result<Running, Error> {
        let mut process = std::process::Command::new(&command.program);
        process
            .arg0(&command.called)
            .args(&command.arguments)
            .envs(variables.iter().map(|(name, value)| (&**name, value)));
        let restore = signals.restore_in_child();
        let supervisor = std::process::id();
        let before_exec = move || {
            announce();
            allow(supervisor);
            restore()
        };
        // SAFETY: the closure makes only async-signal-safe calls.
        unsafe { process.pre_exec(before_exec) };
        let program = command.program.to_string_lossy().into_owned();
        let child = process.spawn().map_err(|error| match error.kind() {
            // It was there a moment ago: what is missing is the interpreter that its first line names.
            io::ErrorKind::NotFound => Error::NotExecutable { program, why: "its interpreter does not exist".into() },
            io::ErrorKind::PermissionDenied => Error::NotExecutable { program, why: "permission denied".into() },
            _ => Error::NotExecutable { program, why: error.to_string() },
        })?;
        Ok(Running { child })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the end and passes signals on until then. `meanwhile` is called now and then, and at once when a child of ours
    /// has ended; it says how soon to call it again.
    pub fn wait(mut self, signals: &mut Signals, mut meanwhile: impl FnMut() -> Duration) -> Exit {
        loop {
            if let Some(exit) = self.ended() {
                return exit;
            }
            let rest = meanwhile().min(Duration::from_millis(100));
            match signals.next(rest) {
                Some(came) if passes(came) => {
                    // SAFETY: the child was not waited for yet, so the pid is still its own.
                    unsafe { libc::kill(self.pid() as i32, came.number) };
                }
                _ => {}
            }
        }
    }

    fn ended(&mut self) -> Option<Exit> {
        // Looks without taking: stops that belong to a sampler's ptrace must stay for it.
        // SAFETY: `info` is plain data that the call fills.
        let ended = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            let asked = libc::waitid(libc::P_PID, self.pid(), &mut info, flags);
            asked != 0 || [libc::CLD_EXITED, libc::CLD_KILLED, libc::CLD_DUMPED].contains(&info.si_code)
        };
        if !ended {
            return None;
        }
        let status = self.child.wait().ok()?;
        Some(status.signal().map_or_else(|| Exit::Code(status.code().unwrap_or(1)), Exit::Signal))
    }
}

/// Lets our recorder read the calling process where only ancestors may (kernel.yama.ptrace_scope=1): the recorder descends from
/// the supervisor. Belongs to the process, whatever it executes; a kernel without Yama does not know it.
fn allow(supervisor: u32) {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(supervisor)) };
}

/// What is for the workload and has not reached it by itself.
fn passes(came: Came) -> bool {
    came.number != libc::SIGCHLD && !came.to_group
}
