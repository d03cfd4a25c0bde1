//! Threads of ours in the program: every signal is left to the program's own.

use std::io;

/// Starts a thread that no signal of the program ever interrupts.
pub fn thread(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    // SAFETY: plain data, filled by the calls; the old mask is put back.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let started = std::thread::Builder::new().name(name.into()).spawn(body);
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut());
        started.map(drop)
    }
}
