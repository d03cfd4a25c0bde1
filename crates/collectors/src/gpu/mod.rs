//! What devices do, from CUPTI: kernels, copies, waits and memory out of its activity buffers, and the calls that asked for
//! them out of its callbacks. CUPTI is found and loaded at run time; where it is not, the program runs as it would without us.

mod api;
mod buffers;
mod calls;
mod clock;
mod decode;
mod dynamic;
mod kept;
mod launches;
mod layout;
mod library;
mod names;
mod parameters;
mod target;
mod windows;
mod worker;

use crate::injection;
use crate::session::Session;
use crate::settings::{Budget, GpuDetail};
use crate::{recorded, thread};
use api::{Cupti, MULTIPLE_SUBSCRIBERS, SUCCESS, Subscriber, UnifiedMemory};
use clock::Clock;
use library::{Found, check};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, Once};
use std::time::{Duration, Instant};
use trace::event::{Event, Kind};
use trace::status::{Collector, State};

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
    pub clock: Mutex<Clock>,
    number: u32,
    subscriber: AtomicPtr<c_void>,
    pid: u32,
}

static CURRENT: Mutex<Option<&'static Collecting>> = Mutex::new(None);
/// The process that has the worker: a forked child has none.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// What devices did and do.
const KINDS: &[u32] = &[
    layout::Device::KIND,
    layout::Kernel::KIND,
    layout::Memcpy::KIND,
    layout::MemcpyPeer::KIND,
    layout::Memset::KIND,
    layout::Overhead::KIND,
];

/// With every detail: pages moved by unified memory. Waits (38) and allocations (49) are not asked of CUPTI: that slows every
/// launch, and the callbacks of the few calls say the same (`parameters`).
const MORE_KINDS: &[u32] = &[layout::Migration::KIND];

/// The largest machines have 16.
const MOST_DEVICES: u32 = 16;
/// Kinds without which nothing is worth having.
const NEEDED: &[u32] = &[layout::Kernel::KIND];
/// Longest wait at the end of the program.
const GOODBYE: Duration = Duration::from_secs(1);
/// CUPTI is told that buffers come zeroed, so that it does not do that on the program's thread.
const ZEROED_BUFFERS: u32 = 5;

/// Begins to record. The error says why it cannot; it is on the status page too.
pub fn start(entry: Entry) -> Result<(), String> {
    let session = injection::session()?;
    if session.settings.gpu_detail == GpuDetail::Off {
        return Err("recording the GPU is switched off (--gpu-detail off)".to_owned());
    }
    let mut current = CURRENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let pid = std::process::id();
    if current.is_some_and(|running| running.pid == pid && std::ptr::eq(running.session, session)) {
        return Ok(());
    }
    match begin(entry, session) {
        Ok(running) => {
            *current = Some(running);
            Ok(())
        }
        Err(why) => {
            session.status(Collector::Gpu).set(State::Failed, &why);
            say(session, &format!("what the GPU does is not recorded: {why}"));
            Err(why)
        }
    }
}

