//! Processes of ours that go on with this very program: a fork without exec, so that they need no command line, no second
//! start of the program, and have everything that was read already. The supervisor has one thread, which makes that safe.

use std::fs;
use std::io;
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A child of ours that was not waited for yet.
#[derive(Debug)]
pub(crate) struct Forked {
    pub pid: i32,
}

/// Runs `work` in a new process, which ends with what it returns. It has none of our standard streams and of our descriptors
/// only those in `keep`: whoever waits for the end of a pipe that we were given does not wait for it.
pub(crate) fn fork(name: &str, keep: &[RawFd], work: impl FnOnce() -> i32) -> io::Result<Forked> {
    let mut comm = [0u8; 16];
    comm.iter_mut().zip(name.bytes().take(15)).for_each(|(to, from)| *to = from);
    // SAFETY: the child goes on with a copy of this thread alone. It is the only one in the command; in tests, others may have
    // held locks of the C library, which frees those in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: the name is 16 bytes with a zero at the end.
            unsafe { libc::prctl(libc::PR_SET_NAME, comm.as_ptr()) };
            let code = catch_unwind(AssertUnwindSafe(|| {
                leave_descriptors(keep);
                work()
            }));
            // Nothing of the parent's is flushed or cleaned up here.
            // SAFETY: ends this process.
            unsafe { libc::_exit(code.unwrap_or(101)) }
        }
        pid => Ok(Forked { pid }),
    }
}

fn leave_descriptors(keep: &[RawFd]) {
    // SAFETY: plain system calls on descriptors of this process, which uses no other from here on.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        for standard in 0..3 {
            if null < 0 || libc::dup2(null, standard) < 0 {
                libc::close(standard);
            }
        }
    }
    let entries = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let open: Vec<RawFd> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2 && !keep.contains(descriptor)) {
        // SAFETY: as above.
        unsafe { libc::close(descriptor) };
    }
}

impl Forked {
    /// Whether it has ended. Leaves it to be waited for.
    pub fn has_ended(&self) -> bool {
        // SAFETY: `info` is plain data that the call fills.
        unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let flags = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            libc::waitid(libc::P_PID, self.pid as u32, &mut info, flags) != 0 || info.si_pid() != 0
        }
    }

    pub fn kill(&self) {
        // SAFETY: a child that was not waited for yet, so the pid is still its own.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
    }

    /// Waits for its end. Returns its status as waitpid gives it.
    pub fn wait(self) -> i32 {
        let mut status = 0;
        // SAFETY: a child that was not waited for yet.
        while unsafe { libc::waitpid(self.pid, &mut status, 0) } < 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return libc::SIGKILL;
            }
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_child_keeps_what_it_is_given_and_nothing_else() {
        let (kept, other) = (fs::File::open("/dev/zero").unwrap(), fs::File::open("/dev/zero").unwrap());
        let (keep, leave) = (kept.as_raw_fd(), other.as_raw_fd());
        let is_open = |descriptor| fs::read_link(format!("/proc/self/fd/{descriptor}")).ok();
        let child = fork("test", &[keep], || {
            let streams = (0..3).all(|stream| is_open(stream).is_some_and(|path| path.ends_with("null")));
            i32::from(!(is_open(keep).is_some() && is_open(leave).is_none() && streams))
        });
        assert_eq!(child.unwrap().wait(), 0);
    }

    #[test]
    fn how_a_child_ends_is_known() {
        let killed = fork("test", &[], || {
            // SAFETY: ends this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            0
        });
        assert_eq!(killed.unwrap().wait(), libc::SIGKILL);
        let failed = fork("test", &[], || 3).unwrap();
        while !failed.has_ended() {
            std::thread::yield_now();
        }
        assert_eq!(libc::WEXITSTATUS(failed.wait()), 3);
    }
}
