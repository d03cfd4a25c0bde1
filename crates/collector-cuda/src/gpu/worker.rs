//! The one thread of ours in the program: decodes full buffers, asks CUPTI for the others once a second so that little is lost
//! in a crash, keeps the budget, and notices when nothing comes any more.

use super::api::SUCCESS;
use super::decode::Decoder;
use super::kept::{Kept, Progress};
use super::steps::Steps;
use super::target::Ring;
use super::windows::{ProgressCalls, RecordingWindows};
use super::{Collecting, buffers, launches, library, quiet, say};
use crate::thread;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use trace::clock::monotonic;
use trace::codes::{Note, NoteCode, Reason, ReasonCode, RecordingWindow};
use trace::status::{Collector, State};
use workload::guard;
use workload::session::{self, Session};
use workload::settings::Budget;

const EVERY: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);
/// Calls that give work, and not a single piece of finished work for so many rounds: hardly a kernel takes that long.
const SILENT_ROUNDS: u32 = 10;
/// A copy of no bytes gives no work: so many may be the last ones.
const FEW_CALLS: u32 = 64;
/// Launches a second from which recording them may cost some per cent: one costs a microsecond or two.
const FAST: u64 = 20_000;
/// Nodes of graphs a second from which recording them may cost one: each costs the device up to a microsecond.
const FAST_NODES: u64 = 10_000;
/// What recording a program that launches fast may cost, and one whose work comes from graphs, in per cent: CUPTI takes a part
/// of every launch, which who records them has to pay, but nobody expects a graph to become slower.
const LAUNCHES: f64 = 10.0;
const GRAPHS: f64 = 1.0;
/// A program that is over sooner is recorded as it is.
const FAST_ROUNDS: u32 = 3;

/// The program ends: hand over what there is.
pub static STOP: AtomicBool = AtomicBool::new(false);
/// 1 while the worker runs, 2 when it has ended.
pub static PHASE: AtomicU32 = AtomicU32::new(0);

/// Starts the thread.
pub fn spawn(collecting: &'static Collecting) -> Result<(), String> {
    let body = move || {
        guard::guarded(Collector::Gpu, (), || run(collecting));
        PHASE.store(2, Ordering::Release);
    };
    quiet::thread("inferscope-gpu", body).map_err(|error| format!("no thread for decoding: {error}"))
}

fn progress_calls() -> ProgressCalls {
    ProgressCalls {
        count: launches::PROGRESS_CALLS_SEEN.load(Ordering::Relaxed),
        last: launches::LAST_PROGRESS_CALL.load(Ordering::Relaxed),
    }
}

struct Worker {
    collecting: &'static Collecting,
    session: &'static Session,
    decoder: Decoder,
    windows: Option<RecordingWindows>,
    /// Looked for once there are windows.
    steps: Option<Steps>,
    began: u64,
    /// Launches and all work by the last round, and how many rounds in a row they have been many.
    launched: u64,
    given: u64,
    fast: u32,
    /// What was there when work was last reported.
    captured: u64,
    work: u64,
    silent: u32,
    warned: bool,
    /// Said for good, and for the time being.
    told: bool,
    quiet: bool,
    kept: Kept,
}

fn run(collecting: &'static Collecting) {
    let session = collecting.session;
    if thread::writing(session, Collector::Gpu).is_none() {
        return say(session, &Note::new(NoteCode::GpuNoRing));
    }
    PHASE.store(1, Ordering::Release);
    let windows = match session.settings.recording.overhead_budget {
        Budget::Windows(percent) => Some(RecordingWindows::new(percent, monotonic().0)),
        Budget::Auto | Budget::Unlimited => None,
    };
    let mut worker = Worker {
        collecting,
        session,
        decoder: Decoder::default(),
        windows,
        steps: None,
        began: monotonic().0,
        launched: 0,
        given: 0,
        fast: 0,
        captured: 0,
        work: 0,
        silent: 0,
        warned: false,
        told: false,
        quiet: false,
        kept: Kept::default(),
    };
    let mut round = Instant::now();
    while !STOP.load(Ordering::Acquire) && session::current().is_some_and(|current| std::ptr::eq(current, session)) {
        if let Some(full) = buffers::next(LOOK) {
            worker.decode(full);
        }
        buffers::keep_ready();
        worker.keep_budget();
        if round.elapsed() >= EVERY {
            round = Instant::now();
            worker.round();
        }
    }
    worker.finish();
}

