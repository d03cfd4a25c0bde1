//! Calls on 3.12 and later: `sys.monitoring`. The callbacks are objects with a vectorcall and nothing else: CPython
//! jumps straight into them, which is a third cheaper than the cheapest function object.

use super::super::callable::{HAVE_VECTORCALL, Vectorcall, make_type, vectorcall_at};
use super::super::gil::Gil;
use super::{c_functions, functions, open};
use crate::guard::guarded;
use crate::session;
use crate::thread;
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use std::mem::offset_of;
use std::ptr;
use trace::status::Collector;
use trace::{Kind, NameId, clock};

#[repr(C)]
struct Callback {
    head: PyObject,
    vectorcall: Vectorcall,
}

/// `sys.monitoring.DISABLE`: not again from this place in the code.
static DISABLE: Gil<*mut PyObject> = Gil::new(ptr::null_mut());
static TYPE: Gil<*mut ffi::PyTypeObject> = Gil::new(ptr::null_mut());
static TOOL: Gil<Option<u8>> = Gil::new(None);

/// Tools 0, 1, 2 and 5 have owners by convention (debugger, coverage, profiler, optimizer); cProfile takes 2.
const TOOLS: [u8; 2] = [4, 3];

const PYTHON: [(&str, Vectorcall); 6] = [
    ("PY_START", on_begin),
    ("PY_RESUME", on_begin),
    ("PY_THROW", on_throw),
    ("PY_RETURN", on_end),
    ("PY_YIELD", on_end),
    ("PY_UNWIND", on_unwind),
];
const C: [(&str, Vectorcall); 3] = [("CALL", on_c_call), ("C_RETURN", on_c_end), ("C_RAISE", on_c_end)];

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

/// Callbacks may also be called as ordinary objects, by whoever got hold of one.
unsafe extern "C" fn call(_: *mut PyObject, _: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    go_on()
}

fn callback(py: Python<'_>, vectorcall: Vectorcall) -> PyResult<Bound<'_, PyAny>> {
    let mut members = vectorcall_at(offset_of!(Callback, vectorcall));
    let mut slots = [
        ffi::PyType_Slot { slot: ffi::Py_tp_members, pfunc: members.as_mut_ptr().cast() },
        ffi::PyType_Slot { slot: ffi::Py_tp_call, pfunc: call as *mut _ },
        ffi::PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
    ];
    // SAFETY: attached; the type has one field, which is set at once.
    unsafe {
        if (*TYPE.get()).is_null() {
            let size = size_of::<Callback>();
            let made = make_type(c"inferscope._native.Callback", size, HAVE_VECTORCALL, &mut slots);
            if made.is_null() {
                return Err(PyErr::fetch(py));
            }
            *TYPE.get() = made.cast();
        }
        let object: *mut Callback = ffi::PyObject_New(*TYPE.get());
        if !object.is_null() {
            (*object).vectorcall = vectorcall;
        }
        Bound::from_owned_ptr_or_err(py, object.cast())
    }
}

/// Takes a tool id and registers the callbacks. The error says who is in the way; the text, what will be missing.
pub fn start(py: Python<'_>, with_c: bool) -> PyResult<&'static str> {
    let monitoring = py.import("sys")?.getattr("monitoring")?;
    let events = monitoring.getattr("events")?;
    // SAFETY: attached.
    unsafe { *DISABLE.get() = monitoring.getattr("DISABLE")?.into_ptr() };
    let free = |tool: &u8| monitoring.call_method1("use_tool_id", (*tool, "inferscope")).is_ok();
    let Some(tool) = TOOLS.into_iter().find(free) else {
        let holder = monitoring.call_method1("get_tool", (TOOLS[0],))?;
        return Err(PyValueError::new_err(format!("sys.monitoring's free tool ids are taken, one by {holder}")));
    };
    // SAFETY: attached.
    unsafe { *TOOL.get() = Some(tool) };
    let mut set = 0u64;
    for (event, vectorcall) in PYTHON.iter().chain(if with_c { C.as_slice() } else { &[] }) {
        let number = events.getattr(*event)?;
        // C_RETURN and C_RAISE come with CALL and cannot be asked for by themselves.
        if !event.starts_with("C_") {
            set |= number.extract::<u64>()?;
        }
        monitoring.call_method1("register_callback", (tool, number, callback(py, *vectorcall)?))?;
    }
    monitoring.call_method1("set_events", (tool, set))?;
    Ok("")
}

/// Gives the tool id back. What was switched off for us would stay off for the next tool: that is undone.
pub fn stop(py: Python<'_>) -> PyResult<()> {
    // SAFETY: attached.
    let Some(tool) = unsafe { TOOL.get() }.take() else { return Ok(()) };
    let monitoring = py.import("sys")?.getattr("monitoring")?;
    let events = monitoring.getattr("events")?;
    monitoring.call_method1("set_events", (tool, 0))?;
    for (event, _) in PYTHON.iter().chain(&C) {
        monitoring.call_method1("register_callback", (tool, events.getattr(*event)?, py.None()))?;
    }
    monitoring.call_method1("free_tool_id", (tool,))?;
    monitoring.call_method0("restart_events")?;
    Ok(())
}
