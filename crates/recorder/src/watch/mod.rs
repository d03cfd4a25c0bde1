//! The watcher: finds the processes that belong to the recording, starts a stack sampler for each Python among them, and
//! reads from /proc what the kernel knows about them. One thread, whose whole cost is bounded.

pub(crate) mod costs;
mod injection;
mod sources;
mod tree;

pub(crate) use injection::explain_missing;

use crate::cpu::stacks::{Sampler, Target};
use crate::cpu::threads::NamedByPython;
use crate::lock::{Lock, Refused};
use crate::messages::Outbox;
use crate::native::ObjectFiles;
use crate::pace::Pace;
use crate::proc;
use crate::processes::Living;
use crate::settings::Settings;
use crate::shared::Shared;
use sources::Sources;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trace::codes::{Note, NoteCode};
use tree::Tree;

pub(crate) struct Watch {
    settings: Settings,
    shared: Shared,
    outbox: Outbox,
    stop: Arc<AtomicBool>,
    tree: Tree,
    look: Pace,
    started: Instant,
    sources: Sources,
    named: NamedByPython,
    samplers: HashMap<i32, JoinHandle<()>>,
    claims: HashMap<i32, Claim>,
    /// Files of native code, for all samplers.
    object_files: ObjectFiles,
    seen: WatchedProcesses,
}

/// What the watcher saw, for the notes at the end.
#[derive(Default)]
pub(crate) struct WatchedProcesses {
    pub python: HashMap<i32, PythonProcess>,
    /// Processes beyond the number that is sampled.
    pub not_sampled: u64,
}

/// A Python process.
pub(crate) struct PythonProcess {
    pub pid: u32,
    /// How many programs it was seen to run, one after the other (execve): each should have a segment.
    pub programs: u32,
    /// Why the last of them may have none. None: unknown.
    pub reason: Option<String>,
}

/// Whose a process is. The lock, where there is a place for it, keeps other recorders away.
enum Claim {
    Ours { _lock: Option<Lock> },
    Theirs,
}

/// While a command starts up, wrappers become Python and children appear quickly.
const FIRST_LOOKS: Duration = Duration::from_millis(25);
const START_UP: Duration = Duration::from_secs(2);
const LATER_LOOKS: Duration = Duration::from_millis(200);
/// Python processes sampled at a time: each takes a thread of ours.
pub(crate) const MOST_SAMPLERS: usize = 64;

impl Watch {
    /// Watches `root` and its descendants. `lock` says that nobody else records `root`.
    pub fn new(
        settings: &Settings,
        root: u32,
        lock: Option<Lock>,
        shared: Shared,
        outbox: Outbox,
        stop: Arc<AtomicBool>,
    ) -> Watch {
        let named = NamedByPython::default();
        let mut claims = HashMap::new();
        if let Some(stat) = proc::stat(root) {
            let number = shared.processes.register(root, stat.parent, stat.start_ticks, &proc::program(root));
            claims.insert(number, Claim::Ours { _lock: lock });
        }
        Watch {
            tree: Tree::new(root),
            look: Pace::new(FIRST_LOOKS),
            started: Instant::now(),
            sources: Sources::new(settings.memory_hz, named.clone(), &shared, outbox.clone()),
            samplers: HashMap::new(),
            claims,
            object_files: ObjectFiles::default(),
            seen: WatchedProcesses::default(),
            settings: settings.clone(),
            named,
            shared,
            outbox,
            stop,
        }
    }

    /// Watches until told to stop.
    pub fn run(mut self) -> WatchedProcesses {
        let notes = self.shared.notes.clone();
        while !self.stop.load(Ordering::Acquire) {
            notes.guard("the watcher", || self.turn());
            let next = self.look.next().min(self.sources.next());
            let pause = next.saturating_duration_since(Instant::now());
            std::thread::park_timeout(pause.clamp(Duration::from_millis(1), Duration::from_millis(200)));
        }
        notes.guard("the watcher", || self.sources.read(&self.shared.processes.living(), true));
        for sampler in std::mem::take(&mut self.samplers).into_values() {
            let _ = sampler.join();
        }
        self.seen
    }

    fn turn(&mut self) {
        let often = if self.started.elapsed() < START_UP { FIRST_LOOKS } else { LATER_LOOKS };
        let mut look = std::mem::replace(&mut self.look, Pace::new(often));
        look.run(|| self.look_around());
        self.look = look.at(often);
        self.sources.read(&self.shared.processes.living(), false);
    }

    fn look_around(&mut self) {
        for found in self.tree.look() {
            let program = proc::program(found.pid);
            let number = self.shared.processes.register(found.pid, found.parent, found.start_ticks, &program);
            let before = self.seen.python.get(&number).map_or(0, |python| python.programs);
            let programs = before + u32::from(before == 0 || found.replaced);
            let reason = injection::why_not(found.pid);
            self.seen.python.insert(number, PythonProcess { pid: found.pid, programs, reason });
            // Not sampled before, or it has become another program since.
            if self.samplers.get(&number).is_some_and(JoinHandle::is_finished) {
                self.samplers.remove(&number);
            }
        }
        for process in self.shared.processes.living() {
            if !proc::alive(process.pid, process.start_ticks) {
                self.shared.processes.ended(process.number);
                self.sources.forget(process.number);
                self.samplers.remove(&process.number);
                self.claims.remove(&process.number);
            } else if process.has_segment || self.tree.is_python(process.pid) {
                if let Some(python) = self.seen.python.get_mut(&process.number)
                    && python.reason.is_none()
                    && self.shared.processes.python_segments(process.number) < python.programs
                {
                    python.reason = injection::why_not(python.pid);
                }
                self.start_sampler(&process);
            }
        }
    }

    fn start_sampler(&mut self, process: &Living) {
        if self.settings.stack_rate_hz() == 0 || self.samplers.contains_key(&process.number) {
            return;
        }
        if self.samplers.values().filter(|sampler| !sampler.is_finished()).count() >= MOST_SAMPLERS {
            self.seen.not_sampled += 1;
            return;
        }
        if matches!(self.claim(process), Claim::Theirs) {
            return;
        }
        let target = Target {
            process: process.number,
            pid: process.pid,
            start_ticks: process.start_ticks,
            rate_hz: self.settings.stack_rate_hz(),
            native: self.settings.native,
        };
        let sampler = Sampler {
            target,
            shared: self.shared.clone(),
            outbox: self.outbox.clone(),
            named: self.named.clone(),
            stop: Arc::clone(&self.stop),
            object_files: self.object_files.clone(),
        };
        match std::thread::Builder::new().name("stacks".into()).spawn(move || sampler.run()) {
            Ok(thread) => _ = self.samplers.insert(process.number, thread),
            Err(error) => self.shared.notes.add(Note::new(NoteCode::NoStacks).with(error).of(process.pid)),
        }
    }

    fn claim(&mut self, process: &Living) -> &Claim {
        let notes = &self.shared.notes;
        self.claims.entry(process.number).or_insert_with(|| match Lock::process(process.pid) {
            Err(Refused::Held(holder)) => {
                notes.add(Note::new(NoteCode::SampledByAnother).with(holder).of(process.pid));
                Claim::Theirs
            }
            lock => Claim::Ours { _lock: lock.ok() },
        })
    }
}
