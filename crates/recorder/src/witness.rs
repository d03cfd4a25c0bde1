//! Tells a signal to the whole process group from one to the recorder alone: the kernel says the same of both. The witness is a
//! child in our group that does nothing but report the signals it gets. What it got too, the command got as well.

use crate::fork::{Forked, fork};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

pub(crate) struct Witness {
    process: Forked,
    reports: OwnedFd,
    /// How often each signal came to it that we have not accounted for.
    seen: [u32; SIGNALS],
    /// It did not answer once: it is not asked again.
    gone: bool,
}

const SIGNALS: usize = 65;
/// In place of a signal's number: the marker came.
const MARKER: u8 = 0;
/// A process that has nothing to do answers in microseconds; one that was stopped (Ctrl-Z) is continued after the first.
const FIRST_ANSWER: Duration = Duration::from_millis(100);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

impl Witness {
    /// None: there is none, and every signal counts as sent to us alone.
    pub fn start() -> Option<Witness> {
        let mut ends = [0; 2];
        // SAFETY: both descriptors are filled by the call and then owned once each.
        let (reports, to) = unsafe {
            if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
                return None;
            }
            (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
        };
        let parent = std::process::id() as i32;
        let process = fork("inferscope-sig", &[to.as_raw_fd()], || witness(parent, to.as_raw_fd())).ok()?;
        Some(Witness { process, reports, seen: [0; SIGNALS], gone: false })
    }

    /// Learns of every signal that was sent to the group before this call. `take` then takes the signal that waits for us: one
    /// of the same number that comes meanwhile becomes one with it, for us and for the command.
    pub fn judge<T>(&mut self, take: impl FnOnce() -> Option<(T, i32)>) -> Option<(T, bool)> {
        self.hear();
        // A signal that reached the witness before the marker has reached us too when its sender is through with the group.
        wait_for_senders();
        let (came, number) = take()?;
        let seen = &mut self.seen[number as usize % SIGNALS];
        let to_group = *seen > 0;
        // Of those up to 31 several become one; the others queue.
        *seen = if number < libc::SIGRTMIN() { 0 } else { seen.saturating_sub(1) };
        // What came while we took it is the same signal, unless it waits for us again.
        self.hear();
        if !is_pending(number) {
            self.seen[number as usize % SIGNALS] = 0;
        }
        Some((came, to_group))
    }

    /// Reads reports up to the marker, which is dequeued after every other signal that came before it.
    fn hear(&mut self) {
        if self.gone {
            return;
        }
        wait_for_senders();
        // SAFETY: a child that was not waited for yet.
        let asked = unsafe { libc::kill(self.process.pid, libc::SIGRTMAX()) } == 0;
        let begun = Instant::now();
        let mut continued = false;
        while asked && begun.elapsed() < ANSWER_TIMEOUT {
            match self.report(FIRST_ANSWER) {
                Some(MARKER) => return,
                Some(number) => self.seen[usize::from(number) % SIGNALS] += 1,
                None if !continued => {
                    continued = true;
                    // SAFETY: as above.
                    unsafe { libc::kill(self.process.pid, libc::SIGCONT) };
                }
                None => {}
            }
        }
        self.gone = true;
        self.seen = [0; SIGNALS];
    }

    fn report(&self, timeout: Duration) -> Option<u8> {
        let mut poll = libc::pollfd { fd: self.reports.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let mut number = 0u8;
        // SAFETY: both outlive the calls.
        unsafe {
            let came = libc::poll(&mut poll, 1, timeout.as_millis() as i32) > 0;
            (came && libc::read(self.reports.as_raw_fd(), (&raw mut number).cast(), 1) == 1).then_some(number)
        }
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.process.kill();
        Forked { pid: self.process.pid }.wait();
    }
}

/// The kernel sends to a group under a lock, which this call takes for writing: whoever was in the middle of it is through.
fn wait_for_senders() {
    // SAFETY: leaves us in the group that we are in.
    unsafe { libc::setpgid(0, libc::getpgrp()) };
}

fn is_pending(number: i32) -> bool {
    // SAFETY: the set is plain data that the call fills.
    unsafe {
        let mut pending: libc::sigset_t = std::mem::zeroed();
        libc::sigpending(&mut pending) == 0 && libc::sigismember(&pending, number) == 1
    }
}

/// The witness itself: reports every signal until its parent is gone.
fn witness(parent: i32, to: i32) -> i32 {
    // SAFETY: plain system calls on data of this function.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        // It may have died before we asked to be told.
        while libc::getppid() == parent {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let number = libc::sigwaitinfo(&all, &mut info);
            let ours = number > 0 && info.si_pid() == parent;
            let report = match number {
                _ if ours && number == libc::SIGRTMAX() => MARKER,
                // We are continued when we were stopped.
                _ if ours && number == libc::SIGCONT => continue,
                1.. => number as u8,
                _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => continue,
                _ => return 1,
            };
            if libc::write(to, (&raw const report).cast(), 1) != 1 {
                return 1;
            }
        }
    }
    0
}
