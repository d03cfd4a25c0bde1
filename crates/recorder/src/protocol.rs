//! How the recorder and the Python package that started it talk: by files, which work also when the workload has closed
//! every descriptor or is being killed. The first one is where the package asked for it and tells it everything it has to
//! know before it records; the others are in the segments folder.

use crate::launch::Variable;
use crate::proc;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// To us: finish now. Holds [`ENDS`] if the program ends and waits for nothing else, or nothing if it goes on.
const STOP: &str = "stop";
/// From us: the trace is complete; holds the path of the report.
const DONE: &str = "done";

const ENDS: &str = "ends";

pub(crate) const PROTOCOL_FILES: [&str; 2] = [STOP, DONE];

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

    /// Says that recording has begun, and with which settings: variables for the caller's environment, as
    /// /proc/PID/environ has them.
    pub fn tell_ready(&self, ready: &Path, variables: &[Variable]) -> io::Result<()> {
        let mut text = Vec::new();
        for (name, value) in variables {
            text.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
        }
        write(ready, &text)
    }

    /// Returns when recording shall end: asked to, or because the caller is gone. False: the caller has given up, and taken
    /// the segments away.
    pub fn wait(&self) -> bool {
        while self.runs() && !self.folder.join(STOP).exists() {
            if !self.folder.exists() {
                return false;
            }
            self.pause();
        }
        true
    }

    /// Whether the program that asked us to finish has other things to do than to wait for it.
    pub fn goes_on(&self) -> bool {
        self.runs() && fs::read_to_string(self.folder.join(STOP)).is_ok_and(|said| said.trim() != ENDS)
    }

    pub fn tell_done(&self, report: Option<&Path>) {
        let report = report.map_or(b"".as_slice(), |report| report.as_os_str().as_bytes());
        let _ = write(&self.folder.join(DONE), report);
    }

    /// Leaves the caller time to read what it was told; it takes the folder away when it has.
    pub fn linger(&self) {
        let end = Instant::now() + LINGER;
        while self.runs() && self.folder.exists() && Instant::now() < end {
            self.pause();
        }
    }

    fn runs(&self) -> bool {
        proc::alive(self.pid, self.start_ticks)
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

/// Whole or not at all: the other side looks at any moment.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.new"));
    fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path))
}
