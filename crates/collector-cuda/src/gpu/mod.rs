//! What devices do, from CUPTI: kernels, copies, waits and memory out of its activity buffers, and the calls that asked for
//! them out of its callbacks. CUPTI is found and loaded at run time; where it is not, the program runs as it would without us.

mod api;
mod buffers;
mod calls;
mod clock;
mod decode;
pub mod dynamic;
mod effects;
mod enable;
mod kept;
mod launches;
mod layout;
mod library;
mod lifecycle_lock;
mod names;
mod parameters;
pub mod quiet;
mod steps;
mod target;
#[cfg(test)]
mod tests;
mod waiting;
mod windows;
mod worker;

use crate::recording;
use crate::{recorded, thread};
use api::{Cupti, MULTIPLE_SUBSCRIBERS, Subscriber};
use clock::Clock;
use library::{Found, check};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once};
use std::time::{Duration, Instant};
use trace::NameId;
use trace::clock::monotonic;
use trace::codes::{Note, NoteCode, RecordingWindow};
use trace::event::{Event, Kind, TextRole, text_records};
use trace::status::{Collector, State};
use workload::session::Session;
use workload::settings::GpuDetail;

/// Who brought us in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// The driver, inside the program's first `cuInit`.
    Driver,
    /// Our package, in a program that may use CUDA already.
    Package,
}

/// A recording of the GPU. Never freed: CUPTI's threads may be in it.
pub struct Collecting {
    pub cupti: Cupti,
    pub session: &'static Session,
    /// When it began, on our clock.
    pub began: u64,
    clock: Mutex<Clock>,
    old: bool,
    /// Which CUPTI it is, in words.
    described: String,
    subscriber: AtomicPtr<c_void>,
    /// Whether it takes callbacks at all.
    calls_back: AtomicBool,
    /// The kinds that CUPTI refused so far, a bit each.
    refused: AtomicU32,
    pid: u32,
}

/// The recording of this process that is on.
static CURRENT: AtomicPtr<Collecting> = AtomicPtr::new(std::ptr::null_mut());
/// The process that has the worker: a forked child has none.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Longest wait at the end of the program, and inside the program's own `cuInit`.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest wait for another thread that begins or ends a recording: loading CUPTI may take seconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Begins to record, or, in a program that has not started CUDA, leaves that to the driver. The error says why it cannot; it is
/// on the status page too.
pub fn start(entry: Entry) -> Result<(), String> {
    let timeout = match entry {
        // Who holds the lock may wait for the driver, which waits for us.
        Entry::Driver => EXIT_TIMEOUT,
        Entry::Package => LOCK_TIMEOUT,
    };
    // Before the lock: asking the driver may mean to wait for a thread that is just starting CUDA, and that one comes in here.
    let not_yet = match entry {
        Entry::Driver => None,
        Entry::Package => match library::mapped_driver() {
            None => return Ok(()),
            Some(driver) => Some(driver).filter(|driver| !driver.runs()),
        },
    };
    // Whoever else holds it begins the same recording, or this very thread does.
    let Some(_held) = lifecycle_lock::try_acquire(timeout) else { return Ok(()) };
    if let Some(driver) = not_yet {
        return waiting::begin(driver).or_else(|why| refuse(recording::session()?, why));
    }
    let session = recording::session()?;
    if session.settings.recording.gpu_detail == GpuDetail::Off {
        return Err("recording the GPU is switched off (--gpu-detail off)".to_owned());
    }
    let pid = std::process::id();
    if current().is_some_and(|running| running.pid == pid && std::ptr::eq(running.session, session)) {
        return Ok(());
    }
    match begin(session) {
        Ok(running) => {
            CURRENT.store(std::ptr::from_ref(running).cast_mut(), Ordering::Release);
            Ok(())
        }
        Err(why) => refuse(session, why),
    }
}

fn current() -> Option<&'static Collecting> {
    // SAFETY: null, or leaked by `begin`.
    unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
}

/// Takes the recording that is on, if it is of this process.
fn take_current() -> Option<&'static Collecting> {
    // SAFETY: null, or leaked by `begin`.
    let taken = unsafe { CURRENT.swap(std::ptr::null_mut(), Ordering::AcqRel).as_ref() };
    taken.filter(|collecting| collecting.pid == std::process::id())
}

fn refuse(session: &'static Session, why: String) -> Result<(), String> {
    session.status(Collector::Gpu).set(State::Failed, &why);
    say(session, &Note::new(NoteCode::GpuNotRecorded).with(&why));
    Err(why)
}

fn begin(session: &'static Session) -> Result<&'static Collecting, String> {
    let found = library::find()?;
    found.complete()?;
    if !buffers::prepare() {
        return Err("no memory for CUPTI's buffers".to_owned());
    }
    let (described, old) = (found.describe(), found.is_old());
    let subscriber = subscribe(&found)?;
    let clock = Clock::new(&found.cupti, session);
    let described = format!("{described}{}", if clock.is_ours() { "" } else { ", on CUPTI's clock" });
    let Found { cupti, warning, .. } = found;
    let collecting: &'static Collecting = Box::leak(Box::new(Collecting {
        cupti,
        session,
        began: monotonic().0,
        clock: Mutex::new(clock),
        old,
        described,
        subscriber: AtomicPtr::new(subscriber),
        calls_back: AtomicBool::new(false),
        refused: AtomicU32::new(0),
        pid: std::process::id(),
    }));
    launches::prepare(&collecting.cupti, session);
    worker::STOP.store(false, Ordering::Release);
    worker::PHASE.store(0, Ordering::Release);
    OWNER.store(std::process::id(), Ordering::Relaxed);
    if let Err(why) = worker::spawn(collecting) {
        collecting.disable();
        return Err(why);
    }
    // The worker takes the large ring before any launching thread takes one.
    let since = Instant::now();
    while worker::PHASE.load(Ordering::Acquire) == 0 && since.elapsed() < EXIT_TIMEOUT {
        std::thread::yield_now();
    }
    if let Some(warning) = warning {
        say(session, &warning.note(NoteCode::CuptiVersion));
    }
    collecting.calls_back.store(collecting.is_subscribed(), Ordering::Relaxed);
    if let Err(why) = collecting.enable() {
        // The worker first: one that finds itself no longer subscribed would take it for somebody else's doing.
        stop_worker();
        collecting.disable();
        return Err(why);
    }
    if let Some(why) = collecting.clock().unknown(&collecting.cupti) {
        say(session, &why.note(NoteCode::GpuClockUnknown));
    }
    session.status(Collector::Gpu).set(State::On, &collecting.words());
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function takes nothing and returns.
        unsafe { libc::atexit(at_exit) };
    });
    Ok(collecting)
}

