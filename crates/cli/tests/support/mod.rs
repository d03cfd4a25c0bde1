//! Runs the built command in a folder of its own, without anything of the tester's environment.
#![allow(dead_code, reason = "each test file uses its part")]

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use timeline::fixture::{Fixture, TemporaryFolder};

pub const TRACE: &str = r#"
    process 100 serve.py 3.12.1
    thread 0 100 MainThread
    step 0 100 1000..41000 request #1 {"i":1}
    step 0 100 50000..95000 request #2 {"i":2}
    scope 0 100 2000..12000 tokenise #3 ^1
    mark 0 100 30000 cache_miss ^1
    call 0 100 2000..12000 tokenise@serve.py:10
    sample 0 100 5000 active,gil main@serve.py:80;tokenise@serve.py:14
    sample 0 100 15000 active main@serve.py:82
    counter 0 0 0 rss_bytes 104857600
    counter 0 0 50000 rss_bytes 209715200
    counter 0 100 0 cpu_ns 0
    counter 0 100 95000 cpu_ns 50000000
"#;

pub struct Place(TemporaryFolder);

impl Place {
    pub fn new(name: &str) -> Place {
        Place(TemporaryFolder::new(name))
    }

    /// With the trace above in `trace`.
    pub fn with_trace(name: &str) -> Place {
        let place = Place::new(name);
        Fixture::parse(TRACE).write(&place.at("trace"));
        place
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_inferscope"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("INFERSCOPE") || name == "NO_COLOR" || name == "LC_ALL" {
                command.env_remove(name);
            }
        }
        command.env("LANG", "C.UTF-8");
        // A shell has its background jobs ignore them, and a command inherits that: the tests would wait for ever.
        let listen = || {
            for signal in [libc::SIGINT, libc::SIGQUIT] {
                // SAFETY: a plain system call.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: between fork and exec, only plain system calls are made.
        unsafe { command.pre_exec(listen) };
        command
    }

    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Told {
        Told::new(self.command(arguments).output().expect("the command"))
    }
}

/// What a command said and how it ended.
pub struct Told {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
    pub status: std::process::ExitStatus,
}

impl Told {
    pub fn new(output: Output) -> Told {
        let told = Told {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
            status: output.status,
        };
        assert!(!told.err.contains("panicked"), "{}", told.err);
        told
    }

    pub fn fine(self) -> Told {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self
    }

    /// One sentence on stderr that begins with our name, nothing on stdout.
    pub fn refused(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        assert_eq!(self.out, "", "{}", self.err);
        assert!(self.err.starts_with("inferscope: "), "{}", self.err);
        self.err
    }
}

/// Small files of a folder, by name.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}
