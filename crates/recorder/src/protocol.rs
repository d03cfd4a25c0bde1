//! How the recorder and the Python package that started it talk: by files in the segments folder, which work also when
//! the workload has closed every descriptor or is being killed.

use crate::proc;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// From us: the segment is being drained.
const READY: &str = "ready";
/// To us: finish now.
const STOP: &str = "stop";
/// From us: the trace is complete; holds the path of the report.
const DONE: &str = "done";

pub(crate) const PROTOCOL_FILES: [&str; 3] = [READY, STOP, DONE];

pub(crate) struct Caller {
    folder: PathBuf,
    pid: u32,
    start_ticks: u64,
}

const PAUSE: Duration = Duration::from_millis(10);
/// The package looks for `done` within this time, if it looks at all.
const LINGER: Duration = Duration::from_secs(5);

impl Caller {
    pub fn new(folder: &Path, pid: u32, start_ticks: u64) -> Caller {
        Caller { folder: folder.to_owned(), pid, start_ticks }
    }

    /// Says when recording has begun, and returns when it shall end: asked to, or because the caller is gone.
    pub fn wait(&self, claimed: impl Fn() -> bool) {
        let mut ready = false;
        while self.runs() && !self.folder.join(STOP).exists() {
            if !ready && claimed() {
                ready = true;
                self.write(READY, b"");
            }
            self.pause();
        }
    }

    pub fn tell_done(&self, report: Option<&Path>) {
        self.write(DONE, report.map_or(b"".as_slice(), |report| report.as_os_str().as_bytes()));
    }

    /// Leaves the caller time to read what it was told.
    pub fn linger(&self) {
        let end = Instant::now() + LINGER;
        while self.runs() && Instant::now() < end {
            self.pause();
        }
    }

    fn runs(&self) -> bool {
        proc::alive(self.pid, self.start_ticks)
    }

    /// Whole or not at all: the other side looks at any moment.
    fn write(&self, name: &str, text: &[u8]) {
        let unfinished = self.folder.join(format!(".{name}.new"));
        let _ = fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, self.folder.join(name)));
    }

    /// Rests for a moment, less when the caller ends meanwhile.
    fn pause(&self) {
        // SAFETY: plain system calls; the descriptor is closed before leaving.
        unsafe {
            let descriptor = libc::syscall(libc::SYS_pidfd_open, self.pid, 0) as i32;
            if descriptor < 0 {
                return std::thread::sleep(PAUSE);
            }
            let mut ended = libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
            libc::poll(&mut ended, 1, PAUSE.as_millis() as i32);
            libc::close(descriptor);
        }
    }
}
