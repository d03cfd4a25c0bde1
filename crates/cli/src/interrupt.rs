//! Waits for a child while signals that mean "stop" go to it and not to us: it ends as it likes, and we clean up after it.

use std::io;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

static CHILD: AtomicI32 = AtomicI32::new(0);
static CAME: AtomicI32 = AtomicI32::new(0);

const STOP: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// Starts a command and waits for its end. A signal that stops us meanwhile is passed on and remembered.
pub fn wait(command: &mut Command) -> io::Result<ExitStatus> {
    listen();
    let mut child = command.spawn()?;
    CHILD.store(child.id() as i32, Ordering::SeqCst);
    // It may have come in between, when there was nobody to pass it to.
    if let Some(signal) = came() {
        pass(signal);
    }
    let status = child.wait();
    CHILD.store(0, Ordering::SeqCst);
    status
}

/// The first signal that came.
pub fn came() -> Option<i32> {
    Some(CAME.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
}

fn pass(signal: i32) {
    let child = CHILD.load(Ordering::SeqCst);
    if child > 0 {
        // SAFETY: a plain system call, allowed in a handler; the child was not waited for yet, so the pid is still its own.
        unsafe { libc::kill(child, signal) };
    }
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    _ = CAME.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
    // SAFETY: the kernel hands a valid `info` to a handler with SA_SIGINFO.
    let from_terminal = !info.is_null() && unsafe { (*info).si_code } > 0;
    // The terminal has told the child itself: both are in its group.
    if !from_terminal {
        pass(signal);
    }
}

fn listen() {
    for signal in STOP {
        // SAFETY: plain data and plain system calls; the handler only stores numbers and calls `kill`.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            // Whoever has us ignore a signal (nohup) means the child, too.
            if libc::sigaction(signal, std::ptr::null(), &mut before) == 0 && before.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}
