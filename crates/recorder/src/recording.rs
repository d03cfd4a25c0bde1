//! A recording in progress: its folders, and the threads that fill them. Started before the workload, finished after it.

use crate::dictionary::Dictionary;
use crate::drain::{Clock, Drain, FOLDER_REMOVED, Shared};
use crate::lock::Lock;
use crate::manifest::{Manifest, State};
use crate::messages::{Outbox, channel};
use crate::notes::Notes;
use crate::outcome::{Error, Exit, Outcome};
use crate::output::{self, Output};
use crate::proc;
use crate::processes::Processes;
use crate::recover::RESCUED;
use crate::settings::Settings;
use crate::store::{Files, Store, compact_once};
use crate::watch::{Seen, Watch, explain_missing};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use trace::Source;

pub(crate) struct Recording {
    pub shared: Shared,
    pub segments: PathBuf,
    shown: PathBuf,
    trace: PathBuf,
    settings: Settings,
    outbox: Outbox,
    stop_sampling: Arc<AtomicBool>,
    stop_draining: Arc<AtomicBool>,
    drain: JoinHandle<Drain>,
    compactor: JoinHandle<()>,
    watch: Option<JoinHandle<Seen>>,
    /// The workload was given collectors, so its Python processes should have segments.
    pub injected: bool,
}

impl Recording {
    /// Everything that can fail fails here, before the workload runs.
    pub fn start(settings: &Settings, output: Output, command: String) -> Result<Recording, Error> {
        let Output { shown, trace, segments, lock, note } = output;
        let fail = |error: std::io::Error| Error::Output { path: shown.clone(), why: error.to_string() };
        let shared = Shared {
            dictionary: Arc::new(Dictionary::new(0)),
            processes: Processes::default(),
            notes: Notes::default(),
        };
        note.into_iter().for_each(|note| shared.notes.add(note));
        let source = Source::detect();
        let mut manifest = Manifest::new(command, settings, source);
        manifest.segments = Some(segments.to_string_lossy().into_owned());
        manifest.write(&trace).map_err(fail)?;
        let store = Store::open(&trace).map_err(fail)?;
        let (outbox, inbox) = channel();
        let files = store.files();
        let clock = Clock::start(source);
        let mut drain = Drain::new(store, manifest, segments.clone(), clock, inbox, shared.clone()).hold(lock);
        let (stop_sampling, stop_draining) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&stop_draining);
        let spawned = Builder::new().name("drain".into()).spawn(move || {
            prefer(-10);
            drain.run(&stop);
            drain
        });
        let drain = spawned.map_err(|error| Error::io("cannot start a thread", error))?;
        let (stop, notes, folder) = (Arc::clone(&stop_draining), shared.notes.clone(), segments.clone());
        let spawned = Builder::new().name("compact".into()).spawn(move || compact(&files, &folder, &notes, &stop));
        let compactor = spawned.map_err(|error| Error::io("cannot start a thread", error))?;
        let (settings, watch, injected) = (settings.clone(), None, false);
        Ok(Recording {
            shared,
            segments,
            shown,
            trace,
            settings,
            outbox,
            stop_sampling,
            stop_draining,
            drain,
            compactor,
            watch,
            injected,
        })
    }

    /// Samples a process and what descends from it.
    pub fn watch(&mut self, root: u32, lock: Option<Lock>) {
        let stop = Arc::clone(&self.stop_sampling);
        let watch = Watch::new(&self.settings, root, lock, self.shared.clone(), self.outbox.clone(), stop);
        match Builder::new().name("watch".into()).spawn(move || watch.run()) {
            Ok(thread) => self.watch = Some(thread),
            Err(error) => self.shared.notes.add(format!("no stacks and no memory: cannot start a thread: {error}")),
        }
    }

    /// The command could not be started: leaves nothing behind.
    pub fn discard(self) {
        self.stop_draining.store(true, Ordering::Release);
        [&self.drain.thread(), &self.compactor.thread()].into_iter().for_each(|thread| thread.unpark());
        let _ = (self.compactor.join(), self.drain.join());
        output::discard(&self.trace, &self.segments);
    }

    /// Stops sampling, reads what is left, and makes the trace complete.
    pub fn finish(self, exit: Option<Exit>) -> (Outcome, Done) {
        let notes = self.shared.notes.clone();
        let (shown, segments) = (self.shown.clone(), self.segments.clone());
        let whole = self.finish_trace(exit);
        let exit = exit.unwrap_or(Exit::Code(0));
        (Outcome { trace: Some(shown), exit, notes: notes.all() }, Done { segments, whole })
    }

    /// Says whether nothing is needed from shared memory any more.
    fn finish_trace(mut self, exit: Option<Exit>) -> bool {
        let notes = self.shared.notes.clone();
        self.stop_sampling.store(true, Ordering::Release);
        let seen = self.watch.take().and_then(|watch| {
            watch.thread().unpark();
            watch.join().ok()
        });
        self.stop_draining.store(true, Ordering::Release);
        self.drain.thread().unpark();
        self.compactor.thread().unpark();
        let _ = self.compactor.join();
        let Ok(mut drain) = self.drain.join() else {
            notes.add("the trace is not complete: a defect in inferscope; please report it");
            return false;
        };
        let end = trace::clock::monotonic().0;
        let whole = notes.guard("the end of the recording", || finish_drain(&mut drain, &self.segments)) == Some(true);
        seen.into_iter().for_each(|seen| note_what_was_seen(&seen, &self.settings, self.injected, &self.shared));
        drain.manifest.ended_ns = Some(end);
        drain.manifest.exit = exit;
        drain.manifest.clock.residual_ns = drain.clock.residual();
        let living = self.shared.processes.living();
        let ended = living.iter().filter(|living| !proc::alive(living.pid, living.start_ticks));
        ended.for_each(|living| self.shared.processes.ended(living.number));
        drain.manifest.processes = self.shared.processes.all();
        if whole {
            (drain.manifest.state, drain.manifest.segments) = (State::Complete, None);
        }
        drain.manifest.notes = notes.all();
        let written = drain.manifest.write(&self.trace).is_ok();
        if whole && written {
            return true;
        }
        if !written {
            drain.manifest.state = State::Recording;
            drain.manifest.segments = Some(self.segments.to_string_lossy().into_owned());
            let rescued = self.segments.join(RESCUED);
            let _ = fs::create_dir_all(&rescued).and_then(|()| drain.manifest.write(&rescued));
        }
        let (trace, why) = (self.shown.display(), drain.failing.as_ref().map(ToString::to_string).unwrap_or_default());
        notes.add(format!(
            "the end of the trace could not be written ({why}) and is kept in {}: make room, then run \
             `inferscope analyze {trace}`",
            self.segments.display()
        ));
        false
    }
}

