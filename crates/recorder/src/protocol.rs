//! How the recorder and the Python package that started it talk: by files, which work also when the workload has closed
//! every descriptor or is being killed. The first one is where the package asked for it and tells it everything it has to
//! know before it records; the others are in the segments folder.

use crate::file_names::{DONE, STOP};
use crate::launch::Variable;
use crate::make_way;
use crate::outcome::Exit;
use crate::proc;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ENDS: &str = "ends";

/// To the recorder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// The command runs, as this process.
    Watch(u32),
    /// Complete the trace. With how the command ended, where there is one.
    End(Option<Exit>),
    /// There is nothing to record after all.
    Discard,
}

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

    /// Whether recording shall end, after a moment's rest if not: asked to, or because the caller is gone. Discard: the caller
    /// has given up, and taken the segments away.
    pub fn asks(&self) -> Option<Order> {
        if !self.runs() || self.folder.join(STOP).exists() {
            return Some(Order::End(None));
        }
        if !self.folder.exists() {
            return Some(Order::Discard);
        }
        self.pause();
        None
    }

    /// The trace is complete: has the report made and tells the caller where it is.
    pub fn report(&self, trace: &Path, report: &dyn Fn(&Path, bool) -> Option<PathBuf>) {
        let report = report(trace, self.goes_on());
        // The program may be in another folder by now.
        let report = report.map(|report| std::path::absolute(&report).unwrap_or(report));
        self.tell_done(report.as_deref());
        self.linger();
    }

    /// Whether the program that asked us to finish has other things to do than to wait for it.
    fn goes_on(&self) -> bool {
        self.runs() && fs::read_to_string(self.folder.join(STOP)).is_ok_and(|said| said.trim() != ENDS)
    }

    /// Lowers our priority if it has.
    pub fn make_way(&self) {
        if self.goes_on() {
            make_way::make_way();
        }
    }

    fn tell_done(&self, report: Option<&Path>) {
        let report = report.map_or(b"".as_slice(), |report| report.as_os_str().as_bytes());
        let _ = write(&self.folder.join(DONE), report);
    }

    /// Leaves the caller time to read what it was told; it takes the folder away when it has.
    fn linger(&self) {
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
        proc::rest(self.pid, PAUSE);
    }
}

/// Whole or not at all: the other side looks at any moment.
fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = path.with_file_name(format!(".{name}.new"));
    fs::write(&unfinished, text).and_then(|()| fs::rename(&unfinished, path))
}
