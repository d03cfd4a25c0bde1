//! The object that stands beside the profile hook of a thread. Python sees it in `sys.getprofile()` and may call it, which
//! puts the hook (back) in place; when it goes although nobody stopped us, another profiler took the hook.

use super::super::callable::make_type;
use super::super::gil::Gil;
use super::{hooked_threads, profile_hook};
use crate::thread;
use pyo3::ffi::*;
use pyo3::prelude::*;
use std::ptr;
use std::sync::atomic::Ordering;
use trace::status::{Collector, State};
use workload::guard::guarded;
use workload::session;

static TYPE: Gil<*mut PyTypeObject> = Gil::new(ptr::null_mut());

/// A new one; null with an exception set without memory.
///
/// # Safety
/// The GIL is held and [`prepare`] was called.
pub unsafe fn new() -> *mut PyObject {
    // SAFETY: the type has no fields of its own.
    unsafe { PyObject_New::<PyObject>(*TYPE.get()) }
}

/// # Safety
/// The GIL is held and `object` is alive.
pub unsafe fn is_one(object: *mut PyObject) -> bool {
    // SAFETY: by the caller's promise.
    unsafe { Py_TYPE(object) == *TYPE.get() }
}

/// As Python's own profile functions are called: (frame, event, argument).
unsafe extern "C" fn call(_: *mut PyObject, args: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython with a tuple.
    unsafe {
        if PyTuple_Size(args) == 3 {
            let (frame, event) = (PyTuple_GetItem(args, 0), PyTuple_GetItem(args, 1));
            if PyUnicode_Check(event) != 0 && PyUnicode_CompareWithASCIIString(event, c"call".as_ptr()) == 0 {
                guarded(Collector::Calls, (), || profile_hook::adopt(frame.cast()));
            }
        }
        Py_NewRef(Py_None())
    }
}

unsafe extern "C" fn dealloc(this: *mut PyObject) {
    // SAFETY: the last reference is gone.
    unsafe {
        let kind = Py_TYPE(this);
        // A thread that ends has no frame any more.
        if hooked_threads::running() && !PyEval_GetFrame().is_null() {
            guarded(Collector::Calls, (), replaced);
        }
        PyObject_Free(this.cast());
        Py_DECREF(kind.cast());
    }
}

/// What was open on this thread will end unseen.
#[cold]
fn replaced() {
    let Some(session) = session::current() else { return };
    let status = session.status(Collector::Calls);
    status.set(State::Failed, "another profiler took the hook of a thread: its later calls are missing");
    if let Some(writing) = thread::writing(session, Collector::Calls) {
        let open = writing.calls.depth.swap(0, Ordering::Relaxed);
        writing.deep.clear();
        status.unpaired.fetch_add(open, Ordering::Relaxed);
    }
}

/// Makes the type.
pub fn prepare(py: Python<'_>) -> PyResult<()> {
    let mut slots = [
        PyType_Slot { slot: Py_tp_call, pfunc: call as *mut _ },
        PyType_Slot { slot: Py_tp_dealloc, pfunc: dealloc as *mut _ },
        PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
    ];
    // SAFETY: attached; the type has no fields of its own.
    unsafe {
        if (*TYPE.get()).is_null() {
            let made = make_type(c"inferscope._native.ProfileHook", size_of::<PyObject>(), 0, &mut slots);
            if made.is_null() {
                return Err(PyErr::fetch(py));
            }
            *TYPE.get() = made.cast();
        }
    }
    Ok(())
}
