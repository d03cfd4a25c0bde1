//! Calls on 3.10 and 3.11: the interpreter's profile hook, a C function for each thread. Which threads have it is
//! `hooked_threads`' business.

use super::frames::code_of;
use super::{c_functions, functions, hooked_threads, open};
use crate::thread;
use pyo3::ffi::*;
use pyo3::prelude::*;
use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use trace::status::Collector;
use trace::{Kind, NameId, clock};
use workload::guard::guarded;
use workload::session::{self, Session};

// What the hook is told, from CPython's `pystate.h`.
const CALL: c_int = 0;
const RETURN: c_int = 3;
const C_CALL: c_int = 4;
const C_EXCEPTION: c_int = 5;
const C_RETURN: c_int = 6;

static WITH_C: AtomicBool = AtomicBool::new(false);

pub fn set_with_c(wanted: bool) {
    WITH_C.store(wanted, Ordering::Relaxed);
}

pub unsafe extern "C" fn hook(_: *mut PyObject, frame: *mut PyFrameObject, what: c_int, arg: *mut PyObject) -> c_int {
    // SAFETY: called by CPython with a live frame, the GIL and no exception set.
    unsafe {
        match what {
            CALL => {
                let code = code_of(frame);
                let name = functions::recent(code);
                if name == Some(NameId::NONE) {
                    // Outside the filter.
                } else if let Some(name) = name
                    && session::current().is_some()
                    && let Some(writing) = thread::last()
                {
                    open::begin(writing, code, name);
                } else {
                    guarded(Collector::Calls, (), || begin(code, frame));
                }
                hooked_threads::look_around();
            }
            RETURN => {
                let now = clock::now();
                let code = code_of(frame);
                let ended = thread::last().is_some_and(|writing| open::end(writing, code, Kind::Call, now));
                if !ended && functions::recent(code) != Some(NameId::NONE) {
                    guarded(Collector::Calls, (), || end(code, Kind::Call, now));
                }
            }
            C_CALL if WITH_C.load(Ordering::Relaxed) => guarded(Collector::Calls, (), || c_begin(frame, arg)),
            C_RETURN | C_EXCEPTION if WITH_C.load(Ordering::Relaxed) => guarded(Collector::Calls, (), || {
                let now = clock::now();
                if let Some(identity) = c_functions::identity(arg) {
                    end(identity, Kind::CCall, now);
                }
            }),
            _ => {}
        }
    }
    0
}

#[cold]
#[inline(never)]
unsafe fn begin(code: usize, frame: *mut PyFrameObject) {
    // SAFETY: called by `hook`.
    unsafe {
        let Some(session) = session::current() else { return };
        let name = admit(session, code, frame);
        if name != NameId::NONE
            && let Some(writing) = thread::writing(session, Collector::Calls)
        {
            open::begin(writing, code, name);
        }
    }
}

unsafe fn admit(session: &Session, code: usize, frame: *mut PyFrameObject) -> NameId {
    // SAFETY: called by `hook`.
    unsafe {
        let module = |py: Python<'_>| {
            let frame = Bound::from_borrowed_ptr(py, frame.cast());
            super::module_name(&frame.getattr("f_globals").ok()?)
        };
        functions::admit(session, code, module, true)
    }
}

#[cold]
#[inline(never)]
unsafe fn end(function: usize, kind: Kind, now: u64) {
    // SAFETY: called by `hook`.
    unsafe {
        let Some(session) = session::current() else { return };
        let known = functions::recent(function).or_else(|| functions::known(function));
        // Unknown: it was running before we came. None: it is outside the filter.
        if known.is_some_and(|name| name != NameId::NONE)
            && let Some(writing) = thread::writing(session, Collector::Calls)
            && !open::end(writing, function, kind, now)
        {
            open::end_somewhere(session, writing, function, kind, now);
        }
    }
}

unsafe fn c_begin(frame: *mut PyFrameObject, callable: *mut PyObject) {
    // SAFETY: called by `hook`.
    unsafe {
        let Some(session) = session::current() else { return };
        let code = code_of(frame);
        let caller = functions::recent(code).unwrap_or_else(|| admit(session, code, frame));
        if caller == NameId::NONE {
            return;
        }
        if let Some(identity) = c_functions::identity(callable) {
            let name = c_functions::name_of(session, identity, callable);
            if name != NameId::NONE
                && let Some(writing) = thread::writing(session, Collector::Calls)
            {
                open::begin(writing, identity, name);
            }
        }
    }
}

/// A thread that `threading` started: takes the hook, and `frame` has just begun in it.
pub unsafe fn adopt(frame: *mut PyFrameObject) {
    // SAFETY: called with the GIL and a live frame.
    unsafe {
        hooked_threads::hook_this_thread();
        hook(ptr::null_mut(), frame, CALL, ptr::null_mut());
    }
}