impl Worker {
    fn decode(&mut self, full: buffers::Full) {
        let began = monotonic().0;
        let cupti = &self.collecting.cupti;
        let status = self.session.status(Collector::Gpu);
        if let (Some(next), Some(writing)) = (cupti.next_record, thread::writing(self.session, Collector::Gpu)) {
            let clock = self.collecting.clock();
            let since = if full.is_late() { self.collecting.began } else { 0 };
            let mut ring = Ring { session: self.session, writing, clock: &clock, since, early: 0 };
            // SAFETY: the buffer is ours until it is given back.
            unsafe { self.decoder.take_all(&mut ring, next, full.start(), full.valid) };
            buffers::EARLY.fetch_add(ring.early, Ordering::Relaxed);
        }
        if let Some(dropped) = cupti.dropped_records {
            let mut count = 0;
            // SAFETY: context and stream are what CUPTI gave with the buffer.
            if unsafe { dropped(full.context as *mut c_void, full.stream, &mut count) } == 0 {
                status.dropped.fetch_add(count as u64, Ordering::Relaxed);
            }
        }
        full.give_back();
        status.own_ns.fetch_add(monotonic().0 - began, Ordering::Relaxed);
        self.describe_devices();
    }

    /// CUPTI does not tell of devices whose first context came before it recorded, or between two windows. Nothing of ours is held
    /// meanwhile: the driver may let us wait.
    fn describe_devices(&mut self) {
        for ordinal in self.decoder.untold() {
            let Some(facts) = library::mapped_driver().and_then(|driver| driver.device(ordinal)) else { continue };
            let Some(writing) = thread::writing(self.session, Collector::Gpu) else { continue };
            let clock = self.collecting.clock();
            self.decoder.tell(&mut Ring { session: self.session, writing, clock: &clock, since: 0, early: 0 }, &facts);
        }
    }

    fn drain(&mut self) {
        while let Some(full) = buffers::next(Duration::ZERO) {
            self.decode(full);
        }
    }

    fn keep_budget(&mut self) {
        let Some(windows) = &mut self.windows else { return };
        windows.see_step(self.steps.get_or_insert_with(Steps::find).longest());
        if windows.turn(monotonic().0, progress_calls()) {
            let recording = windows.settle(self.collecting.switch(windows.recording));
            let window = if recording { RecordingWindow::On } else { RecordingWindow::Off };
            super::turn(self.session, window);
        }
    }

    /// A program that launches fast, and goes on doing so, is the one that recording slows down: from then on it is found out
    /// by how much.
    fn notice_pace(&mut self) {
        let launched = self.decoder.launched - std::mem::replace(&mut self.launched, self.decoder.launched);
        let given = self.decoder.work - std::mem::replace(&mut self.given, self.decoder.work);
        let nodes = given - launched;
        self.fast = if launched >= FAST || nodes >= FAST_NODES { self.fast + 1 } else { 0 };
        if self.session.settings.recording.overhead_budget == Budget::Auto
            && self.windows.is_none()
            && self.fast == FAST_ROUNDS
        {
            let percent = if nodes > launched { GRAPHS } else { LAUNCHES };
            let now = monotonic().0;
            let fast = now.saturating_sub(u64::from(FAST_ROUNDS) * EVERY.as_nanos() as u64).max(self.began);
            self.windows = Some(RecordingWindows::from_whole(percent, self.began, fast, now));
        }
    }

    /// Once a second.
    fn round(&mut self) {
        self.flush(0);
        self.notice_pace();
        {
            let mut clock = self.collecting.clock();
            clock.anchor(&self.collecting.cupti, self.session);
        }
        if self.decoder.graphs && !self.warned && self.collecting.is_old() {
            self.warned = true;
            say(self.session, &Note::new(NoteCode::GraphsMayHang));
        }
        self.notice_kept();
        self.notice_silence();
        self.tell_cost();
    }

    /// For the report, also of a program that is killed.
    fn tell_cost(&self) {
        if let Some(measured) = self.windows.as_ref().and_then(|windows| windows.measured(monotonic().0)) {
            self.session.status(Collector::Gpu).set_windows(measured);
        }
    }

