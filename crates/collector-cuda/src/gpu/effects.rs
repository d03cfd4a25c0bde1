//! What a call did beside taking time, as records behind it: memory, and the stream that it waited for. Reading it off the parameters
//! is left to `parameters`.

use super::api::{CallbackData, Cupti, SUCCESS};
use super::parameters::{self, CallEffect, MemoryChange, Stream};
use crate::thread::Writing;
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use trace::device::{Allocation, Work};
use trace::event::{Event, Kind};
use workload::session::Session;

/// The names of waits, by their sort.
static WAITS: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
const WAIT_WORDS: [&str; 4] =
    ["wait for the device", "wait for an event", "stream waits for an event", "wait for a stream"];

/// CUPTI's functions, for what a callback asks of them.
static CUPTI: AtomicPtr<Cupti> = AtomicPtr::new(std::ptr::null_mut());

/// Before the first call of a recording: numbers of names belong to one segment.
pub fn prepare(cupti: &'static Cupti, session: &Session) {
    for (wait, words) in WAITS.iter().zip(WAIT_WORDS) {
        wait.store(session.intern(words).0, Ordering::Relaxed);
    }
    CUPTI.store(std::ptr::from_ref(cupti).cast_mut(), Ordering::Release);
}

/// Writes down what a call did.
#[cold]
pub fn tell(writing: &mut Writing, domain: u32, id: u32, data: &CallbackData, call: &Event) {
    let error = data.code();
    // SAFETY: the parameters of this call, which has ended.
    let Some(effect) = (unsafe { parameters::read(domain, id, data.parameters.cast(), error != 0) }) else { return };
    // SAFETY: null, or a table that is never freed.
    let Some(cupti) = (unsafe { CUPTI.load(Ordering::Acquire).as_ref() }) else { return };
    let mut device = 0;
    if let Some(ask) = cupti.device_id.filter(|_| !data.context.is_null()) {
        // SAFETY: the context of this call; it only stores a number.
        unsafe { ask(data.context, &mut device) };
    }
    let (context, correlation) = (data.context_uid, data.correlation);
    let (records, count) = match effect {
        CallEffect::Memory(MemoryChange { operation, address, bytes, handle, memory, pool, device: named }) => {
            let time = if operation.gives_back() { call.time } else { call.time + call.value };
            let (name, device, stream) = (call.name, named.unwrap_or(device), 0);
            let at = Allocation { time, name, device, context, stream, correlation, ..Allocation::default() };
            Allocation { operation, address, bytes, handle, memory, pool, error, ..at }.records()
        }
        CallEffect::Wait { sort, stream } => {
            let mut number = 0;
            if let (Some(Stream { handle, per_thread }), Some(ask)) = (stream, cupti.stream_id) {
                // SAFETY: context and stream of this call; it only stores a number.
                let code = unsafe { ask(data.context, handle as *const c_void, per_thread.into(), &mut number) };
                number = if code == SUCCESS { number } else { 0 };
            }
            let name = trace::NameId(WAITS[sort as usize % WAITS.len()].load(Ordering::Relaxed));
            let (start, dur, stream, detail) = (call.time, call.value, number, sort);
            Work { start, dur, name, device, context, stream, correlation, detail, ..Work::default() }
                .records(Kind::Sync)
        }
    };
    writing.push_all(&records[..count]);
}
