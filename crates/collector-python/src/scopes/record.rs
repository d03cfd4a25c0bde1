//! Scopes, steps and marks as records. All text is ready before the first record of an event is written: the records of
//! one event stand together in the ring.

use super::super::text::{plain, with_text};
use crate::thread;
use pyo3::ffi::PyObject;
use std::sync::atomic::{AtomicU32, Ordering};
use trace::event::{TextRole, text_count, text_records};
use trace::status::Collector;
use trace::{Event, Kind, NameId, clock};
use workload::session::Session;

/// A name: the `str`, and its number in the segment.
pub type Name = (*mut PyObject, NameId);

static LAST: AtomicU32 = AtomicU32::new(0);

/// Programs that one process runs one after the other (execve) number their scopes from here on: what was open in one must not
/// seem to end in the next.
const IDS_A_PROGRAM: u32 = 1 << 27;

/// Chooses the first id by the number of this process's segment, unless there were ids already.
pub fn begin_ids(segment: u32) {
    if LAST.load(Ordering::Relaxed) == 0 {
        LAST.store(segment.wrapping_sub(1).wrapping_mul(IDS_A_PROGRAM), Ordering::Relaxed);
    }
}

/// The next id. Under the GIL, so two plain operations do; 0 means no scope.
#[inline(always)]
pub fn next_id() -> u32 {
    let id = LAST.load(Ordering::Relaxed).wrapping_add(1).max(1);
    LAST.store(id, Ordering::Relaxed);
    id
}

/// Writes a begin and returns its time. `parent` is the id of the enclosing scope.
///
/// # Safety
/// The GIL is held, no exception is set, the name is a `str`.
#[inline(always)]
pub unsafe fn begin(
    session: &'static Session,
    kind: Kind,
    name: Name,
    id: u32,
    parent: u32,
    args: Option<&str>,
) -> u64 {
    // SAFETY: by the caller's promise.
    unsafe { write(session, kind, name, args, None, u64::from(parent), id) }
}

/// Writes an end that is complete by itself, should its begin be overwritten.
///
/// # Safety
/// As for [`begin`].
#[inline(always)]
pub unsafe fn end(session: &'static Session, kind: Kind, name: Name, id: u32, begin: u64, now: u64) {
    // SAFETY: by the caller's promise.
    unsafe { write(session, kind, name, None, Some(now), begin, id) };
}

/// Writes a mark.
///
/// # Safety
/// As for [`begin`].
pub unsafe fn mark(session: &'static Session, name: Name, parent: u32, args: Option<&str>, now: u64) {
    // SAFETY: by the caller's promise.
    unsafe { write(session, Kind::Mark, name, args, Some(now), u64::from(parent), 0) };
}

/// Writes a moment of a fix that is tried.
///
/// # Safety
/// As for [`begin`].
pub unsafe fn fix(session: &'static Session, name: Name, moment: u32) {
    // SAFETY: by the caller's promise.
    unsafe { write(session, Kind::Fix, name, None, Some(clock::now()), 0, moment) };
}

#[inline(always)]
unsafe fn write(
    session: &'static Session,
    kind: Kind,
    (string, name): Name,
    args: Option<&str>,
    time: Option<u64>,
    value: u64,
    extra: u32,
) -> u64 {
    let event = |thread, flags, time| Event { time, value, thread, name, kind: kind as u16, flags, extra };
    if args.is_some() || name == NameId::INLINE {
        // SAFETY: by the caller's promise.
        return unsafe { write_with_text(session, string, args, time, event) };
    }
    let collector = match kind {
        Kind::LayerBegin | Kind::LayerEnd => Collector::Layers,
        _ => Collector::Scopes,
    };
    let Some(writing) = thread::writing(session, collector) else { return clock::now() };
    // The clock is read last, so that our own work is not in the measured time.
    let time = time.unwrap_or_else(clock::now);
    let thread = writing.tid;
    writing.push(event(thread, 0, time).to_words());
    time
}

#[cold]
unsafe fn write_with_text(
    session: &'static Session,
    string: *mut PyObject,
    args: Option<&str>,
    time: Option<u64>,
    event: impl Fn(u32, u16, u64) -> Event,
) -> u64 {
    let inline = (event(0, 0, 0).name == NameId::INLINE)
        // SAFETY: by the caller's promise.
        .then(|| unsafe { with_text(string, |text, _| plain(text).into_owned()) });
    let count = inline.as_deref().map_or(0, text_count) + args.map_or(0, text_count);
    let name = inline.iter().flat_map(|text| text_records(TextRole::Name, text));
    let args = args.iter().flat_map(|text| text_records(TextRole::Args, text));
    let Some(writing) = thread::writing(session, Collector::Scopes) else { return clock::now() };
    if !writing.reserve(count + 1, Collector::Scopes) {
        return clock::now();
    }
    name.chain(args).for_each(|words| writing.push(words));
    let time = time.unwrap_or_else(clock::now);
    let thread = writing.tid;
    writing.push(event(thread, count as u16, time).to_words());
    time
}
