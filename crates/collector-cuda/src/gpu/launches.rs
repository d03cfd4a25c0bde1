//! The host side of every launch: CUPTI calls back at the begin and the end of each chosen CUDA call, on the thread that makes
//! it, and the call goes into that thread's ring. A driver call inside a runtime call is the same launch and is left out.
//! What a call allocated, freed or waited for follows it (`effects`), what it did with memory also where calls are not recorded.

use super::api::{CallbackData, Cupti};
use super::calls::{CAPTURE, CAPTURE_END, DRIVER, LAUNCH, MOST_IDS, NO_WORK, PROGRESS_CALLS, RUNTIME, WORK};
use super::{effects, parameters};
use crate::thread;
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use trace::clock::now;
use trace::codes::{Note, NoteCode};
use trace::event::{Event, Kind};
use trace::status::Collector;
use workload::session::Session;
use workload::{cost, guard, session};

/// By domain and id what a call counts as, and above it the number of its name; 0: not asked for yet. One load, for what is
/// known of a call is rarely in the nearest cache.
static KNOWN: [[AtomicU64; MOST_IDS]; 2] = [const { [const { AtomicU64::new(0) }; MOST_IDS] }; 2];
const PROGRESS: u64 = 1;
const GIVES_WORK: u64 = 2;
const CAPTURES: u64 = 4;
/// Its parameters say something.
const TELLS: u64 = 8;
const LAUNCHES: u64 = 16;
const ENDS_CAPTURE: u64 = 32;
/// There was no more room for its name.
const NAMELESS: u64 = 64;
/// It does something with memory.
const OF_MEMORY: u64 = 128;
const NAME_AT: u32 = 32;

/// Odd while calls are recorded, not only counted as progress calls; above that, how often this changed: a call that was under way
/// then may never call back at its end.
static EPOCH: AtomicU32 = AtomicU32::new(0);
const RECORDED: u32 = 1;
/// Waits and graph launches so far: by these the program's progress is told.
pub static PROGRESS_CALLS_SEEN: AtomicU64 = AtomicU64::new(0);
/// When the last of them was, in nanoseconds of CLOCK_MONOTONIC.
pub static LAST_PROGRESS_CALL: AtomicU64 = AtomicU64::new(0);
/// The correlation of the last recorded call that gave a device something to do: work has to be reported for it.
pub static GIVEN: AtomicU32 = AtomicU32::new(0);
/// Calls so far that have to do with capturing graphs: what is given meanwhile is not done.
pub static CAPTURED: AtomicU64 = AtomicU64::new(0);
/// Whether a graph was captured while CUPTI records, and kernels launched one by one since then, as far as launches had
/// callbacks. Both are of the process, whatever recording comes next: what CUPTI keeps, it keeps (`kept`).
static HAS_CAPTURED: AtomicBool = AtomicBool::new(false);
pub static AFTER_CAPTURE: AtomicU64 = AtomicU64::new(0);

/// Calls that CUDA refused, of those that give work or wait for it; what the first one got, and its name.
static FAILED: AtomicU64 = AtomicU64::new(0);
static FIRST_ERROR: AtomicU32 = AtomicU32::new(0);
static FIRST_FAILED: AtomicPtr<c_char> = AtomicPtr::new(std::ptr::null_mut());
/// Counts up with every recording: calls of memory that a thread was in when another ended do not count.
static RECORDINGS: AtomicU32 = AtomicU32::new(0);
/// In what is kept from begin to end: a part of a call of the runtime, of which only what it did with memory counts.
const PART: u64 = 1 << 63;

/// One call in this many is timed, for our own cost.
const TIMED: u32 = 64;

/// What a thread remembers between callbacks.
struct Thread {
    /// Calls of the runtime that it is in, and the epoch in which that is so: what the driver is asked for meanwhile is a
    /// part of them.
    inside: Cell<u32>,
    epoch: Cell<u32>,
    /// Of these, those that say what they do with memory, and the recording in which that is so. They always call back.
    of_memory: Cell<(u32, u32)>,
    count: Cell<u32>,
    /// What the end of the next call will need and the program's own work has driven out of the caches by then.
    needed: Cell<[*const u8; 4]>,
}

thread_local! {
    // The first call finds a ring and a name, which no later one does: it is not the one that is timed.
    static THREAD: Thread = const {
        Thread {
            inside: Cell::new(0),
            epoch: Cell::new(0),
            of_memory: Cell::new((0, 0)),
            count: Cell::new(1),
            needed: Cell::new([std::ptr::null(); 4]),
        }
    };
}

