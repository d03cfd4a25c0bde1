//! Signals that reach the recorder. They are blocked and waited for, never handled in the middle of something; what is
//! meant for the workload is passed on, and what the terminal sends to the whole process group already is there.

use std::io;
use std::time::Duration;

pub(crate) struct Signals {
    waited: libc::sigset_t,
    before: libc::sigset_t,
    child_before: libc::sighandler_t,
}

/// A signal that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Came {
    pub number: i32,
    /// Sent by the terminal driver, so the workload got it too.
    pub from_terminal: bool,
}

/// Left as they are: our own faults, and what stops us together with the workload (Ctrl-Z).
const NOT_OURS: [i32; 17] = [
    libc::SIGKILL,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGSYS,
    libc::SIGPIPE,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    // Used by the C library itself.
    32,
    33,
];

impl Signals {
    /// Blocks signals in this thread and those it starts from now on.
    pub fn block() -> Signals {
        // SAFETY: signal sets are plain data that these calls fill; blocking has no other precondition.
        unsafe {
            let mut waited: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut waited);
            NOT_OURS.iter().for_each(|number| _ = libc::sigdelset(&mut waited, *number));
            // Were it ignored, the exit of the command would be lost.
            let child_before = libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, &waited, &mut before);
            Signals { waited, before, child_before }
        }
    }

    /// For the command, between fork and exec: everything as we found it.
    pub fn restore_in_child(&self) -> impl Fn() -> io::Result<()> + Send + Sync + 'static {
        let (before, child) = (self.before, self.child_before);
        move || {
            // SAFETY: both calls are async-signal-safe.
            unsafe {
                libc::signal(libc::SIGCHLD, child);
                libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            }
            Ok(())
        }
    }

    /// The next signal, or None when none came in time.
    pub fn next(&self, timeout: Duration) -> Option<Came> {
        let time = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        // SAFETY: `info` is plain data that the call fills.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let number = libc::sigtimedwait(&self.waited, &mut info, &time);
            (number > 0).then_some(Came { number, from_terminal: info.si_code == libc::SI_KERNEL })
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What came while nobody waited must not kill us now that the work is done.
        while self.next(Duration::ZERO).is_some() {}
        // SAFETY: restores what `block` found.
        unsafe {
            libc::signal(libc::SIGCHLD, self.child_before);
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}
