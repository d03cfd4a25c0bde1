//! How this process ends: with an exit code, or by the signal that killed the recorded command, so that whoever started us
//! sees what it would have seen without us.

use std::process::ExitCode;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    Code(i32),
    Signal(i32),
}

impl Ending {
    pub const FINE: Ending = Ending::Code(0);

    /// As a shell counts it.
    pub fn code(self) -> i32 {
        match self {
            Ending::Code(code) => code,
            Ending::Signal(signal) => 128 + signal,
        }
    }

    pub fn leave(self) -> ExitCode {
        match self {
            Ending::Code(code) => ExitCode::from(code as u8),
            Ending::Signal(signal) => {
                die_by(signal);
                // Still here: the signal is one that does not kill. A shell's number for it says the same.
                ExitCode::from((128 + signal) as u8)
            }
        }
    }
}

impl From<recorder::Exit> for Ending {
    fn from(exit: recorder::Exit) -> Ending {
        match exit {
            recorder::Exit::Code(code) => Ending::Code(code),
            recorder::Exit::Signal(signal) => Ending::Signal(signal),
        }
    }
}

fn die_by(signal: i32) {
    // SAFETY: plain system calls on ourselves; `none` and `set` outlive the calls that read them.
    unsafe {
        // The command has left its own core file, if any; ours would only replace it.
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
        libc::signal(signal, libc::SIG_DFL);
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &set, std::ptr::null_mut());
        libc::kill(libc::getpid(), signal);
    }
}
