//! Calls on 3.12 and later: what `sys.monitoring` calls, event by event. `monitoring_tool` registers it.

use super::super::callable::Vectorcall;
use super::super::gil::Gil;
use super::{c_functions, functions, open};
use crate::thread;
use pyo3::ffi;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use std::ptr;
use trace::status::Collector;
use trace::{Kind, NameId, clock};
use workload::guard::guarded;
use workload::session;

/// `sys.monitoring.DISABLE`: not again from this place in the code.
pub static DISABLE: Gil<*mut PyObject> = Gil::new(ptr::null_mut());

pub const PYTHON: [(&str, Vectorcall); 6] = [
    ("PY_START", on_begin),
    ("PY_RESUME", on_begin),
    ("PY_THROW", on_throw),
    ("PY_RETURN", on_end),
    ("PY_YIELD", on_end),
    ("PY_UNWIND", on_unwind),
];
pub const C: [(&str, Vectorcall); 3] = [("CALL", on_c_call), ("C_RETURN", on_c_end), ("C_RAISE", on_c_end)];

/// None is immortal in every version that has `sys.monitoring`: no reference is counted.
#[inline(always)]
fn go_on() -> *mut PyObject {
    // SAFETY: the address of a static.
    unsafe { ffi::Py_None() }
}

#[cold]
fn never_again() -> *mut PyObject {
    // SAFETY: set before the first callback; the GIL is held.
    unsafe { ffi::Py_NewRef(*DISABLE.get()) }
}

// `*args` is the code object in every callback below.

/// PY_START, PY_RESUME.
unsafe extern "C" fn on_begin(
    _: *mut PyObject,
    args: *const *mut PyObject,
    _: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython with the code object and the offset, and the GIL.
    unsafe {
        let code = *args as usize;
        if session::current().is_some()
            && let Some(writing) = thread::last()
            && let Some(name) = functions::recent(code)
        {
            open::begin(writing, code, name);
            return go_on();
        }
        guarded(Collector::Calls, go_on(), || begin(code, true))
    }
}

/// PY_THROW, which cannot be switched off for a place.
unsafe extern "C" fn on_throw(
    _: *mut PyObject,
    args: *const *mut PyObject,
    _: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: as for `on_begin`.
    unsafe {
        let code = *args as usize;
        guarded(Collector::Calls, go_on(), || begin(code, false))
    }
}

#[cold]
#[inline(never)]
unsafe fn begin(code: usize, may_disable: bool) -> *mut PyObject {
    let away = || if may_disable { never_again() } else { go_on() };
    let Some(session) = session::current() else { return away() };
    // SAFETY: called by the callbacks.
    let name = unsafe { functions::admit(session, code, |py| module_of(py, code), false) };
    if name == NameId::NONE {
        return away();
    }
    if let Some(writing) = thread::writing(session, Collector::Calls) {
        open::begin(writing, code, name);
    }
    go_on()
}

/// PY_RETURN, PY_YIELD.
unsafe extern "C" fn on_end(_: *mut PyObject, args: *const *mut PyObject, _: usize, _: *mut PyObject) -> *mut PyObject {
    let now = clock::now();
    // SAFETY: as for `on_begin`.
    unsafe {
        let code = *args as usize;
        if let Some(writing) = thread::last()
            && open::end(writing, code, Kind::Call, now)
        {
            return go_on();
        }
        guarded(Collector::Calls, go_on(), || end(code, now))
    }
}

#[cold]
#[inline(never)]
unsafe fn end(code: usize, now: u64) -> *mut PyObject {
    let Some(session) = session::current() else { return never_again() };
    // SAFETY: called by the callbacks.
    let name = unsafe { functions::admit(session, code, |py| module_of(py, code), false) };
    if name == NameId::NONE {
        return never_again();
    }
    finish(session, code, Kind::Call, now);
    go_on()
}

fn finish(session: &'static session::Session, function: usize, kind: Kind, now: u64) {
    if let Some(writing) = thread::writing(session, Collector::Calls)
        && !open::end(writing, function, kind, now)
    {
        open::end_somewhere(session, writing, function, kind, now);
    }
}

/// PY_UNWIND, which cannot be switched off for a place: functions outside the filter come here too.
unsafe extern "C" fn on_unwind(
    _: *mut PyObject,
    args: *const *mut PyObject,
    _: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    let now = clock::now();
    // SAFETY: as for `on_begin`.
    unsafe {
        let code = *args as usize;
        guarded(Collector::Calls, (), || {
            if let Some(session) = session::current()
                && functions::recent(code).or_else(|| functions::known(code)).is_some()
            {
                finish(session, code, Kind::Call, now);
            }
        });
        go_on()
    }
}

/// CALL: of anything, from code that may be outside the filter.
unsafe extern "C" fn on_c_call(
    _: *mut PyObject,
    args: *const *mut PyObject,
    _: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython with the code object, the offset, the callable and its first argument.
    unsafe {
        let (code, callable) = (*args as usize, *args.add(2));
        guarded(Collector::Calls, go_on(), || {
            let Some(session) = session::current() else { return never_again() };
            let wanted = functions::recent(code)
                .unwrap_or_else(|| functions::admit(session, code, |py| module_of(py, code), false));
            if wanted == NameId::NONE {
                return never_again();
            }
            if let Some(identity) = c_functions::identity(callable) {
                let name = c_functions::name_of(session, identity, callable);
                if name != NameId::NONE
                    && let Some(writing) = thread::writing(session, Collector::Calls)
                {
                    open::begin(writing, identity, name);
                }
            }
            go_on()
        })
    }
}

/// C_RETURN, C_RAISE: they come only where CALL does.
unsafe extern "C" fn on_c_end(
    _: *mut PyObject,
    args: *const *mut PyObject,
    _: usize,
    _: *mut PyObject,
) -> *mut PyObject {
    let now = clock::now();
    // SAFETY: as for `on_c_call`.
    unsafe {
        let callable = *args.add(2);
        guarded(Collector::Calls, (), || {
            if let Some(session) = session::current()
                && let Some(identity) = c_functions::identity(callable)
            {
                finish(session, identity, Kind::CCall, now);
            }
        });
        go_on()
    }
}

/// The module of the function that is running, which is the one the callback is about.
fn module_of(py: Python<'_>, code: usize) -> Option<String> {
    // SAFETY: attached; the frame is borrowed from the interpreter.
    let frame = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) }?;
    let same = frame.getattr("f_code").ok()?.as_ptr() as usize == code;
    super::module_name(&frame.getattr("f_globals").ok()?).filter(|_| same)
}
