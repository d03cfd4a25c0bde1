//! How a recording ends: the outcome that is handed back, and the errors that prevent one. Each error is one
//! sentence for the user: what happened, why, what to do.

use std::io;
use std::path::{Path, PathBuf};

/// How the command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    Code(i32),
    /// Killed by this signal; the caller does the same to itself, so that its parent sees no difference.
    Signal(i32),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// The trace's folder. None when another recorder already records this process tree.
    pub trace: Option<PathBuf>,
    pub exit: Exit,
    /// One line each: what is missing from the trace, and why.
    pub notes: Vec<String>,
}

/// What `recover` found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// Records taken out of shared memory.
    pub records: u64,
    /// Records that were overwritten before anybody read them.
    pub lost: u64,
    pub notes: Vec<String>,
}

/// What reading one source of outside samples costs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceCost {
    pub file: String,
    pub what: String,
    /// CPU time of one reading.
    pub cost_ns: u64,
    pub available: bool,
    /// Why not, when it is not available.
    pub reason: String,
}

#[derive(thiserror::Error, Debug)]
pub enum Error {
    #[error("{program}: command not found on PATH. Check the spelling, or give its path.")]
    CommandNotFound { program: String },
    #[error("{program}: command not found on PATH. To start the file in this folder, write ./{program}")]
    NotOnPath { program: String },
    /// A path, or a script: nothing that is searched on PATH.
    #[error("no such file: {file}")]
    NoSuchFile { file: String },
    #[error("{program}: cannot be executed: {why}.")]
    NotExecutable { program: String, why: String },
    #[error("cannot write the trace to {path}: {why}. Choose another place with --output (in Python: inferscope.start(output=...)).", path = path.display())]
    Output { path: PathBuf, why: String },
    #[error("no process has pid {pid}. It may have ended: `ps` or `pgrep -f NAME` shows what runs.")]
    NoSuchProcess { pid: u32 },
    #[error("process {pid} is a kernel thread and runs no program (`ps` shows those in brackets).")]
    KernelThread { pid: u32 },
    #[error("no permission to record process {pid}: {why}")]
    NotPermitted { pid: u32, why: String },
    #[error("process {pid} is already being recorded by process {holder}. Stop that recording first.")]
    AlreadyRecorded { pid: u32, holder: u32 },
    /// `recover` only: the trace may not be changed, and what it lacks cannot be had otherwise.
    #[error("{path} is incomplete and read as it is: {why}.", path = path.display())]
    AsItIs { path: PathBuf, why: String },
    /// `recover` only: the caller may go on and read the trace as it is.
    #[error("{path} cannot be completed because it is read-only: records still in shared memory are not shown.", path = path.display())]
    ReadOnlyTrace { path: PathBuf },
    /// `recover` only.
    #[error("{path} cannot be completed: {why}. The missing records stay in shared memory: free some space, then run this again.", path = path.display())]
    NotCompleted { path: PathBuf, why: String },
    #[error("{path} is not a trace: {why}.", path = path.display())]
    NotATrace { path: PathBuf, why: String },
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
}

impl Error {
    /// What the command exits with: as a shell does for commands that cannot be started, else 1 (5: bad input).
    pub fn exit_code(&self) -> i32 {
        match self {
            Error::CommandNotFound { .. } | Error::NotOnPath { .. } | Error::NoSuchFile { .. } => 127,
            Error::NotExecutable { .. } => 126,
            Error::NotATrace { .. } => 5,
            _ => 1,
        }
    }

    /// The same, of a trace by the name that the user gave it.
    pub(crate) fn about(mut self, trace: &Path) -> Error {
        use Error::{AsItIs, NotATrace, NotCompleted, ReadOnlyTrace};
        if let AsItIs { path, .. } | ReadOnlyTrace { path } | NotCompleted { path, .. } | NotATrace { path, .. } =
            &mut self
        {
            trace.clone_into(path);
        }
        self
    }

    pub(crate) fn io(what: impl Into<String>, error: io::Error) -> Error {
        Error::Io { what: what.into(), error }
    }
}
