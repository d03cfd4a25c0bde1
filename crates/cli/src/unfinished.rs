//! A file that is being written under a name of its own, and goes when nobody finishes it: also by Ctrl-C, which else would
//! leave it behind.

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// For the handler; files are written one at a time.
static NAME: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

pub struct Unfinished(PathBuf);

impl Unfinished {
    pub fn at(path: PathBuf) -> Unfinished {
        if let Ok(name) = CString::new(path.as_os_str().as_bytes()) {
            forget(NAME.swap(name.into_raw(), Ordering::SeqCst));
            [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().for_each(listen);
        }
        Unfinished(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Unfinished {
    /// A finished file has another name by now.
    fn drop(&mut self) {
        _ = std::fs::remove_file(&self.0);
        forget(NAME.swap(null_mut(), Ordering::SeqCst));
    }
}

fn forget(name: *mut c_char) {
    if !name.is_null() {
        // SAFETY: it came from `into_raw`, and the swap took it from everybody else.
        drop(unsafe { CString::from_raw(name) });
    }
}

/// What somebody else handles or ignores stays so.
fn listen(signal: i32) {
    let handler = on_signal as extern "C" fn(i32) as libc::sighandler_t;
    // SAFETY: the handler only makes calls that are allowed in one.
    unsafe {
        let before = libc::signal(signal, handler);
        if before != libc::SIG_DFL && before != handler {
            libc::signal(signal, before);
        }
    }
}

/// Ends as the signal would have ended us.
extern "C" fn on_signal(signal: i32) {
    let name = NAME.swap(null_mut(), Ordering::SeqCst);
    // SAFETY: plain system calls; the name is whole, for it is put there whole and freed only by who swaps it out.
    unsafe {
        if !name.is_null() {
            libc::unlink(name);
        }
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