/// What remains to be done when the caller has no more use for the segments folder.
pub(crate) struct Done {
    segments: PathBuf,
    whole: bool,
}

impl Done {
    /// Gives the shared memory back, unless it still holds what the disk did not take.
    pub fn remove_segments(self) {
        if self.whole {
            output::remove_segments(&self.segments);
        }
    }
}

fn note_what_was_seen(seen: &Seen, settings: &Settings, injected: bool, shared: &Shared) {
    let Shared { notes, processes, .. } = shared;
    if injected {
        explain_missing(seen, processes, notes);
    }
    if settings.rate_hz > 0 && seen.python.is_empty() {
        notes.add("no stacks: no Python process was seen");
    }
    if seen.not_sampled > 0 {
        notes.add("no stacks of some processes: 64 Python processes are sampled at a time");
    }
    if processes.left_out() > 0 {
        notes.add(format!("{} processes beyond 50000 are counted as one", processes.left_out()));
    }
}

/// Reads and writes what is left. True: the trace is whole, and nothing is needed from shared memory any more.
fn finish_drain(drain: &mut Drain, segments: &Path) -> bool {
    let ended = drain.finish();
    if ended.running > 0 {
        let (what, verb) = if ended.running == 1 { ("process", "was") } else { ("processes", "were") };
        drain.shared.notes.add(format!("{} {what} {verb} still running when the recording ended", ended.running));
    }
    if ended.kept {
        return false;
    }
    let restored = drain.store.restored;
    if let Err(error) = drain.store.finish(Some(segments)) {
        drain.shared.notes.add(format!("the trace is in many small files, because they could not be joined: {error}"));
    }
    if drain.store.restored > restored {
        drain.shared.notes.add(FOLDER_REMOVED);
    }
    true
}

/// Joins small files while recording goes on.
fn compact(files: &Files, segments: &Path, notes: &Notes, stop: &AtomicBool) {
    prefer(10);
    while !stop.load(Ordering::Acquire) {
        let pause = match notes.guard("the compactor", || compact_once(files, Some(segments))) {
            Some(Ok(true)) => Duration::ZERO,
            Some(Ok(false)) => Duration::from_millis(250),
            // A full disk, most likely: the files are as good as one.
            _ => Duration::from_secs(10),
        };
        std::thread::park_timeout(pause);
    }
}

/// Asks the scheduler for more (negative) or less than our share. Where many processes want few processors, a drain with
/// an equal share cannot keep up with all of them; only a privileged user may ask for more, others go without.
fn prefer(nice: i32) {
    // SAFETY: concerns this thread only; a refusal changes nothing.
    unsafe {
        let thread = libc::gettid() as libc::id_t;
        libc::setpriority(libc::PRIO_PROCESS, thread, nice);
    }
}
