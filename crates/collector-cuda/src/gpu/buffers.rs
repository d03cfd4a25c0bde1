//! The buffers that CUPTI fills: a bounded pool, present in memory before it is needed, handed out and taken back without a
//! system call. A full one waits in a queue for the decoder; when none is left CUPTI drops records, and they are counted.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Over two thousand kernels. CUPTI takes one buffer for each launching thread.
pub const BYTES: usize = 512 << 10;
/// 48 MB at most, however far the decoder falls behind.
pub const MOST: usize = 96;
/// 8 MB from the start: enough for a few launching threads.
const FIRST: usize = 16;
/// So many are kept ready.
const READY: usize = 6;

/// Reserved, and in no memory yet: whoever is the first in it pays for its pages.
const UNTOUCHED: u8 = 0;
const FREE: u8 = 1;
const LENT: u8 = 2;
const FULL: u8 = 3;
/// The decoder's thread brings it into memory.
const COMING: u8 = 4;

static BASE: AtomicUsize = AtomicUsize::new(0);
static STATES: [AtomicU8; MOST] = [const { AtomicU8::new(UNTOUCHED) }; MOST];
/// Which recording of this process is on, and in which one each buffer was handed out.
static RECORDING: AtomicU32 = AtomicU32::new(0);
static LENT_IN: [AtomicU32; MOST] = [const { AtomicU32::new(0) }; MOST];
static QUEUE: Mutex<VecDeque<Full>> = Mutex::new(VecDeque::new());
static FILLED: Condvar = Condvar::new();
/// Requests that found no buffer.
pub static STARVED: AtomicU64 = AtomicU64::new(0);
/// Buffers that came back twice, or that were never ours.
pub static STRANGE: AtomicU64 = AtomicU64::new(0);
/// Pieces of work that came when the recording they are of was over, and the next one on.
pub static EARLY: AtomicU64 = AtomicU64::new(0);

/// A buffer that CUPTI gave back.
pub struct Full {
    index: usize,
    pub valid: usize,
    pub context: usize,
    pub stream: u32,
}

impl Full {
    /// Handed out in an earlier recording: what is in it may be of that one.
    pub fn is_late(&self) -> bool {
        LENT_IN[self.index].load(Ordering::Relaxed) != RECORDING.load(Ordering::Relaxed)
    }

    pub fn start(&self) -> *mut u8 {
        (BASE.load(Ordering::Relaxed) + self.index * BYTES) as *mut u8
    }

    /// Zeroed here, off the program's threads: CUPTI is told to expect that.
    pub fn give_back(self) {
        // SAFETY: a FULL buffer is the decoder's alone.
        unsafe { std::ptr::write_bytes(self.start(), 0, self.valid) };
        STATES[self.index].store(FREE, Ordering::Release);
    }
}

/// Before each recording: reserves the pool. False when there is no memory for it.
pub fn prepare() -> bool {
    RECORDING.fetch_add(1, Ordering::Relaxed);
    if BASE.load(Ordering::Acquire) != 0 {
        return true;
    }
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping of our own.
    let base =
        unsafe { libc::mmap(std::ptr::null_mut(), MOST * BYTES, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if base == libc::MAP_FAILED {
        return false;
    }
    BASE.store(base as usize, Ordering::Release);
    bring(FIRST);
    true
}

/// Takes a buffer in one state over into another.
fn take(from: u8, to: u8) -> Option<usize> {
    STATES.iter().position(|state| state.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok())
}

/// Touches some more buffers, so that the program's threads meet no page fault in them.
fn bring(count: usize) {
    for _ in 0..count {
        let Some(index) = take(UNTOUCHED, COMING) else { return };
        let start = BASE.load(Ordering::Relaxed) + index * BYTES;
        for page in (0..BYTES).step_by(4096) {
            // SAFETY: inside our mapping, and ours alone while it is COMING.
            unsafe { ((start + page) as *mut u8).write_volatile(0) };
        }
        STATES[index].store(FREE, Ordering::Release);
    }
}

/// For the decoder, between two looks: keeps some buffers ready.
pub fn keep_ready() {
    if STATES.iter().filter(|state| state.load(Ordering::Relaxed) == FREE).count() < READY {
        bring(READY);
    }
}

/// CUPTI wants a buffer; on a thread of the program.
///
/// # Safety
/// The pointers are CUPTI's.
pub unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    // In a burst the decoder may not have brought more yet: page faults are better than no records.
    let found = take(FREE, LENT).or_else(|| take(UNTOUCHED, LENT));
    let (start, bytes) = match found {
        Some(index) => {
            LENT_IN[index].store(RECORDING.load(Ordering::Relaxed), Ordering::Relaxed);
            (BASE.load(Ordering::Relaxed) + index * BYTES, BYTES)
        }
        None => {
            STARVED.fetch_add(1, Ordering::Relaxed);
            (0, 0)
        }
    };
    // SAFETY: by the caller's promise. No limit on records: as many as fit.
    unsafe {
        *buffer = start as *mut u8;
        *size = bytes;
        *most_records = 0;
    }
}

/// CUPTI has filled a buffer; on a thread of CUPTI's or of the program.
///
/// # Safety
/// Called by CUPTI.
pub unsafe extern "C" fn completed(context: *mut c_void, stream: u32, buffer: *mut u8, _size: usize, valid: usize) {
    let offset = (buffer as usize).wrapping_sub(BASE.load(Ordering::Relaxed));
    let index = offset / BYTES;
    let ours = offset.is_multiple_of(BYTES) && index < MOST;
    let lent = ours && STATES[index].compare_exchange(LENT, FULL, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if !lent {
        STRANGE.fetch_add(1, Ordering::Relaxed);
        return;
    }
    queue().push_back(Full { index, valid: valid.min(BYTES), context: context as usize, stream });
    FILLED.notify_one();
}

fn queue() -> MutexGuard<'static, VecDeque<Full>> {
    QUEUE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The next full buffer, waited for a while.
pub fn next(timeout: Duration) -> Option<Full> {
    let mut queue = queue();
    if queue.is_empty() && !timeout.is_zero() {
        queue = FILLED.wait_timeout(queue, timeout).map_or_else(|poisoned| poisoned.into_inner().0, |woken| woken.0);
    }
    queue.pop_front()
}

/// Lets the decoder look up at once.
pub fn wake() {
    FILLED.notify_one();
}
