//! A recording in progress: its folders, and the threads that fill them. Started before the workload, finished after it.

use crate::device::found::Found;
use crate::device::sampler::Sampler;
use crate::dictionary::Dictionary;
use crate::drain::{Clock, Drain, Shared, not_kept};
use crate::journal::Journal;
use crate::lock::Lock;
use crate::manifest::Manifest;
use crate::messages::{Outbox, channel};
use crate::notes::{self, Notes};
use crate::outcome::Error;
use crate::output::{self, Output};
use crate::processes::Processes;
use crate::settings::{Calls, Settings};
use crate::store::{Files, Store, compact_once};
use crate::watch::{Seen, Watch};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use trace::Source;

pub(crate) struct Recording {
    pub shared: Shared,
    pub segments: PathBuf,
    pub shown: PathBuf,
    pub trace: PathBuf,
    pub settings: Settings,
    outbox: Outbox,
    pub stop_sampling: Arc<AtomicBool>,
    pub stop_draining: Arc<AtomicBool>,
    pub drain: JoinHandle<Drain>,
    pub compactor: JoinHandle<()>,
    pub watch: Option<JoinHandle<Seen>>,
    pub device: Option<JoinHandle<()>>,
    /// The workload was given collectors, so its Python processes should have segments.
    pub injected: bool,
}

impl Recording {
    /// Everything that can fail fails here, before the workload runs, and then leaves nothing behind.
    /// `attached`: to a process that runs already.
    pub fn start(settings: &Settings, output: Output, command: String, attached: bool) -> Result<Recording, Error> {
        let (trace, segments) = (output.trace.clone(), output.segments.clone());
        Recording::start_in(settings, output, command, attached).inspect_err(|_| output::discard(&trace, &segments))
    }

    fn start_in(settings: &Settings, output: Output, command: String, attached: bool) -> Result<Recording, Error> {
        notes::silence_threads();
        let Output { shown, trace, segments, lock, note } = output;
        let fail = |error: std::io::Error| Error::Output { path: shown.clone(), why: error.to_string() };
        let shared = Shared {
            dictionary: Arc::new(Dictionary::new(0)),
            processes: Processes::default(),
            notes: Notes::default(),
            devices: Found::default(),
        };
        note.into_iter().for_each(|note| shared.notes.add(note));
        let source = Source::detect();
        let mut manifest = Manifest::new(command, settings, source);
        manifest.attached = attached;
        manifest.id = output::trace_id(&segments);
        manifest.segments = Some(segments.to_string_lossy().into_owned());
        manifest.write_in_reserve(&trace).map_err(fail)?;
        let store = Store::open(&trace).map_err(fail)?;
        let (outbox, inbox) = channel();
        let files = store.files();
        let clock = Clock::start(source);
        let mut drain = Drain::new(store, manifest, segments.clone(), clock, inbox, shared.clone()).hold(lock);
        match Journal::create(&segments) {
            Ok(journal) => drain.keep_in(journal),
            Err(error) => shared.notes.add(not_kept(&error)),
        }
        let (stop_sampling, stop_draining) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&stop_draining);
        // Only call recording writes faster than a drain with an equal share can read when cores are few.
        let heavy = settings.calls != Calls::Off;
        let spawned = Builder::new().name("drain".into()).spawn(move || {
            if heavy {
                prefer(-10);
            }
            drain.run(&stop);
            drain
        });
        let drain = spawned.map_err(|error| Error::io("cannot start a thread", error))?;
        let (stop, notes, folder) = (Arc::clone(&stop_draining), shared.notes.clone(), segments.clone());
        let spawned = Builder::new().name("compact".into()).spawn(move || compact(&files, &folder, &notes, &stop));
        let compactor = spawned.map_err(|error| Error::io("cannot start a thread", error))?;
        let (settings, watch, device, injected) = (settings.clone(), None, None, false);
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
            device,
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
        self.sample_devices();
    }

    /// In a thread of their own: a driver may take seconds to start, and nothing waits for that.
    fn sample_devices(&mut self) {
        let hertz = self.settings.device_hz;
        if !(hertz.is_finite() && hertz > 0.0) {
            return;
        }
        let (stop, shared, outbox) = (Arc::clone(&self.stop_sampling), self.shared.clone(), self.outbox.clone());
        let sampler = Sampler { hertz, shared, outbox, stop };
        match Builder::new().name("device".into()).spawn(move || sampler.run()) {
            Ok(thread) => self.device = Some(thread),
            Err(error) => self.shared.notes.add(format!("no samples of devices: cannot start a thread: {error}")),
        }
    }

    /// There is nothing to record after all: leaves nothing behind.
    pub fn discard(self) {
        self.stop_sampling.store(true, Ordering::Release);
        if let Some(watch) = self.watch {
            watch.thread().unpark();
            let _ = watch.join();
        }
        self.stop_draining.store(true, Ordering::Release);
        [&self.drain.thread(), &self.compactor.thread()].into_iter().for_each(|thread| thread.unpark());
        let _ = (self.compactor.join(), self.drain.join());
        output::discard(&self.trace, &self.segments);
    }
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
