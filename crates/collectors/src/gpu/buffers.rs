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
const READY: u32 = 6;

const FREE: u8 = 0;
const LENT: u8 = 1;
const FULL: u8 = 2;

static BASE: AtomicUsize = AtomicUsize::new(0);
static STATES: [AtomicU8; MOST] = [const { AtomicU8::new(FREE) }; MOST];
/// Buffers that are in memory.
static PRESENT: AtomicU32 = AtomicU32::new(0);
static QUEUE: Mutex<VecDeque<Full>> = Mutex::new(VecDeque::new());
static FILLED: Condvar = Condvar::new();
/// Requests that found no buffer.
pub static STARVED: AtomicU64 = AtomicU64::new(0);
/// Buffers that came back twice, or that were never ours.
pub static STRANGE: AtomicU64 = AtomicU64::new(0);

/// A buffer that CUPTI gave back.
pub struct Full {
    index: usize,
    pub valid: usize,
    pub context: usize,
    pub stream: u32,
}

impl Full {
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

/// Reserves the pool. False when there is no memory for it.
pub fn prepare() -> bool {
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

/// Touches the next buffers, so that the program's threads meet no page fault in them.
fn bring(count: usize) {
    let present = PRESENT.load(Ordering::Relaxed) as usize;
    let more = count.min(MOST - present);
    let start = BASE.load(Ordering::Relaxed) + present * BYTES;
    for page in (0..more * BYTES).step_by(4096) {
        // SAFETY: inside our mapping, and not handed out yet.
        unsafe { ((start + page) as *mut u8).write_volatile(0) };
    }
    PRESENT.store((present + more) as u32, Ordering::Release);
}

/// For the decoder, between two looks: keeps some buffers ready.
pub fn keep_ready() {
    let present = PRESENT.load(Ordering::Relaxed) as usize;
    let free = STATES[..present].iter().filter(|state| state.load(Ordering::Relaxed) == FREE).count();
    if free < READY as usize && present < MOST {
        bring(READY as usize);
    }
}

/// CUPTI wants a buffer; on a thread of the program.
///
/// # Safety
/// The pointers are CUPTI's.
pub unsafe extern "C" fn requested(buffer: *mut *mut u8, size: *mut usize, most_records: *mut usize) {
    let present = PRESENT.load(Ordering::Acquire) as usize;
    let found = STATES[..present]
        .iter()
        .position(|state| state.compare_exchange(FREE, LENT, Ordering::Acquire, Ordering::Relaxed).is_ok());
    let (start, bytes) = match found {
        Some(index) => (BASE.load(Ordering::Relaxed) + index * BYTES, BYTES),
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
pub fn next(patience: Duration) -> Option<Full> {
    let mut queue = queue();
    if queue.is_empty() && !patience.is_zero() {
        queue = FILLED.wait_timeout(queue, patience).map_or_else(|poisoned| poisoned.into_inner().0, |woken| woken.0);
    }
    queue.pop_front()
}

/// Lets the decoder look up at once.
pub fn wake() {
    FILLED.notify_one();
}