    fn notice_kept(&mut self) -> Progress {
        let now = monotonic().0;
        let times = self.windows.as_ref().map_or([now - self.began, 0], |windows| windows.times(now));
        let progress = Progress { counted: launches::AFTER_CAPTURE.load(Ordering::Relaxed), times };
        if let Some(reason) = self.kept.look(progress) {
            say(self.session, &reason.note(NoteCode::CuptiKeepsMemory));
        }
        progress
    }

    /// Whether the last call that gave work waits for its work to be reported. What goes into a graph never is.
    fn is_unanswered(&self) -> bool {
        let paused = self.windows.as_ref().is_some_and(|windows| !windows.recording);
        let captured = launches::CAPTURED.load(Ordering::Relaxed) != self.captured;
        let behind = launches::GIVEN.load(Ordering::Relaxed).saturating_sub(self.decoder.newest);
        behind > FEW_CALLS && !paused && !captured
    }

    fn notice_silence(&mut self) {
        if self.collecting.was_unsubscribed() {
            return self.lost(&Reason::new(ReasonCode::CuptiTaken));
        }
        let silent = self.is_unanswered() && self.decoder.work == self.work;
        (self.work, self.captured) = (self.decoder.work, launches::CAPTURED.load(Ordering::Relaxed));
        self.silent = if silent { self.silent + 1 } else { 0 };
        self.be_quiet(self.silent >= SILENT_ROUNDS);
    }

    /// Only the end tells why nothing came, but there may be none: until then it stands on the status page.
    fn be_quiet(&mut self, quiet: bool) {
        if quiet == std::mem::replace(&mut self.quiet, quiet) {
            return;
        }
        let status = self.session.status(Collector::Gpu);
        let words = Reason::new(ReasonCode::CuptiQuiet).with(u64::from(SILENT_ROUNDS) * EVERY.as_secs()).message();
        // What else was said of it stays.
        if quiet && status.state() == State::On {
            status.set(State::Failed, &words);
        } else if !quiet && status.message() == words {
            status.set(State::On, &self.collecting.words());
        }
    }

    /// Work is not in the recording; said once.
    fn lost(&mut self, reason: &Reason) {
        if !std::mem::replace(&mut self.told, true) {
            self.session.status(Collector::Gpu).set(State::Failed, &reason.message());
            say(self.session, &reason.note(NoteCode::GpuRecordingStopped));
        }
    }

    /// Buffers come back through `buffers::completed`. The code is CUPTI's.
    fn flush(&mut self, forced: u32) -> u32 {
        // SAFETY: CUPTI's own function.
        self.collecting.cupti.flush_all.map_or(SUCCESS, |flush| unsafe { flush(forced) })
    }

    /// Everything that CUPTI still has.
    fn finish(&mut self) {
        if let Some(windows) = &self.windows {
            say(self.session, &windows.counted(monotonic().0).note());
        }
        self.tell_cost();
        let unsubscribed = self.collecting.was_unsubscribed();
        let flushed = self.flush(1);
        self.drain();
        self.collecting.disable();
        // Some come only when CUPTI is left.
        self.drain();
        let progress = self.notice_kept();
        if let Some(reason) = self.kept.total(progress) {
            say(self.session, &reason.note(NoteCode::CuptiKeepsMemory));
        }
        if let Some(note) = launches::failures() {
            say(self.session, &note);
        }
        let given = launches::GIVEN.load(Ordering::Relaxed);
        if unsubscribed {
            self.lost(&Reason::new(ReasonCode::CuptiTaken));
        } else if flushed != SUCCESS && given > self.decoder.newest {
            let words = self.collecting.cupti.words(flushed);
            self.lost(&Reason::new(ReasonCode::CuptiKeptRecords).with(words));
        } else if self.is_unanswered() {
            self.lost(&Reason::new(ReasonCode::CuptiSilent));
        } else {
            self.be_quiet(false);
        }
        if self.decoder.names.is_full {
            say(self.session, &Note::new(NoteCode::NoRoomForNames));
        }
        let starved = buffers::STARVED.swap(0, Ordering::Relaxed);
        let strange = buffers::STRANGE.swap(0, Ordering::Relaxed);
        if starved > 0 {
            say(self.session, &Note::new(NoteCode::CuptiBuffersShort).with(starved));
        }
        self.session.status(Collector::Gpu).errors.fetch_add(strange, Ordering::Relaxed);
        self.collecting.conclude();
    }
}
