//! Calls of models: the outermost on a thread is an entry, whatever its kind, and what it calls is passed on at the cost of a
//! look at a flag of the thread.

use super::names::{self, JITTED, KINDS};
use super::pointer::{self, FUNCTION, Original};
use super::{hooks, recording};
use crate::callable::{Vectorcall, called_with};
use crate::refs::decref;
use crate::scopes::{innermost, record};
use crate::text::name_of;
use pyo3::ffi::*;
use std::cell::Cell;
use std::ptr;
use trace::status::Collector;
use trace::{Kind, NameId, clock};
use workload::guard::guarded;
use workload::session::{self, Session};

thread_local! {
    /// Whether this thread is in an entry. Its outermost call sets it and takes it back: where threads are shared (greenlets),
    /// an entry may be missed meanwhile and nothing else happens.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Jitted functions of JAX.
static JIT: Original = Original::new();

/// One for each of [`KINDS`]: what a function is, is known by the pointer it is called through.
const CALLS: [Vectorcall; KINDS.len()] = [
    function::<0>,
    function::<1>,
    function::<2>,
    function::<3>,
    function::<4>,
    function::<5>,
    function::<6>,
    function::<7>,
    jitted,
];

/// # Safety
/// The GIL is held, no exception is set, and the object is alive.
pub unsafe fn mark(object: *mut PyObject, kind: &str) -> bool {
    let Some(kind) = KINDS.iter().position(|known| *known == kind) else { return false };
    // SAFETY: by the caller's promise; the original is for functions, or for what JAX's `jit` gives.
    unsafe {
        match (kind, pointer::is_function(object)) {
            (JITTED, false) => pointer::put(object, CALLS[kind], &JIT),
            (JITTED, true) | (_, false) => false,
            (_, true) => pointer::put(object, CALLS[kind], &FUNCTION),
        }
    }
}

unsafe extern "C" fn function<const KIND: usize>(
    callable: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython, with the GIL, through the pointer of a function.
    unsafe {
        let call = || FUNCTION.call(callable, args, count, keywords);
        if INSIDE.get() || called_with(count) == 0 {
            return call();
        }
        match recording() {
            Some(session) => outermost(session, KIND, *args, call),
            None => call(),
        }
    }
}

unsafe extern "C" fn jitted(
    callable: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as for `function`.
    unsafe {
        let call = || JIT.call(callable, args, count, keywords);
        match recording() {
            Some(session) if !INSIDE.get() => outermost(session, JITTED, callable, call),
            _ => call(),
        }
    }
}

/// What has to be known of an entry until it ends.
struct Open {
    name: *mut PyObject,
    name_id: NameId,
    id: u32,
    began: u64,
}

#[inline(never)]
unsafe fn outermost(
    session: &'static Session,
    kind: usize,
    what: *mut PyObject,
    call: impl FnOnce() -> *mut PyObject,
) -> *mut PyObject {
    INSIDE.set(true);
    // SAFETY: called by CPython with the GIL and no exception; `what` is an argument.
    unsafe {
        let open = guarded(Collector::Scopes, None, || begin(session, kind, what));
        let result = call();
        let now = clock::now();
        if let Some(open) = open {
            guarded(Collector::Scopes, (), || end(session.generation, open, now, result.is_null()));
        }
        INSIDE.set(false);
        result
    }
}

unsafe fn begin(session: &'static Session, kind: usize, what: *mut PyObject) -> Option<Open> {
    // SAFETY: as for `outermost`.
    unsafe {
        let name = names::of_call(kind, what);
        if name.is_null() {
            return None;
        }
        let (name_id, id) = (name_of(session, name), record::next_id());
        hooks::tell(hooks::BEGIN, name, id);
        let began = record::begin(session, Kind::EntryBegin, (name, name_id), id, innermost(session), None);
        Some(Open { name, name_id, id, began })
    }
}

unsafe fn end(generation: u32, open: Open, now: u64, failed: bool) {
    // SAFETY: as for `outermost`; where the call failed its exception is put aside meanwhile.
    unsafe {
        let (mut kind, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        if failed {
            PyErr_Fetch(&mut kind, &mut value, &mut traceback);
        }
        // Recording may have ended meanwhile, or another have begun.
        if let Some(session) = session::current()
            && session.generation == generation
        {
            record::end(session, Kind::EntryEnd, (open.name, open.name_id), open.id, open.began, now);
        }
        hooks::tell(hooks::END, open.name, open.id);
        decref(open.name);
        if failed {
            PyErr_Restore(kind, value, traceback);
        }
    }
}
