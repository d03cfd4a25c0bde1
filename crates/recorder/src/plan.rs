//! What a recorder is told to do.

use crate::lock::Lock;
use crate::manifest::Manifest;
use crate::outcome::Exit;
use crate::output::Output;
use crate::protocol::Caller;
use crate::settings::Settings;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use trace::codes::{Note, NoteCode};

/// Everything that a recorder has to know. Each one that is started again has it from the supervisor's memory.
pub(crate) struct Plan<'a> {
    pub settings: Settings,
    pub output: Output,
    /// Of a trace that has none yet.
    pub manifest: Manifest,
    /// What is known to be missing before anything is recorded.
    pub notes: Vec<Note>,
    /// The workload was given collectors.
    pub injected: bool,
    pub alone: Alone<'a>,
    /// The process to watch, once it is there.
    pub root: Option<u32>,
    /// Says that nobody else records it, where that was asked before the recorder was there.
    pub root_lock: Option<Lock>,
    /// The workload has ended, and how.
    pub end: Option<Option<Exit>>,
}

/// When a recorder without a supervisor is done, and what it does then.
pub(crate) enum Alone<'a> {
    /// The command has ended.
    Run,
    /// At once: whoever attached could have ended it at any moment, and nobody else can.
    Attach,
    /// The program asks for the end, or is gone. It is told where the report is.
    Record { caller: Caller, report: &'a dyn Fn(&Path, bool) -> Option<PathBuf> },
}

impl Plan<'_> {
    /// Descriptors that the recorder shares with the supervisor.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let root = self.root_lock.as_ref().map(Lock::raw);
        [self.output.lock.raw(), self.output.living.as_raw_fd()].into_iter().chain(root).collect()
    }
}

impl Alone<'_> {
    /// What the trace says of that.
    pub fn note(&self) -> Option<Note> {
        match self {
            Alone::Run => Some(Note::new(NoteCode::SupervisorKilled)),
            Alone::Attach => Some(Note::new(NoteCode::SupervisorKilledAttached)),
            Alone::Record { .. } => None,
        }
    }
}
