//! The calls that are open on a thread. They lie in the segment, so that a kill does not hide the function it happened
//! in; those nested deeper than that has room for go on in the thread's own memory. A call becomes one record when
//! it ends.

use crate::thread::{DeepCall, Writing};
use std::sync::atomic::{AtomicU64, Ordering};
use trace::status::Collector;
use trace::{Kind, NameId, clock};
use workload::session::Session;

/// Calls shorter than this many ticks are not written.
static SHORTEST: AtomicU64 = AtomicU64::new(0);

pub fn set_shortest(ticks: u64) {
    SHORTEST.store(ticks, Ordering::Relaxed);
}

/// What stands in the segment for an open call: the name, which the recorder reads, and above it what tells the
/// function from others when it ends. Objects lie 16 bytes apart, so 64 GB of addresses differ in these bits.
#[inline(always)]
fn word(function: usize, name: NameId) -> u64 {
    u64::from(name.0) | u64::from(mark(function)) << 32
}

#[inline(always)]
fn mark(function: usize) -> u32 {
    (function >> 4) as u32
}

/// A call begins.
#[inline(always)]
pub fn begin(writing: &mut Writing, function: usize, name: NameId) {
    let depth = writing.calls.depth.load(Ordering::Relaxed);
    match writing.calls.cells.get(depth as usize) {
        Some(cell) => {
            cell[0].store(word(function, name), Ordering::Relaxed);
            // The clock is read last, so that our own work is not in the measured time.
            cell[1].store(clock::now(), Ordering::Relaxed);
        }
        None => begin_deep(writing, word(function, name)),
    }
    // In this order: whoever reads the segment after a kill finds whole entries up to `depth`.
    writing.calls.depth.store(depth + 1, Ordering::Release);
}

#[cold]
fn begin_deep(writing: &mut Writing, word: u64) {
    writing.deep.push(DeepCall { word, start: clock::now() });
}

/// The innermost call ends, if it is this function's. False: it is another's, see [`end_somewhere`].
#[inline(always)]
pub fn end(writing: &mut Writing, function: usize, kind: Kind, now: u64) -> bool {
    let depth = writing.calls.depth.load(Ordering::Relaxed).wrapping_sub(1);
    let Some(cell) = writing.calls.cells.get(depth as usize) else { return false };
    let (word, start) = (cell[0].load(Ordering::Relaxed), cell[1].load(Ordering::Relaxed));
    if (word >> 32) as u32 != mark(function) {
        return false;
    }
    write(writing, kind, word as u32, start, now, depth);
    // After the record is out: a kill in between shows the call twice and never hides it.
    writing.calls.depth.store(depth, Ordering::Release);
    true
}

#[inline(always)]
fn write(writing: &mut Writing, kind: Kind, name: u32, start: u64, now: u64, depth: u64) {
    let duration = now.wrapping_sub(start);
    if duration >= SHORTEST.load(Ordering::Relaxed) {
        writing.push([start, duration, u64::from(writing.tid) | u64::from(name) << 32, kind as u64 | depth << 32]);
    }
}

/// A call ends that is not the innermost in the segment: it is nested very deep, or it began before recording did, or
/// ends were missed (stacks that greenlets switch). Goes down to its begin and counts what lies above as unpaired.
#[cold]
#[inline(never)]
pub fn end_somewhere(session: &Session, writing: &mut Writing, function: usize, kind: Kind, now: u64) {
    let depth = writing.calls.depth.load(Ordering::Relaxed) as usize;
    let reach = writing.calls.cells.len();
    let at = |writing: &Writing, index: usize| {
        if index < reach {
            let cell = &writing.calls.cells[index];
            (cell[0].load(Ordering::Relaxed), cell[1].load(Ordering::Relaxed))
        } else {
            writing.deep.get(index - reach).map_or((0, 0), |deep| (deep.word, deep.start))
        }
    };
    let Some(found) = (0..depth).rev().find(|index| (at(writing, *index).0 >> 32) as u32 == mark(function)) else {
        // With nothing open it began before recording: nothing is amiss. A C call may end unseen by its begin.
        if depth > 0 && kind == Kind::Call {
            session.status(Collector::Calls).unpaired.fetch_add(1, Ordering::Relaxed);
        }
        return;
    };
    let missed = depth - 1 - found;
    if missed > 0 {
        session.status(Collector::Calls).unpaired.fetch_add(missed as u64, Ordering::Relaxed);
    }
    let (word, start) = at(writing, found);
    write(writing, kind, word as u32, start, now, found as u64);
    writing.deep.truncate(found.saturating_sub(reach));
    writing.calls.depth.store(found as u64, Ordering::Release);
}
