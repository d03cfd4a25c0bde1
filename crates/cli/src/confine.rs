//! Before a command reads a file that anybody may have made, it gives up every right that it does not need for that: it reads
//! the trace and writes the output, and nothing else, even if a reader of ours has a fault. Where the kernel has no Landlock
//! it goes on without; `doctor` says which.

use crate::landlock::{
    MAKE_DIR, MAKE_REG, READ_DIR, READ_FILE, REMOVE_DIR, REMOVE_FILE, Ruleset, TRUNCATE, WRITE_FILE,
};
use std::path::{Path, PathBuf};

const READ: u64 = READ_FILE | READ_DIR;
const WRITE: u64 = READ | WRITE_FILE | TRUNCATE | MAKE_REG | REMOVE_FILE;
const WRITE_FOLDERS: u64 = WRITE | MAKE_DIR | REMOVE_DIR;

/// What the system itself is asked for while we read: how many cores there are for us.
const SYSTEM: [&str; 3] = ["/proc/self", "/sys/fs/cgroup", "/sys/devices/system/cpu"];

/// What a command writes besides stdout and stderr.
#[derive(Clone, Copy)]
pub enum Output<'o> {
    None,
    File(&'o Path),
    Folder(&'o Path),
}

/// What a command needs from here on.
#[derive(Default)]
pub struct Needs {
    reads: Vec<PathBuf>,
    writes: Vec<PathBuf>,
    devices: Vec<PathBuf>,
    empties: Vec<PathBuf>,
    processes: bool,
}

impl Needs {
    pub fn read(&mut self, path: &Path) {
        self.reads.push(path.to_owned());
    }

    /// To complete a trace: it must be known which processes still run, and emptied folders go.
    pub fn complete(&mut self, unfinished: &recorder::Unfinished) {
        self.reads.extend(unfinished.reads());
        self.writes.extend(unfinished.writes());
        self.empties.extend(unfinished.empties());
        self.processes = true;
    }

    pub fn output(&mut self, output: Output<'_>) {
        match output {
            Output::None => {}
            Output::Folder(path) => {
                let there = path.ancestors().find(|folder| folder.is_dir() && !folder.as_os_str().is_empty());
                self.writes.push(there.unwrap_or(Path::new(".")).to_owned());
            }
            Output::File(path) => match std::fs::metadata(path) {
                Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => self.devices.push(path.to_owned()),
                // As `output::to_file`: under another name beside what is replaced, in the end.
                _ => {
                    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
                    self.writes.push(folder.unwrap_or(Path::new(".")).to_owned());
                }
            },
        }
    }

    /// Gives up everything else. Says whether the kernel keeps us to it.
    pub fn confine(self) -> bool {
        know_local_time();
        let Ok(rules) = Ruleset::new() else { return false };
        SYSTEM.iter().for_each(|path| rules.allow(Path::new(path), READ));
        self.reads.iter().for_each(|path| rules.allow(path, READ));
        self.devices.iter().for_each(|path| rules.allow(path, WRITE_FILE));
        self.writes.iter().for_each(|path| rules.allow(path, WRITE_FOLDERS));
        self.empties.iter().for_each(|path| rules.allow(path, REMOVE_DIR));
        if self.processes {
            rules.allow(Path::new("/proc"), READ);
        }
        rules.enforce().is_ok()
    }
}

/// The C library reads the time zone's file when it is first asked, and would take UTC where it cannot.
fn know_local_time() {
    // SAFETY: `broken` is plain data that the call fills.
    unsafe {
        let mut broken: libc::tm = std::mem::zeroed();
        libc::localtime_r(&0, &mut broken);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::landlock;
    use std::fs;

    /// Landlock holds for a thread and those that it starts: this one is given up for it.
    #[test]
    fn nothing_but_the_trace_is_read_and_nothing_but_the_output_written() {
        let root = std::env::temp_dir().join(format!("inferscope-confine-{}", std::process::id()));
        for folder in ["trace", "out", "other"] {
            fs::create_dir_all(root.join(folder)).unwrap();
            fs::write(root.join(folder).join("file"), "x").unwrap();
        }
        let at = |path: &str| root.join(path);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut needs = Needs::default();
                needs.read(&at("trace"));
                needs.output(Output::File(&at("out/report.html")));
                let confined = needs.confine();
                assert_eq!(confined, landlock::version().is_ok());
                assert!(fs::read(at("trace/file")).is_ok());
                assert!(fs::write(at("out/.report.tmp"), "x").is_ok());
                assert!(fs::rename(at("out/.report.tmp"), at("out/report.html")).is_ok());
                if confined {
                    assert!(fs::read(at("other/file")).is_err() && fs::read("/etc/passwd").is_err());
                    assert!(fs::write(at("trace/file"), "y").is_err() && fs::write(at("other/new"), "y").is_err());
                    assert!(fs::remove_file(at("trace/file")).is_err() && fs::create_dir(at("trace/new")).is_err());
                }
            });
        });
        assert_eq!(fs::read(at("trace/file")).unwrap(), b"x");
        fs::remove_dir_all(root).unwrap();
    }
}
