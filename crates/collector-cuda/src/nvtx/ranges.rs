//! Ranges that are started in one thread and may end in another: a bounded table without locks. A range's id holds its place
//! and how often that place was used, so that no id comes twice.

use super::domains::Args;
use super::names::Named;
use super::record::{Finished, write};
use crate::thread;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use trace::NameId;
use trace::clock;
use trace::status::Collector;
use workload::session::Session;

struct RangeSlot {
    /// Of the range that is open here; 0: none. Whoever takes it out has the rest.
    id: AtomicU64,
    uses: AtomicU64,
    time: AtomicU64,
    /// The session's generation above, the thread below.
    origin: AtomicU64,
    name: AtomicU32,
    /// The next free place, counted from 1.
    next: AtomicU32,
    args: AtomicPtr<Args>,
    text: AtomicPtr<Box<str>>,
}

/// Ranges open at one time. Only what is used takes memory.
const MOST: usize = 16384;
const PLACE_BITS: u32 = 16;
/// In place of a place: the range is not recorded.
const NOWHERE: u64 = (1 << PLACE_BITS) - 1;
const _: () = assert!(MOST < NOWHERE as usize);

static PLACES: [RangeSlot; MOST] = [const {
    RangeSlot {
        id: AtomicU64::new(0),
        uses: AtomicU64::new(0),
        time: AtomicU64::new(0),
        origin: AtomicU64::new(0),
        name: AtomicU32::new(0),
        next: AtomicU32::new(0),
        args: AtomicPtr::new(ptr::null_mut()),
        text: AtomicPtr::new(ptr::null_mut()),
    }
}; MOST];
/// Places that were never used begin here.
static FRESH: AtomicU32 = AtomicU32::new(0);
/// The first free place, counted from 1, and above it how often this changed: the same place may come back.
static FREE: AtomicU64 = AtomicU64::new(0);
/// Ids of ranges that are not recorded are unique too.
static UNRECORDED: AtomicU64 = AtomicU64::new(0);

/// Begins a range and gives its id.
pub fn start(session: &'static Session, name: Named, args: Option<&'static Args>) -> u64 {
    let Some(thread) = thread::writing(session, Collector::Nvtx).map(|writing| writing.tid) else {
        return unrecorded();
    };
    let Some(index) = take() else {
        session.status(Collector::Nvtx).overflow.fetch_add(1, Ordering::Relaxed);
        return unrecorded();
    };
    let place = &PLACES[index];
    let uses = place.uses.fetch_add(1, Ordering::Relaxed);
    place.origin.store(u64::from(session.generation) << 32 | u64::from(thread), Ordering::Relaxed);
    place.name.store(name.id.0, Ordering::Relaxed);
    place.args.store(args.map_or(ptr::null_mut(), |args| ptr::from_ref(args).cast_mut()), Ordering::Relaxed);
    let text = name.text.map_or(ptr::null_mut(), |text| Box::into_raw(Box::new(text)));
    place.text.store(text, Ordering::Relaxed);
    place.time.store(clock::now(), Ordering::Relaxed);
    let id = uses << PLACE_BITS | (index as u64 + 1);
    place.id.store(id, Ordering::Release);
    id
}

/// Ends it, once.
pub fn end(session: &'static Session, id: u64) {
    let now = clock::now();
    let number = id & NOWHERE;
    if number == NOWHERE {
        return;
    }
    let place = (number as usize).checked_sub(1).and_then(|index| PLACES.get(index));
    let ours = |place: &&RangeSlot| place.id.compare_exchange(id, 0, Ordering::Acquire, Ordering::Relaxed).is_ok();
    let Some(place) = place.filter(ours) else {
        session.status(Collector::Nvtx).unpaired.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let (time, origin) = (place.time.load(Ordering::Relaxed), place.origin.load(Ordering::Relaxed));
    let text = place.text.swap(ptr::null_mut(), Ordering::Relaxed);
    // SAFETY: null, or from `start`, and taken out once.
    let text = (!text.is_null()).then(|| *unsafe { Box::from_raw(text) });
    let name = Named { id: NameId(place.name.load(Ordering::Relaxed)), text };
    // SAFETY: null, or a domain's, which lives for ever.
    let args = unsafe { place.args.load(Ordering::Relaxed).as_ref() };
    give_back(number as u32);
    // One that began in the parent of a fork, or in an earlier recording, is not this one's.
    if (origin >> 32) as u32 == session.generation {
        let (duration, thread) = (now.saturating_sub(time), Some(origin as u32));
        write(session, &Finished { time, duration, name: &name, args, thread });
    }
}

fn unrecorded() -> u64 {
    UNRECORDED.fetch_add(1, Ordering::Relaxed) << PLACE_BITS | NOWHERE
}

fn take() -> Option<usize> {
    let mut free = FREE.load(Ordering::Acquire);
    while let Some(index) = (free as u32 as usize).checked_sub(1) {
        let next = u64::from(PLACES[index].next.load(Ordering::Relaxed));
        let changed = ((free >> 32) + 1) << 32 | next;
        match FREE.compare_exchange_weak(free, changed, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(index),
            Err(now) => free = now,
        }
    }
    let fresh = FRESH
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| ((count as usize) < MOST).then_some(count + 1));
    fresh.ok().map(|index| index as usize)
}

fn give_back(number: u32) {
    let mut free = FREE.load(Ordering::Relaxed);
    loop {
        PLACES[number as usize - 1].next.store(free as u32, Ordering::Relaxed);
        let changed = ((free >> 32) + 1) << 32 | u64::from(number);
        match FREE.compare_exchange_weak(free, changed, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => free = now,
        }
    }
}
