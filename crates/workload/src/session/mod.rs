//! The recording of this process: its segment and its names. There is at most one at a time; collectors ask for it at
//! every event, and find none when nobody records, when the recorder has left, or right after a fork.

pub mod thread;

use crate::library::Library;
use crate::settings::Settings;
use crate::{cost, place};
use std::fs;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, Once};
use trace::names::NameWriter;
use trace::segment::Identity;
use trace::stack_frame::{self, StackFrame};
use trace::status::{Collector, CollectorStatus, State};
use trace::{NameId, Segment};

pub struct Session {
    pub segment: &'static Segment,
    pub settings: Settings,
    pub library: Library,
    /// Differs between sessions of one process and its forks: what was remembered for another is void.
    pub generation: u32,
    wanted: &'static AtomicU32,
    who: Identity,
    names: Mutex<NameWriter<'static>>,
}

// Sessions are never freed: a thread may be between loading this pointer and using it, and there are few.
static CURRENT: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());
static LAST: AtomicPtr<Session> = AtomicPtr::new(ptr::null_mut());
static FORKED: AtomicBool = AtomicBool::new(false);
static RECORDER: AtomicU32 = AtomicU32::new(0);
static GENERATIONS: AtomicU32 = AtomicU32::new(0);

/// The session, if this process is being recorded and the recorder still wants records.
#[inline(always)]
pub fn current() -> Option<&'static Session> {
    // SAFETY: null, or leaked by `start`.
    let session = unsafe { CURRENT.load(Ordering::Relaxed).as_ref() }?;
    (session.wanted.load(Ordering::Relaxed) != 0).then_some(session)
}

impl Session {
    /// What [`current`] looks at behind the session itself.
    pub fn wanted_at(&self) -> *const u8 {
        ptr::from_ref(self.wanted).cast()
    }

    pub fn status(&self, collector: Collector) -> &CollectorStatus {
        self.segment.status(collector)
    }

    /// The number of a name, `INLINE` when there is no more room. Callers remember it.
    pub fn intern(&self, text: &str) -> NameId {
        let text = text.trim_start_matches(stack_frame::MARK);
        self.names.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).intern(text)
    }

    /// The same for texts that a program makes up as it goes: they leave room for the names of what it does.
    pub fn intern_message(&self, text: &str) -> NameId {
        self.intern_any(text.trim_start_matches(stack_frame::MARK))
    }

    /// The same for a frame of a stack, which alone is marked as one.
    pub fn intern_frame(&self, frame: &StackFrame) -> NameId {
        let mut text = String::new();
        frame.write(&mut text);
        self.intern_any(&text)
    }

    fn intern_any(&self, text: &str) -> NameId {
        let most = self.segment.names_bytes();
        self.names.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).intern_message(text, most)
    }
}

/// Begins, or goes on with, the recording that `settings` describe. The error says why it cannot be.
pub fn start(
    library: Library,
    settings: Settings,
    program: String,
    python: String,
) -> Result<&'static Session, String> {
    static HANDLER: Once = Once::new();
    // SAFETY: the handler only stores to atomics, as a handler between fork and return must.
    HANDLER.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
    let pid = std::process::id();
    // SAFETY: null, or leaked below.
    if let Some(last) = unsafe { LAST.load(Ordering::Relaxed).as_ref() } {
        let same = last.who.pid == pid && last.settings.segments == settings.segments;
        if same && last.wanted.load(Ordering::Relaxed) != 0 && last.segment.path().exists() {
            thread::forget_open_calls();
            activate(last);
            return Ok(last);
        }
    }
    // SAFETY: plain system call.
    let parent = unsafe { libc::getppid() } as u32;
    let who = Identity { pid, parent, start_ticks: start_ticks(), program, python, place: place::of_environment() };
    create(library, settings, who)
}

fn create(library: Library, settings: Settings, who: Identity) -> Result<&'static Session, String> {
    let segment = Segment::create(&settings.segments, library.segment_bytes(settings.recording.trace_size_mb), &who)
        .map_err(|error| format!("{error}; free some space there or lower INFERSCOPE_TRACE_SIZE_MB"))?;
    cost::begin();
    let names = NameWriter::new(|bytes| segment.names(bytes)).ok_or("no room for the segment's names")?;
    if let Some(recorder) = settings.recorder.or(Some(RECORDER.load(Ordering::Relaxed)).filter(|pid| *pid != 0)) {
        allow(recorder);
    }
    let session = Box::leak(Box::new(Session {
        segment,
        settings,
        library,
        generation: GENERATIONS.fetch_add(1, Ordering::Relaxed) + 1,
        wanted: segment.wanted_cell(),
        who,
        names: Mutex::new(names),
    }));
    if let Some(collector) = library.always_on() {
        session.status(collector).set(State::On, "");
    }
    activate(session);
    Ok(session)
}

/// Lets the recorder read this process's memory from outside, and that of its forks to come.
pub fn allow(recorder: u32) {
    RECORDER.store(recorder, Ordering::Relaxed);
    // SAFETY: plain system call; where there is no Yama it fails and changes nothing.
    unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::c_ulong::from(recorder), 0, 0, 0) };
}

fn activate(session: &'static Session) {
    let pointer = ptr::from_ref(session).cast_mut();
    LAST.store(pointer, Ordering::Relaxed);
    thread::forget_current();
    CURRENT.store(pointer, Ordering::Release);
}

/// Ends the recording here. Records stay in the segment for the recorder, and `start` may go on with it.
pub fn stop() {
    CURRENT.store(ptr::null_mut(), Ordering::Release);
    thread::forget_current();
}

/// The recorder has everything: the last segment's memory goes back to the machine.
pub fn discard() {
    if !CURRENT.load(Ordering::Relaxed).is_null() {
        return;
    }
    // SAFETY: null, or leaked by `create`.
    if let Some(last) = unsafe { LAST.swap(ptr::null_mut(), Ordering::Relaxed).as_ref() }
        && last.who.pid == std::process::id()
    {
        last.segment.discard();
    }
}

/// Runs in a forked child before anything else: the parent's segment is out of reach from here on.
unsafe extern "C" fn in_child() {
    if !CURRENT.swap(ptr::null_mut(), Ordering::Relaxed).is_null() {
        FORKED.store(true, Ordering::Relaxed);
    }
    thread::forked();
}

/// Gives a forked child of a recorded process a segment of its own. None when the parent was not recorded.
pub fn after_fork() -> Option<Result<&'static Session, String>> {
    if !FORKED.swap(false, Ordering::Relaxed) {
        return None;
    }
    thread::forget_parent();
    // SAFETY: null, or leaked by `create`; this memory is the child's own copy.
    let parent = unsafe { LAST.load(Ordering::Relaxed).as_ref() }?;
    let who = Identity {
        pid: std::process::id(),
        parent: parent.who.pid,
        start_ticks: start_ticks(),
        program: parent.who.program.clone(),
        python: parent.who.python.clone(),
        place: place::of_environment(),
    };
    Some(create(parent.library, parent.settings.clone(), who))
}

/// Field 22 of /proc/self/stat. The program's name stands in parentheses before it and may hold anything.
fn start_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    after_name.split_whitespace().nth(19).and_then(|field| field.parse().ok()).unwrap_or(0)
}