fn begin(entry: Entry, session: &'static Session) -> Result<&'static Collecting, String> {
    let found = library::find(entry == Entry::Package)?;
    found.complete()?;
    if !buffers::prepare() {
        return Err("no memory for CUPTI's buffers".to_owned());
    }
    let described = found.describe();
    let subscriber = subscribe(&found)?;
    let clock = Clock::new(&found.cupti, session);
    let clock_words = if clock.is_ours() { "" } else { ", on CUPTI's clock" };
    let Found { cupti, number, warning, .. } = found;
    let collecting: &'static Collecting = Box::leak(Box::new(Collecting {
        cupti,
        session,
        clock: Mutex::new(clock),
        number,
        subscriber: AtomicPtr::new(subscriber),
        pid: std::process::id(),
    }));
    launches::prepare(&collecting.cupti);
    worker::STOP.store(false, Ordering::Release);
    worker::PHASE.store(0, Ordering::Release);
    OWNER.store(std::process::id(), Ordering::Relaxed);
    worker::spawn(collecting)?;
    // The worker takes the large ring before any launching thread takes one.
    let since = Instant::now();
    while worker::PHASE.load(Ordering::Acquire) == 0 && since.elapsed() < GOODBYE {
        std::thread::yield_now();
    }
    if let Some(warning) = warning {
        say(session, &warning);
    }
    if let Err(why) = collecting.enable() {
        collecting.disable();
        worker::STOP.store(true, Ordering::Release);
        return Err(why);
    }
    session.status(Collector::Gpu).set(State::On, &format!("{described}{clock_words}"));
    static GOODBYES: Once = Once::new();
    GOODBYES.call_once(|| {
        // SAFETY: the function takes nothing and returns.
        unsafe { libc::atexit(goodbye) };
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
    /// Switches everything on that the settings ask for.
    fn enable(&self) -> Result<(), String> {
        let cupti = &self.cupti;
        if let Some(register) = cupti.register_callbacks {
            // SAFETY: both functions only hand buffers over.
            let code = unsafe { register(buffers::requested, buffers::completed) };
            check(cupti, "CUPTI refuses our buffers", code)?;
        }
        if let Some(set) = cupti.set_attribute {
            let (mut size, mut value) = (1, 1u8);
            // SAFETY: one byte, as the attribute wants. A version that does not know it zeroes the buffers itself.
            unsafe { set(ZEROED_BUFFERS, &mut size, (&raw mut value).cast()) };
        }
        if self.session.settings.gpu_detail == GpuDetail::All {
            self.unified_memory();
        }
        let windows = matches!(self.session.settings.overhead_budget, Budget::Windows(_));
        self.record_calls(!windows);
        if windows {
            self.callbacks(calls::BEATS, true);
            if self.records_calls() {
                self.session.status(Collector::Launches).set(State::On, "in windows, by the overhead budget");
            }
            // Subscribed and known to work before the first window.
            self.kinds(true)?;
            self.kinds(false)?;
            recorded::begin(false);
            return Ok(());
        }
        self.kinds(true)?;
        self.calls(true);
        recorded::begin(true);
        Ok(())
    }

    /// Which movements of pages count: to the device, to the host. Devices that are not there are refused.
    fn unified_memory(&self) {
        let Some(configure) = self.cupti.configure_unified_memory else { return };
        for device in 0..MOST_DEVICES {
            let movement = |kind| UnifiedMemory { scope: 1, kind, device, enable: 1 };
            let mut both = [movement(1), movement(2)];
            // SAFETY: two configurations, which CUPTI copies.
            unsafe { configure(both.as_mut_ptr(), 2) };
        }
    }

    fn kinds(&self, on: bool) -> Result<(), String> {
        let cupti = &self.cupti;
        let Some(function) = (if on { cupti.activity_enable } else { cupti.activity_disable }) else { return Ok(()) };
        let more = if self.session.settings.gpu_detail == GpuDetail::All { MORE_KINDS } else { &[] };
        for kind in KINDS.iter().chain(more).copied() {
            // SAFETY: CUPTI's own function; kinds that it does not know it refuses.
            let code = unsafe { function(kind) };
            if on && code != SUCCESS && NEEDED.contains(&kind) {
                check(cupti, "CUPTI refuses to record kernels", code)?;
            }
        }
        Ok(())
    }

    fn calls(&self, on: bool) {
        let status = self.session.status(Collector::Launches);
        match self.session.settings.gpu_detail {
            GpuDetail::Off | GpuDetail::Kernel => status.set(State::Off, "not asked for (--gpu-detail kernel)"),
            GpuDetail::Launch => {
                let refused = self.callbacks(calls::CHOSEN, on);
                if on && refused {
                    status.set(State::Failed, "CUPTI refuses callbacks for the launches");
                } else if on {
                    status.set(State::On, "");
                }
            }
            GpuDetail::All => {
                for domain in [calls::RUNTIME, calls::DRIVER] {
                    if let Some(enable) = self.cupti.enable_domain {
                        // SAFETY: CUPTI's own function.
                        unsafe { enable(u32::from(on), self.subscriber.load(Ordering::Relaxed), domain) };
                    }
                }
                status.set(State::On, "every call");
            }
        }
    }

    fn records_calls(&self) -> bool {
        matches!(self.session.settings.gpu_detail, GpuDetail::Launch | GpuDetail::All)
    }

    /// From now on, or no longer. Calls call back for the beats too, and for the question whether they do.
    fn record_calls(&self, on: bool) {
        launches::RECORDED.store(on && self.records_calls(), Ordering::Relaxed);
    }

    /// True when CUPTI refused all of them; single ones are of another version.
    fn callbacks(&self, chosen: &[(u32, &[u32])], on: bool) -> bool {
        let Some(enable) = self.cupti.enable_callback else { return true };
        let subscriber = self.subscriber.load(Ordering::Relaxed);
        let mut taken = 0;
        for (domain, ids) in chosen {
            for id in *ids {
                // SAFETY: CUPTI's own function; ids that it does not know it refuses.
                taken += u32::from(unsafe { enable(u32::from(on), subscriber, *domain, *id) } == SUCCESS);
            }
        }
        taken == 0
    }

    /// Begins or ends a window of the overhead budget.
    pub fn switch(&self, recording: bool) {
        if !recording {
            recorded::turn(false);
        }
        self.record_calls(recording);
        let _ = self.kinds(recording);
        self.calls(recording);
        if recording {
            recorded::turn(true);
        } else {
            // The beats go on: by them the cost is told.
            self.callbacks(calls::BEATS, true);
        }
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

    /// Whether CUPTI still knows us: asked by switching a callback on, of a call that every version has.
    pub fn is_subscribed(&self) -> bool {
        !self.subscriber.load(Ordering::Relaxed).is_null()
            && !self.callbacks(&[(calls::RUNTIME, calls::RUNTIME_DEVICE_SYNCHRONIZE)], true)
    }

    /// Versions of before 12.6 count up to 23.
    pub fn is_old(&self) -> bool {
        self.number < 24
    }
}

/// Recording ends in a program that goes on: hands over what there is. It may begin again.
pub fn stop() {
    let current = CURRENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    if let Some(collecting) = current.filter(|collecting| collecting.pid == std::process::id()) {
        stop_worker();
        collecting.disable();
    }
}

/// Another profiler wants CUPTI: hands over what there is and lets go.
pub fn release(who: &str) {
    let current = CURRENT.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
    let Some(collecting) = current.filter(|collecting| collecting.pid == std::process::id()) else { return };
    stop_worker();
    collecting.disable();
    let why = format!("{who} was started and has CUPTI: what the GPU does after that is not in this recording");
    collecting.session.status(Collector::Gpu).set(State::Failed, &why);
    say(collecting.session, &why);
}

/// The program ends in the ordinary way: what CUPTI still has goes into the ring. Bounded in time, whatever CUPTI does.
extern "C" fn goodbye() {
    if OWNER.load(Ordering::Relaxed) == std::process::id() {
        stop_worker();
    }
}

fn stop_worker() {
    worker::STOP.store(true, Ordering::Release);
    buffers::wake();
    let since = Instant::now();
    while worker::PHASE.load(Ordering::Acquire) == 1 && since.elapsed() < GOODBYE {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A line for the report.
pub fn say(session: &'static Session, text: &str) {
    write(session, Kind::Note, text);
}

/// A moment on the timeline.
fn mark(session: &'static Session, text: &str) {
    write(session, Kind::Mark, text);
}

fn write(session: &'static Session, kind: Kind, text: &str) {
    let Some(writing) = thread::writing(session, Collector::Gpu) else { return };
    let (time, name) = (trace::clock::now(), session.intern(text));
    writing.push(Event { time, value: 0, thread: writing.tid, name, kind: kind as u16, flags: 0, extra: 0 }.to_words());
}
