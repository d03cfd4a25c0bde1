//! Signals that reach the supervisor. They are blocked and waited for, never handled in the middle of something; what is
//! meant for the workload is passed on, and what was sent to the whole process group already is there.

use crate::witness::Witness;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

pub(crate) struct Signals {
    waited: libc::sigset_t,
    before: libc::sigset_t,
    child_before: libc::sighandler_t,
    /// Readable while a signal waits for us.
    waiting: Option<OwnedFd>,
    witness: Option<Witness>,
}

/// A signal that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Came {
    pub number: i32,
    /// Sent to the whole process group, by the terminal driver or by a process: the workload got it too, or would not have
    /// got it without us either.
    pub to_group: bool,
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
            Signals { waited, before, child_before, waiting: None, witness: None }
        }
    }

    /// The same where signals will be passed on: from now on it is known which were sent to us alone. Call this before there
    /// are threads.
    pub fn block_and_tell_apart() -> Signals {
        let mut signals = Signals::block();
        // SAFETY: the set outlives the call, whose descriptor is ours.
        signals.waiting = unsafe {
            let waiting = libc::signalfd(-1, &signals.waited, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            (waiting >= 0).then(|| OwnedFd::from_raw_fd(waiting))
        };
        signals.witness = signals.waiting.as_ref().and_then(|_| Witness::start());
        signals
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
    pub fn next(&mut self, timeout: Duration) -> Option<Came> {
        let Some((waiting, mut witness)) = self.waiting.as_ref().zip(self.witness.take()) else {
            return self.take(timeout);
        };
        let mut poll = libc::pollfd { fd: waiting.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` outlives the call.
        let came = unsafe { libc::poll(&mut poll, 1, timeout.as_millis().min(i32::MAX as u128) as i32) } > 0;
        let taken = match came {
            // The end of a child is for us alone.
            true if self.only_children_ended() => self.take(Duration::ZERO),
            true => witness
                .judge(|| self.take(Duration::ZERO).map(|came| (came, came.number)))
                .map(|(came, to_group)| Came { to_group: came.to_group || to_group, ..came }),
            false => None,
        };
        self.witness = Some(witness);
        taken
    }

    fn only_children_ended(&self) -> bool {
        // SAFETY: sets are plain data that the calls fill.
        unsafe {
            let mut pending: libc::sigset_t = std::mem::zeroed();
            libc::sigpending(&mut pending);
            let waits =
                |number| libc::sigismember(&self.waited, number) == 1 && libc::sigismember(&pending, number) == 1;
            waits(libc::SIGCHLD) && (1..=libc::SIGRTMAX()).all(|number| number == libc::SIGCHLD || !waits(number))
        }
    }

    fn take(&self, timeout: Duration) -> Option<Came> {
        let time = libc::timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        // SAFETY: `info` is plain data that the call fills.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let number = libc::sigtimedwait(&self.waited, &mut info, &time);
            (number > 0).then_some(Came { number, to_group: info.si_code == libc::SI_KERNEL })
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What came while nobody waited must not kill us now that the work is done.
        while self.take(Duration::ZERO).is_some() {}
        // SAFETY: restores what `block` found.
        unsafe {
            libc::signal(libc::SIGCHLD, self.child_before);
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut());
        }
    }
}
