//! Thread → ring. A thread claims a small ring at its first event, moves on to larger ones as it writes, and gives the last
//! one back when it ends. Finding it again costs one comparison while the same thread goes on writing, which under the GIL is
//! nearly always.

use crate::session::Session;
use crate::settings::Calls;
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use trace::segment::{OpenCalls, OwnedRing};
use trace::status::Collector;

pub mod concurrent;
mod idle;
pub mod under_gil;
mod writing;

pub use writing::{DeepCall, Writing};

/// A place for a thread's state. Places are never freed, so that the memory of the last writer never dangles; when its thread ends
/// the next new thread takes it over.
struct ThreadSlot {
    /// The thread pointer of the owner, 0 if free. Written by the owner alone.
    owner: AtomicUsize,
    next: AtomicPtr<ThreadSlot>,
    writing: UnsafeCell<Option<Writing>>,
    /// Events to let go before the next attempt, when there was no ring left.
    events_until_retry: UnsafeCell<u32>,
    /// Open calls, where the segment has no place for them.
    depth: AtomicU64,
    /// Held for a moment by whoever takes `writing` away from its thread, see [`idle`].
    locked: AtomicBool,
}

impl ThreadSlot {
    const fn new(owner: usize, next: *mut ThreadSlot) -> ThreadSlot {
        ThreadSlot {
            owner: AtomicUsize::new(owner),
            next: AtomicPtr::new(next),
            writing: UnsafeCell::new(None),
            events_until_retry: UnsafeCell::new(0),
            depth: AtomicU64::new(0),
            locked: AtomicBool::new(false),
        }
    }

    fn try_lock(&self) -> bool {
        !self.locked.swap(true, Ordering::Acquire)
    }

    /// Whoever holds it only takes a few words. False: its holder did not come with us through a fork.
    fn lock(&self) -> bool {
        (0..LOCK_ATTEMPTS).any(|_| self.try_lock() || (std::thread::yield_now(), false).1)
    }

    fn unlock(&self) {
        self.locked.store(false, Ordering::Release);
    }
}

const LOCK_ATTEMPTS: u32 = 10_000;

// SAFETY: the cells are reached by the owner alone (`owner` says who that is); the rest is atomic.
unsafe impl Sync for ThreadSlot {}

/// Threads that found no ring ask again this rarely: asking takes a lock and a walk past other threads.
const RETRY_INTERVAL: u32 = 64;

static NOBODY: ThreadSlot = ThreadSlot::new(0, ptr::null_mut());
static PLACES: AtomicPtr<ThreadSlot> = AtomicPtr::new(ptr::null_mut());
/// Raised when open calls of before are void.
static EPOCH: AtomicU32 = AtomicU32::new(0);
/// How many forks lie between the first process and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

struct Handle(*const ThreadSlot);

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: places are never freed, and this one is ours until `owner` is cleared.
        let place = unsafe { &*self.0 };
        if place.owner.load(Ordering::Relaxed) != thread_pointer() {
            return; // A fork took it away.
        }
        if !place.lock() {
            return;
        }
        // SAFETY: we are the owner, and the lock keeps out whoever looks for rings of idle threads.
        let writing = unsafe { &mut *place.writing.get() }.take();
        place.unlock();
        if let Some(writing) = writing {
            writing.give_back();
        }
        place.owner.store(0, Ordering::Release);
    }
}

thread_local! {
    static HANDLE: UnsafeCell<Option<Handle>> = const { UnsafeCell::new(None) };
}

/// A number that differs between living threads and costs one instruction.
#[inline(always)]
fn thread_pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the x86-64 ABI keeps the thread control block's own address at fs:0.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly, pure));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reading the thread pointer has no precondition.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem, pure));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        pointer = HANDLE.try_with(|handle| handle.get() as usize).unwrap_or(0);
    }
    pointer
}

/// The ring in a place, if the place is this thread's.
#[inline(always)]
fn of_owner(place: *const ThreadSlot) -> Option<&'static mut Writing> {
    // SAFETY: places are never freed.
    let place = unsafe { &*place };
    if place.owner.load(Ordering::Relaxed) == thread_pointer() {
        // SAFETY: we are the owner, and by the promise of who asks nobody of this thread has it already.
        unsafe { &mut *place.writing.get() }.as_mut()
    } else {
        None
    }
}

