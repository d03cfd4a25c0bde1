//! Our place in `sys.monitoring`. The callbacks are objects with a vectorcall and nothing else: CPython jumps straight into
//! them, which is a third cheaper than the cheapest function object.

use super::super::callable::{HAVE_VECTORCALL, Vectorcall, make_type, vectorcall_at};
use super::super::gil::Gil;
use super::monitoring::{C, DISABLE, PYTHON};
use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::ffi::PyObject;
use pyo3::prelude::*;
use std::mem::offset_of;
use std::ptr;

#[repr(C)]
struct Callback {
    head: PyObject,
    vectorcall: Vectorcall,
}

static TYPE: Gil<*mut ffi::PyTypeObject> = Gil::new(ptr::null_mut());
static TOOL: Gil<Option<u8>> = Gil::new(None);

/// Tools 0, 1, 2 and 5 have owners by convention (debugger, coverage, profiler, optimizer); cProfile takes 2.
const TOOLS: [u8; 2] = [4, 3];

/// Callbacks may also be called as ordinary objects, by whoever got hold of one.
unsafe extern "C" fn call(_: *mut PyObject, _: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: None is immortal in every version that has `sys.monitoring`.
    unsafe { ffi::Py_None() }
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