/// Before the first call of a recording: numbers of names belong to one segment.
pub fn prepare(cupti: &'static Cupti, session: &Session) {
    FAILED.store(0, Ordering::Relaxed);
    FIRST_ERROR.store(0, Ordering::Relaxed);
    RECORDINGS.fetch_add(1, Ordering::Relaxed);
    effects::prepare(cupti, session);
    for (row, domain) in KNOWN.iter().zip([DRIVER, RUNTIME]) {
        for (known, id) in row.iter().zip(0..) {
            let tells = if parameters::is_read(domain, id) { TELLS } else { 0 };
            let of_memory = if parameters::is_of_memory(domain, id) { OF_MEMORY } else { 0 };
            known.store(tells | of_memory, Ordering::Relaxed);
        }
    }
    let sorts = [
        (PROGRESS_CALLS, PROGRESS),
        (WORK, GIVES_WORK),
        (CAPTURE, CAPTURES),
        (LAUNCH, LAUNCHES),
        (CAPTURE_END, ENDS_CAPTURE),
    ];
    for (calls, sort) in sorts {
        for (domain, ids) in calls {
            for id in *ids {
                KNOWN[*domain as usize - 1][*id as usize].fetch_or(sort, Ordering::Relaxed);
            }
        }
    }
    for (domain, ids) in NO_WORK {
        for id in *ids {
            KNOWN[*domain as usize - 1][*id as usize].fetch_and(!GIVES_WORK, Ordering::Relaxed);
        }
    }
}

/// Calls are recorded from now on, or no longer. What was given before is not asked for any more.
pub fn record(on: bool) {
    GIVEN.store(0, Ordering::Relaxed);
    let change = |epoch: u32| Some(((epoch | RECORDED).wrapping_add(1)) | u32::from(on));
    let _ = EPOCH.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
}

/// What CUDA refused, in words.
pub fn failures() -> Option<Note> {
    let count = FAILED.load(Ordering::Relaxed);
    let name = FIRST_FAILED.load(Ordering::Acquire);
    if count == 0 || name.is_null() {
        return None;
    }
    // SAFETY: CUPTI's constant.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    let (name, code) = (plain(&name), FIRST_ERROR.load(Ordering::Relaxed));
    Some(Note::new(NoteCode::CudaCallsRefused).with(count).with(name).with(code))
}

/// CUPTI's callback.
///
/// # Safety
/// Called by CUPTI, with the data that belongs to the domain.
pub unsafe extern "C" fn called(_: *mut c_void, domain: u32, id: u32, data: *const c_void) {
    if (domain != DRIVER && domain != RUNTIME) || data.is_null() || id as usize >= MOST_IDS {
        return;
    }
    // SAFETY: the data of these domains is a CallbackData.
    let data = unsafe { &*data.cast::<CallbackData>() };
    guard::guarded(Collector::Launches, (), || {
        if data.site == 0 { begin(domain, id, data) } else { end(domain, id, data) }
    });
}

fn keep(data: &CallbackData, value: u64) {
    if !data.keep.is_null() {
        // SAFETY: CUPTI's cell for this call, ours from its begin to its end.
        unsafe { *data.keep = value };
    }
}

#[inline]
fn begin(domain: u32, id: u32, data: &CallbackData) {
    THREAD.with(|thread| {
        let epoch = EPOCH.load(Ordering::Relaxed);
        let inside = if thread.epoch.replace(epoch) == epoch { thread.inside.get() } else { 0 };
        thread.inside.set(inside + u32::from(domain == RUNTIME));
        if parameters::is_of_memory(domain, id) {
            return begin_of_memory(thread, domain, inside, data);
        }
        if domain == DRIVER && inside > 0 {
            return keep(data, 0);
        }
        // While CUDA does the call, which takes microseconds, they come back.
        thread.needed.get().into_iter().for_each(fetch);
        fetch((&raw const KNOWN[domain as usize - 1][id as usize]).cast());
        keep(data, now());
    });
}

/// A call of the driver inside one of the runtime that says the same is a part of it; inside any other, what it does counts.
#[cold]
fn begin_of_memory(thread: &Thread, domain: u32, inside: u32, data: &CallbackData) {
    let recording = RECORDINGS.load(Ordering::Relaxed);
    let (of, depth) = thread.of_memory.get();
    let depth = if of == recording { depth } else { 0 };
    thread.of_memory.set((recording, depth + u32::from(domain == RUNTIME)));
    match (domain, depth, inside) {
        (DRIVER, 1.., _) => keep(data, 0),
        (DRIVER, 0, 1..) => keep(data, now() | PART),
        _ => keep(data, now()),
    }
}

