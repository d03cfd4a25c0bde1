//! Pauses of the garbage collector, from `gc.callbacks`: Python's own list for this purpose.

use super::gil::Gil;
use crate::thread;
use pyo3::ffi::*;
use pyo3::prelude::*;
use std::ffi::CStr;
use std::ptr;
use trace::gc_pause::{Found, GcPause};
use trace::status::{Collector, State};
use trace::{Event, Kind, NameId, clock};
use workload::guard::guarded;
use workload::session::{self, Session};

/// When the collection that is running began. There is only ever one, and it keeps the GIL or gives it to nobody
/// who could start another.
static BEGAN: Gil<u64> = Gil::new(0);
static NAME: Gil<(u32, NameId)> = Gil::new((0, NameId::NONE));
static CALLBACK: Gil<*mut PyObject> = Gil::new(ptr::null_mut());

/// (phase, info), the phase being "start" or "stop".
unsafe extern "C" fn on_gc(_: *mut PyObject, args: *mut *mut PyObject, count: Py_ssize_t) -> *mut PyObject {
    let now = clock::now();
    // SAFETY: called by CPython with `count` arguments and the GIL.
    unsafe {
        if count == 2
            && PyUnicode_Check(*args) != 0
            && let Some(session) = session::current()
        {
            if PyUnicode_CompareWithASCIIString(*args, c"start".as_ptr()) == 0 {
                *BEGAN.get() = now;
            } else if *BEGAN.get() != 0 {
                let began = std::mem::replace(BEGAN.get(), 0);
                let pause = pause(*args.add(1));
                guarded(Collector::Gc, (), || write(session, pause, began, now));
            }
        }
        Py_NewRef(Py_None())
    }
}

/// What CPython says of the collection: which generation, and what it found.
unsafe fn pause(info: *mut PyObject) -> GcPause {
    // SAFETY: the dictionary is an argument, or is not one and is not looked into.
    unsafe {
        let generation = number(info, c"generation").unwrap_or(0);
        let counts = number(info, c"collected").zip(number(info, c"uncollectable"));
        GcPause { generation, found: counts.map(|(collected, uncollectable)| Found { collected, uncollectable }) }
    }
}

unsafe fn number(info: *mut PyObject, key: &CStr) -> Option<u32> {
    // SAFETY: an argument; what the dictionary holds stays in it meanwhile.
    unsafe {
        if PyDict_Check(info) == 0 {
            return None;
        }
        let number = PyDict_GetItemString(info, key.as_ptr());
        if number.is_null() || PyLong_Check(number) == 0 {
            return None;
        }
        let value = PyLong_AsLong(number);
        // A number that does not fit leaves an error, which is not the program's.
        if value == -1 && !PyErr_Occurred().is_null() {
            PyErr_Clear();
        }
        Some(u32::try_from(value.max(0)).unwrap_or(u32::MAX))
    }
}

unsafe fn write(session: &'static Session, pause: GcPause, began: u64, now: u64) {
    // SAFETY: the GIL is held and nothing below calls Python.
    let known = unsafe { NAME.get() };
    if known.0 != session.generation {
        *known = (session.generation, session.intern("garbage collection"));
    }
    let name = known.1;
    if name == NameId::INLINE {
        return;
    }
    if let Some(writing) = thread::writing(session, Collector::Gc) {
        let (thread, value) = (writing.tid, now.wrapping_sub(began));
        let event = Event { time: began, value, thread, name, kind: Kind::Gc as u16, flags: 0, extra: pause.pack() };
        writing.push(event.to_words());
    }
}

/// Joins `gc.callbacks`.
pub fn start(py: Python<'_>, session: &Session) {
    let status = session.status(Collector::Gc);
    match join(py) {
        Ok(()) => status.set(State::On, ""),
        Err(error) => status.set(State::Failed, &error.value(py).to_string()),
    }
}

fn join(py: Python<'_>) -> PyResult<()> {
    static METHOD: Gil<PyMethodDef> = Gil::new(PyMethodDef {
        ml_name: c"on_gc".as_ptr(),
        ml_meth: PyMethodDefPointer { PyCFunctionFast: on_gc },
        ml_flags: METH_FASTCALL,
        ml_doc: ptr::null(),
    });
    // SAFETY: attached; the definition lives for ever.
    let callback = unsafe {
        if (*CALLBACK.get()).is_null() {
            *CALLBACK.get() = PyCFunction_NewEx(METHOD.get(), ptr::null_mut(), ptr::null_mut());
        }
        Bound::from_borrowed_ptr_or_err(py, *CALLBACK.get())?
    };
    let callbacks = py.import("gc")?.getattr("callbacks")?;
    if !callbacks.contains(&callback)? {
        callbacks.call_method1("append", (callback,))?;
    }
    Ok(())
}

/// Leaves `gc.callbacks`.
pub fn stop(py: Python<'_>) -> PyResult<()> {
    // SAFETY: attached.
    let callback = unsafe { Bound::from_borrowed_ptr_or_opt(py, *CALLBACK.get()) };
    let callbacks = py.import("gc")?.getattr("callbacks")?;
    if let Some(callback) = callback
        && callbacks.contains(&callback)?
    {
        callbacks.call_method1("remove", (callback,))?;
    }
    // SAFETY: attached.
    unsafe { *BEGAN.get() = 0 };
    Ok(())
}