fn subscribe(found: &Found) -> Result<Subscriber, String> {
    let cupti = &found.cupti;
    let mut subscriber: Subscriber = std::ptr::null_mut();
    let Some(function) = cupti.subscribe else { return Ok(subscriber) };
    // SAFETY: the callback catches whatever happens in it.
    let code = unsafe { function(&mut subscriber, launches::called, std::ptr::null_mut()) };
    if code == MULTIPLE_SUBSCRIBERS {
        return Err(cupti.words(code));
    }
    check(cupti, "CUPTI refuses to be subscribed to", code)?;
    Ok(subscriber)
}

impl Collecting {
    /// The clock; looked at again where it is not known yet.
    pub fn clock(&self) -> MutexGuard<'_, Clock> {
        let mut clock = self.clock.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if clock.unknown(&self.cupti).is_some() {
            clock.anchor(&self.cupti, self.session);
        }
        clock
    }

    /// Nothing more is asked of CUPTI.
    pub fn disable(&self) {
        recorded::end();
        let _ = self.kinds(false);
        let subscriber = self.subscriber.swap(std::ptr::null_mut(), Ordering::AcqRel);
        if let Some(unsubscribe) = self.cupti.unsubscribe.filter(|_| !subscriber.is_null()) {
            // SAFETY: our own subscription, taken out so that it is given back once.
            unsafe { unsubscribe(subscriber) };
        }
    }

    /// For who has decoded everything: what is to be known of it as a whole.
    pub fn conclude(&self) {
        if let Some(why) = self.clock().unknown(&self.cupti) {
            self.session.status(Collector::Gpu).set(State::Failed, &why.message());
        }
        let early = buffers::EARLY.swap(0, Ordering::Relaxed);
        if early > 0 {
            say(self.session, &Note::new(NoteCode::WorkOfEarlierRecording).with(early));
        }
    }

    /// One that is known to hang with CUDA graphs.
    pub fn is_old(&self) -> bool {
        self.old
    }
}

/// Recording ends in a program that goes on: hands over what there is. It may begin again.
pub fn stop() {
    waiting::end();
    // If the holder takes that long: its worker sees that the recording is over, and ends by itself.
    let Some(_held) = lifecycle_lock::try_acquire(LOCK_TIMEOUT) else { return };
    if let Some(collecting) = take_current() {
        stop_worker();
        collecting.disable();
    }
}

/// Another profiler wants CUPTI: hands over what there is and lets go.
pub fn release(who: &str) {
    let Some(_held) = lifecycle_lock::try_acquire(LOCK_TIMEOUT) else { return };
    let Some(collecting) = take_current() else { return };
    stop_worker();
    collecting.disable();
    let why = format!("{who} was started and has CUPTI: what the GPU does after that is not in this recording");
    collecting.session.status(Collector::Gpu).set(State::Failed, &why);
    say(collecting.session, &Note::new(NoteCode::CuptiTakenOver).with(who));
}

/// The program ends in the ordinary way: what CUPTI still has goes into the ring. Bounded in time, whatever CUPTI does.
extern "C" fn at_exit() {
    if OWNER.load(Ordering::Relaxed) == std::process::id() {
        stop_worker();
    }
}

fn stop_worker() {
    worker::STOP.store(true, Ordering::Release);
    buffers::wake();
    let since = Instant::now();
    while worker::PHASE.load(Ordering::Acquire) == 1 && since.elapsed() < EXIT_TIMEOUT {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Whether the CUDA driver is in this process.
pub fn has_driver() -> bool {
    library::mapped_driver().is_some()
}

/// A line for the report.
pub fn say(session: &'static Session, note: &Note) {
    write(session, Kind::Note, &note.joined(), note.code as u32);
}

/// From now on the GPU is recorded, or is not.
fn turn(session: &'static Session, window: RecordingWindow) {
    let Some(writing) = thread::writing(session, Collector::Gpu) else { return };
    let (time, kind, value) = (trace::clock::now(), Kind::RecordingWindow as u16, window as u64);
    let event = Event { time, value, thread: writing.tid, name: NameId::NONE, kind, flags: 0, extra: 0 };
    writing.push_all(&[event.to_words()]);
}

fn write(session: &'static Session, kind: Kind, text: &str, extra: u32) {
    let Some(writing) = thread::writing(session, Collector::Gpu) else { return };
    // With its text in front: there may be no more room for names.
    let mut records: Vec<_> = text_records(TextRole::Name, text).collect();
    let (time, name, flags) = (trace::clock::now(), NameId::INLINE, records.len() as u16);
    let event = Event { time, value: 0, thread: writing.tid, name, kind: kind as u16, flags, extra };
    records.push(event.to_words());
    writing.push_all(&records);
}