/// Brings a line of memory near without waiting for it.
#[inline(always)]
fn fetch(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_ET0>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

#[inline]
fn end(domain: u32, id: u32, data: &CallbackData) {
    // SAFETY: as in `keep`.
    let kept = if data.keep.is_null() { 0 } else { unsafe { *data.keep } };
    if kept == 0 {
        return; // Part of another call, or its begin was before we came.
    }
    let (start, now) = (kept & !PART, now());
    let count = THREAD.with(|thread| {
        if domain == RUNTIME {
            thread.inside.set(thread.inside.get().saturating_sub(1));
        }
        thread.count.replace(thread.count.get().wrapping_add(1))
    });
    let cell = &KNOWN[domain as usize - 1][id as usize];
    let known = cell.load(Ordering::Relaxed);
    let recorded = EPOCH.load(Ordering::Relaxed) & RECORDED != 0;
    if known & (PROGRESS | GIVES_WORK | CAPTURES) != 0 {
        notice(known, data, recorded);
    }
    if known & OF_MEMORY != 0 && domain == RUNTIME {
        leave_memory();
    }
    let recorded = recorded && kept & PART == 0;
    if start > now || !(recorded || known & OF_MEMORY != 0) {
        return;
    }
    let Some(session) = session::current() else { return };
    let name = match (known >> NAME_AT) as u32 {
        0 if known & NAMELESS == 0 => name(cell, id, data, session),
        name => name,
    };
    let Some(writing) = thread::writing(session, Collector::Launches) else { return };
    let event = Event {
        time: start,
        value: now - start,
        thread: writing.tid,
        name: trace::NameId(name),
        kind: Kind::ApiCall as u16,
        flags: 0,
        extra: data.correlation,
    };
    if recorded {
        writing.push(event.to_words());
    }
    let [slot, head] = writing.ring.writer.upcoming();
    let needed = [slot, head, std::ptr::from_mut(writing).cast_const().cast(), session.wanted_at()];
    THREAD.with(|thread| thread.needed.set(needed));
    if known & TELLS != 0 {
        effects::tell(writing, domain, id, data, &event);
    }
    if count.is_multiple_of(TIMED) {
        // Its begin cost about as much as its end.
        cost::add(session.status(Collector::Launches), now, 2 * u64::from(TIMED));
    }
}

#[cold]
fn leave_memory() {
    THREAD.with(|thread| {
        let (recording, depth) = thread.of_memory.get();
        thread.of_memory.set((recording, depth.saturating_sub(1)));
    });
}

/// Counts what the worker goes by.
#[inline]
fn notice(known: u64, data: &CallbackData, recorded: bool) {
    let code = data.code();
    if code != 0 {
        return refused(known, data, code);
    }
    if known & PROGRESS != 0 {
        PROGRESS_CALLS_SEEN.fetch_add(1, Ordering::Relaxed);
        LAST_PROGRESS_CALL.store(trace::clock::monotonic().0, Ordering::Relaxed);
    }
    if known & GIVES_WORK != 0 {
        if recorded {
            GIVEN.store(data.correlation, Ordering::Relaxed);
        }
        // Most programs capture nothing, and pay for a look.
        if known & (LAUNCHES | PROGRESS) == LAUNCHES && HAS_CAPTURED.load(Ordering::Relaxed) {
            AFTER_CAPTURE.fetch_add(1, Ordering::Relaxed);
        }
    } else if known & CAPTURES != 0 {
        CAPTURED.fetch_add(1, Ordering::Relaxed);
        if known & ENDS_CAPTURE != 0 {
            HAS_CAPTURED.store(true, Ordering::Relaxed);
        }
    }
}

#[cold]
fn refused(known: u64, data: &CallbackData, code: u32) {
    if known & (PROGRESS | GIVES_WORK) != 0 && FAILED.fetch_add(1, Ordering::Relaxed) == 0 {
        FIRST_ERROR.store(code, Ordering::Relaxed);
        FIRST_FAILED.store(data.function.cast_mut(), Ordering::Release);
    }
}

/// The function's name as people write it: no version and no stream suffix.
#[cold]
fn name(cell: &AtomicU64, id: u32, data: &CallbackData, session: &Session) -> u32 {
    let text = if data.function.is_null() {
        format!("CUDA call {id}")
    } else {
        // SAFETY: CUPTI's constant.
        unsafe { CStr::from_ptr(data.function) }.to_string_lossy().into_owned()
    };
    let interned = session.intern(plain(&text));
    if interned == trace::NameId::INLINE {
        cell.fetch_or(NAMELESS, Ordering::Relaxed);
        return 0;
    }
    cell.fetch_or(u64::from(interned.0) << NAME_AT, Ordering::Relaxed);
    interned.0
}

/// `cudaLaunchKernel` of `cudaLaunchKernel_ptsz_v7000`.
fn plain(name: &str) -> &str {
    let version = name.rfind("_v").filter(|at| {
        let digits = &name[at + 2..];
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    let name = version.map_or(name, |at| &name[..at]);
    name.strip_suffix("_ptsz").or_else(|| name.strip_suffix("_ptds")).unwrap_or(name)
}