#[cold]
#[inline(never)]
#[allow(clippy::mut_from_ref)] // It does not come out of the session.
fn find(session: &'static Session, collector: Collector) -> Option<&'static mut Writing> {
    let place = HANDLE
        .try_with(|handle| {
            // SAFETY: the cell is this thread's, and nothing below calls back into here.
            let handle = unsafe { &mut *handle.get() };
            let known = handle.as_ref().map(|handle| handle.0);
            // SAFETY: places are never freed.
            let known = known.filter(|place| unsafe { &**place }.owner.load(Ordering::Relaxed) == thread_pointer());
            let place = known.unwrap_or_else(take_place);
            if known.is_none() {
                // An old handle names a place that a fork took away, and that may be this very one again.
                std::mem::forget(handle.replace(Handle(place)));
            }
            place
        })
        .ok();
    // SAFETY: places are never freed.
    let place = unsafe { place?.as_ref() }?;
    // SAFETY: we are the owner, and nobody of this thread has them already.
    let (writing, retry) = unsafe { (&mut *place.writing.get(), &mut *place.events_until_retry.get()) };
    let epoch = EPOCH.load(Ordering::Relaxed);
    match writing {
        Some(current) if current.generation == session.generation => {
            if current.epoch != epoch {
                current.epoch = epoch;
                current.deep.clear();
                current.calls.depth.store(0, Ordering::Relaxed);
            }
        }
        _ => {
            if let Some(old) = writing.take() {
                old.give_back();
            }
            if *retry > 0 {
                *retry -= 1;
            } else {
                // SAFETY: plain system call; glibc has a function for it only since 2.30.
                let tid = unsafe { libc::syscall(libc::SYS_gettid) } as u32;
                *writing = claim(session, tid).map(|ring| Writing {
                    ring,
                    calls: open_calls(session, tid, &place.depth),
                    tid,
                    session,
                    deep: Vec::new(),
                    generation: session.generation,
                    epoch,
                    forks: FORKS.load(Ordering::Relaxed),
                });
                *retry = if writing.is_none() { RETRY_INTERVAL } else { 0 };
            }
        }
    }
    if writing.is_none() {
        session.status(collector).dropped.fetch_add(1, Ordering::Relaxed);
    } else if session.library.holds_gil() {
        under_gil::remember(place);
    } else {
        concurrent::remember(place);
    }
    writing.as_mut()
}

/// Threads looked at for a thread that has no ring: more than have one.
const ALL: usize = 1 << 15;

/// A ring for a thread that has none: one with room, else one that its thread does not use, else one that its thread left
/// and that is not on disk.
fn claim(session: &'static Session, tid: u32) -> Option<OwnedRing> {
    let segment = session.segment;
    segment
        .claim(tid)
        .or_else(|| idle::ring(session, 1, ALL).map(|ring| ring.for_thread(tid)))
        .or_else(|| segment.claim_any(tid))
}

/// Where the calls of a thread are kept while they are open.
fn open_calls(session: &'static Session, tid: u32, depth: &'static AtomicU64) -> OpenCalls {
    let kept = session.library.keeps_open_calls() && session.settings.recording.calls != Calls::Off;
    depth.store(0, Ordering::Relaxed);
    kept.then(|| session.segment.claim_calls(tid)).flatten().unwrap_or_else(|| OpenCalls::unkept(depth))
}

/// A free place, or a new one.
fn take_place() -> *const ThreadSlot {
    let me = thread_pointer();
    let mut at = PLACES.load(Ordering::Acquire);
    // SAFETY: places are never freed and the list only grows.
    while let Some(place) = unsafe { at.as_ref() } {
        if place.owner.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            // SAFETY: we have just become the owner.
            unsafe { *place.events_until_retry.get() = 0 };
            return place;
        }
        at = place.next.load(Ordering::Relaxed);
    }
    let place = Box::leak(Box::new(ThreadSlot::new(me, PLACES.load(Ordering::Acquire))));
    loop {
        let head = place.next.load(Ordering::Relaxed);
        match PLACES.compare_exchange(head, place, Ordering::Release, Ordering::Acquire) {
            Ok(_) => return place,
            Err(other) => place.next.store(other, Ordering::Relaxed),
        }
    }
}

/// The next event of every thread finds its ring anew. What threads remember on their own is void by its generation.
pub fn forget_current() {
    under_gil::remember(&raw const NOBODY);
}

/// What was open when recording stopped is void when it goes on.
pub fn forget_open_calls() {
    EPOCH.fetch_add(1, Ordering::Relaxed);
}

/// Runs between fork and return in the child: every ring is the parent's from here on. Touches only atomics.
pub fn forked() {
    forget_current();
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// In a forked child, a little later: no place belongs to anybody. The forking thread is the only one there is.
pub fn forget_parent() {
    forget_current();
    let mut at = PLACES.load(Ordering::Acquire);
    // SAFETY: as in `take_place`.
    while let Some(place) = unsafe { at.as_ref() } {
        // SAFETY: there is no other thread.
        if let Some(writing) = unsafe { &mut *place.writing.get() }.take() {
            writing.give_back();
        }
        place.unlock();
        place.owner.store(0, Ordering::Relaxed);
        at = place.next.load(Ordering::Relaxed);
    }
}
