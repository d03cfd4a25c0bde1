//! Blocks of PyTorch's allocators, from the allocators themselves: each tells PyTorch's profiler of every block through one function of
//! `libc10.so`, which `libc10_cuda.so` calls through a slot of its own. A function of ours stands in that slot, writes a record, and
//! goes on to PyTorch's. No Python, no C++ object, no symbol is changed, and where the slot is not found nothing is touched.
//!
//! It is here and not in the Python library because it runs in any thread, without the GIL, under the allocator's lock: here, threads
//! write at the same time. And it works for programs without Python.

mod hooks;
mod sampling;
mod slots;
mod stack_names;
mod stacks;

use crate::{gpu, recording};
use slots::Slot;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};
use trace::codes::{NoteCode, Reason, ReasonCode};
use trace::status::{Collector, State};
use workload::guard;
use workload::settings::{GpuDetail, Settings};

/// Whose blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    Gpu,
    /// Those of the CPU's allocator, too.
    All,
}

/// Blocks of devices: `c10::reportMemoryUsageToProfiler(void*, int64_t, size_t, size_t, c10::Device)`. The same since PyTorch 1.10.
const REPORT: &str = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";
/// A request that failed: `c10::reportOutOfMemoryToProfiler(int64_t, size_t, size_t, c10::Device)`. Older ones do not say.
const OUT_OF_MEMORY: &str = "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE";
/// Blocks of the CPU, which come to the profiler only while it runs: `c10::ProfiledCPUMemoryReporter::New(void*, size_t)` and `Delete(void*)`.
const CPU_NEW: &str = "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm";
const CPU_DELETE: &str = "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv";

/// The libraries that call these, and no others: reading the tables of all of PyTorch's takes long.
const GPU_LIBRARY: &str = "libc10_cuda.so";
const CPU_LIBRARY: &str = "libc10.so";

/// Longest wait at the end of the program.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The slots that are ours.
static SLOTS: Mutex<Vec<Slot>> = Mutex::new(Vec::new());
/// The process that has them: a forked child has them too, and says nothing about its parent's.
static OWNER: AtomicU32 = AtomicU32::new(0);

fn slots() -> MutexGuard<'static, Vec<Slot>> {
    SLOTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this recording asks for. None: nothing.
fn asked(settings: &Settings) -> Option<Whose> {
    match settings.recording.memory_events.as_str() {
        "all" => Some(Whose::All),
        "gpu" => Some(Whose::Gpu),
        _ => None,
    }
}

/// As [`start`], where the program has used no device before.
pub fn start_with_device() {
    hooks::nothing_reserved();
    start();
}

/// Puts our functions into the slots of every copy of PyTorch that is loaded by now and has not got them. Any number of times.
pub fn start() {
    let Some(settings) = Settings::from_environment() else { return };
    let Some(whose) = asked(&settings) else { return };
    let mut found = Vec::new();
    // Many have a PyTorch for CUDA and no CUDA: nothing is begun there.
    if settings.recording.gpu_detail != GpuDetail::Off && gpu::has_driver() {
        found.extend(slots::find(GPU_LIBRARY, &[REPORT], &[OUT_OF_MEMORY]));
    }
    if whose == Whose::All {
        found.extend(slots::find(CPU_LIBRARY, &[CPU_NEW, CPU_DELETE], &[]));
    }
    if found.is_empty() {
        return; // No PyTorch, one without CUDA, or not loaded yet.
    }
    let Ok(session) = recording::session() else { return };
    let status = session.status(Collector::Blocks);
    let mut mine = slots();
    stacks::begin(session);
    let mut refused = None;
    let found: Vec<Slot> = found.into_iter().flat_map(|library| library.slots(&mut refused)).collect();
    for slot in found {
        if mine.iter().any(|known| known.at == slot.at) {
            continue;
        }
        match hooks::put_into(slot) {
            Ok(slot) => mine.push(slot),
            Err(why) => refused = Some(why),
        }
    }
    if let Some(why) = refused {
        status.set(State::Failed, &why.message());
        gpu::say(session, &why.note(NoteCode::NoMemoryEvents));
    } else if status.state() != State::Failed {
        status.set(State::On, if whose == Whose::All { "GPU and CPU" } else { "GPU" });
    }
    drop(mine);
    OWNER.store(std::process::id(), Ordering::Relaxed);
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function takes nothing and returns.
        unsafe { libc::atexit(at_exit) };
    });
}

/// In a forked child, which has its parent's slots: a segment of its own for what it allocates. Not for a GPU, which it cannot use.
pub fn after_fork() {
    if Settings::from_environment().and_then(|settings| asked(&settings)) != Some(Whose::All) {
        return;
    }
    // Another thread of the parent may have held it, and is not here to let go.
    if SLOTS.try_lock().is_ok_and(|mine| mine.is_empty()) {
        return;
    }
    if let Ok(session) = recording::session() {
        OWNER.store(std::process::id(), Ordering::Relaxed);
        stacks::begin(session);
        session.status(Collector::Blocks).set(State::On, "");
    }
}

/// Whether our functions are still where we put them; said once if they are not. Asked when recording ends.
pub fn check() {
    static SAID: Once = Once::new();
    if OWNER.load(Ordering::Relaxed) != std::process::id() {
        return;
    }
    // Whoever holds it puts functions in just now.
    let Ok(mine) = SLOTS.try_lock() else { return };
    if mine.iter().all(Slot::is_ours) {
        return;
    }
    SAID.call_once(|| {
        let Some(session) = workload::session::current() else { return };
        let why = Reason::new(ReasonCode::HookRemoved);
        session.status(Collector::Blocks).set(State::Failed, &why.message());
        // A thread that ends has given its ring back: another one says it.
        static DONE: AtomicBool = AtomicBool::new(false);
        let note = why.note(NoteCode::NoMemoryEvents);
        let say = move || {
            guard::guarded(Collector::Blocks, (), || {
                gpu::say(session, &note);
            });
            DONE.store(true, Ordering::Release);
        };
        if gpu::quiet::thread("inferscope-note", say).is_ok() {
            let since = Instant::now();
            while !DONE.load(Ordering::Acquire) && since.elapsed() < EXIT_TIMEOUT {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    });
}

extern "C" fn at_exit() {
    guard::guarded(Collector::Blocks, (), check);
}
