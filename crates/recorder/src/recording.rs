//! A recording in progress: its folders, and the threads that fill them. Started before the workload, finished after it.

use crate::device::sampler::Sampler;
use crate::drain::Drain;
use crate::lock::Lock;
use crate::messages::Outbox;
use crate::notes::{self, Notes};
use crate::outcome::Error;
use crate::output::Output;
use crate::plan::Plan;
use crate::resume::Resumed;
use crate::settings::{Calls, Settings};
use crate::shared::Shared;
use crate::store::{Files, compact_once};
use crate::watch::{Watch, WatchedProcesses};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;
use trace::codes::{Note, NoteCode};

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
    pub watch: Option<JoinHandle<WatchedProcesses>>,
    pub device: Option<JoinHandle<()>>,
    /// The workload was given collectors, so its Python processes should have segments.
    pub injected: bool,
    /// How many recorders of this trace were killed before us.
    pub restarts: u32,
    /// One of them took samples.
    pub had_samples: bool,
}

impl Recording {
    /// Starts the threads of a recording that was begun or goes on.
    pub fn start(plan: &Plan, begun: Resumed, restarts: u32) -> Result<Recording, Error> {
        notes::silence_threads();
        let Resumed { mut drain, outbox, had_samples } = begun;
        let Output { shown, trace, segments, .. } = &plan.output;
        let (shared, files) = (drain.shared.clone(), drain.store.files());
        let (stop_sampling, stop_draining) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let stop = Arc::clone(&stop_draining);
        // Only call recording writes faster than a drain with an equal share can read when cores are few.
        let heavy = plan.settings.calls != Calls::Off;
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
        Ok(Recording {
            shared,
            segments: segments.clone(),
            shown: shown.clone(),
            trace: trace.clone(),
            settings: plan.settings.clone(),
            outbox,
            stop_sampling,
            stop_draining,
            drain,
            compactor,
            watch: None,
            device: None,
            injected: plan.injected,
            restarts,
            had_samples,
        })
    }

    /// Samples a process and what descends from it.
    pub fn watch(&mut self, root: u32, lock: Option<Lock>) {
        let stop = Arc::clone(&self.stop_sampling);
        let watch = Watch::new(&self.settings, root, lock, self.shared.clone(), self.outbox.clone(), stop);
        match Builder::new().name("watch".into()).spawn(move || watch.run()) {
            Ok(thread) => self.watch = Some(thread),
            Err(error) => self.shared.notes.add(Note::new(NoteCode::NoWatchThread).with(error)),
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
            Err(error) => self.shared.notes.add(Note::new(NoteCode::NoDeviceThread).with(error)),
        }
    }

    /// There is nothing to record after all: leaves no threads behind.
    pub fn discard(self) {
        self.stop_sampling.store(true, Ordering::Release);
        if let Some(watch) = self.watch {
            watch.thread().unpark();
            let _ = watch.join();
        }
        self.stop_draining.store(true, Ordering::Release);
        [&self.drain.thread(), &self.compactor.thread()].into_iter().for_each(|thread| thread.unpark());
        let _ = (self.compactor.join(), self.drain.join());
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
