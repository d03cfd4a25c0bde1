//! From a finished range to its records in the thread's ring, and which recording they go to.

use super::domains::Args;
use super::names::Named;
use crate::{recording, thread};
use std::sync::atomic::{AtomicBool, Ordering};
use trace::event::{Event, Kind, TextRole, text_count, text_records};
use trace::status::{Collector, State};
use workload::session::{self, Session};

/// Set in a forked child, until it has asked for a segment of its own.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Runs in a forked child before anything else.
pub unsafe extern "C" fn in_child() {
    FORKED.store(true, Ordering::Relaxed);
}

/// The recording, if somebody wants records.
#[inline(always)]
pub fn session() -> Option<&'static Session> {
    match session::current() {
        Some(session) => Some(session),
        None => in_a_child(),
    }
}

/// Asks once: afterwards there is a session, or there will be none.
#[cold]
fn in_a_child() -> Option<&'static Session> {
    if FORKED.load(Ordering::Relaxed) && FORKED.swap(false, Ordering::Relaxed) {
        recording::session().ok()
    } else {
        None
    }
}

/// Says on the status page that ranges are recorded.
pub fn is_on(session: &'static Session) {
    let status = session.status(Collector::Nvtx);
    if status.state() != State::On {
        status.set(State::On, "");
    }
}

/// Says why they are not; of several NVTX in one program one may work.
pub fn failed(session: &'static Session, why: &str) {
    let status = session.status(Collector::Nvtx);
    if status.state() != State::On {
        status.set(State::Failed, why);
    }
}

/// A range or a mark, as it goes into a ring.
pub struct Finished<'a> {
    pub time: u64,
    pub duration: u64,
    pub name: &'a Named,
    pub args: Option<&'static Args>,
    /// The thread in which it began, if that may be another.
    pub thread: Option<u32>,
}

#[inline]
pub fn write(session: &'static Session, range: &Finished<'_>) {
    let Some(writing) = thread::writing(session, Collector::Nvtx) else { return };
    let text = range.name.text.as_deref();
    let flags = range.args.map_or(0, |args| args.len()) + text.map_or(0, text_count);
    if flags > 0 && !writing.reserve(flags + 1, Collector::Nvtx) {
        return;
    }
    range.args.iter().flat_map(|args| args.iter()).for_each(|words| writing.push(*words));
    text.iter().flat_map(|text| text_records(TextRole::Name, text)).for_each(|words| writing.push(words));
    let event = Event {
        time: range.time,
        value: range.duration,
        thread: range.thread.unwrap_or(writing.tid),
        name: range.name.id,
        kind: Kind::Nvtx as u16,
        flags: flags as u16,
        extra: u32::from(range.thread.is_some()),
    };
    writing.push(event.to_words());
}
