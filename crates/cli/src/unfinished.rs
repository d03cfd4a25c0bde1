//! What an interrupt finds half done: a file that is being written goes, and what was to be told is told in short. Without
//! this, Ctrl-C would leave the one behind and nobody would hear of the other.

use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Texts for the handler, which may neither allocate nor wait. Each is put there whole, and freed only by who swaps it out.
static FILE: AtomicPtr<c_char> = AtomicPtr::new(null_mut());
static LAST_WORDS: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// A file under a name of its own, until it is finished and gets another one. They are written one at a time.
pub struct Unfinished(PathBuf);

impl Unfinished {
    pub fn at(path: PathBuf) -> Unfinished {
        put(&FILE, path.as_os_str().as_bytes());
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
        take(&FILE);
    }
}

/// Removes what is being written, where nothing else can be done any more: as in a handler.
pub fn remove_file() {
    let file = FILE.swap(null_mut(), Ordering::SeqCst);
    if !file.is_null() {
        // SAFETY: a plain system call on a text that ends with a zero and is nobody else's any more.
        unsafe { libc::unlink(file) };
    }
}

/// A line for stderr, if an interrupt comes as long as this lives.
pub struct LastWords;

impl LastWords {
    pub fn new(text: &str) -> LastWords {
        put(&LAST_WORDS, format!("inferscope: {text}\n").as_bytes());
        LastWords
    }
}

impl Drop for LastWords {
    fn drop(&mut self) {
        take(&LAST_WORDS);
    }
}

fn put(place: &AtomicPtr<c_char>, text: &[u8]) {
    if let Ok(text) = CString::new(text) {
        free(place.swap(text.into_raw(), Ordering::SeqCst));
        [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().for_each(listen);
    }
}

fn take(place: &AtomicPtr<c_char>) {
    free(place.swap(null_mut(), Ordering::SeqCst));
}

fn free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it came from `into_raw`, and the swap took it from everybody else.
        drop(unsafe { CString::from_raw(text) });
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
    remove_file();
    let words = LAST_WORDS.swap(null_mut(), Ordering::SeqCst);
    // SAFETY: plain system calls on texts that end with a zero and are nobody else's any more.
    unsafe {
        if !words.is_null() {
            libc::write(libc::STDERR_FILENO, words.cast(), libc::strlen(words));
        }
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}
