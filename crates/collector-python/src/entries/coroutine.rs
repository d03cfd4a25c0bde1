//! The coroutine of a request handler: passes everything on to the program's own, and its entry lasts from the first time it
//! runs to its end, over all awaits. Native, so nothing of it is in a traceback; asked what it is, it answers as the other.

use super::{recording, request};
use crate::callable::{make_type, method, weak_references_at};
use crate::gil::Gil;
use crate::refs::{decref, incref, xdecref};
use crate::scopes::entry::Entry;
use crate::scopes::interpreter_function;
use pyo3::ffi::*;
use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr;
use trace::status::Collector;
use workload::guard::guarded;

#[repr(C)]
struct Handling {
    head: PyObject,
    /// The program's own, owned.
    coroutine: *mut PyObject,
    /// A `str`, owned; null once it has begun to run.
    name: *mut PyObject,
    /// Owned while it runs, or null.
    entry: *mut Entry,
    weak_references: *mut PyObject,
}

static TYPE: Gil<*mut PyTypeObject> = Gil::new(ptr::null_mut());

/// What stands for a coroutine, or the object itself where it is none. Takes both references over; null stays null.
///
/// # Safety
/// The GIL is held; an exception is set if `coroutine` is null.
pub unsafe fn wrap(coroutine: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    // SAFETY: by the caller's promise; every field is written before anybody sees the object.
    unsafe {
        let is = !coroutine.is_null()
            && interpreter_function(c"PyCoro_Type").is_some_and(|kind| Py_TYPE(coroutine).cast() == kind);
        let made: *mut Handling = if is { PyObject_GC_New(*TYPE.get()) } else { ptr::null_mut() };
        if made.is_null() {
            if is {
                PyErr_Clear();
            }
            decref(name);
            return coroutine;
        }
        (*made).coroutine = coroutine;
        (*made).name = name;
        (*made).entry = ptr::null_mut();
        (*made).weak_references = ptr::null_mut();
        PyObject_GC_Track(made.cast());
        made.cast()
    }
}

/// It is about to run: the first time, the request begins.
unsafe fn runs(this: *mut Handling) {
    // SAFETY: the GIL is held, no exception is set, and `this` is alive, as in all of the following.
    unsafe {
        let name = std::mem::replace(&mut (*this).name, ptr::null_mut());
        if name.is_null() {
            return;
        }
        if let Some(session) = recording() {
            (*this).entry = guarded(Collector::Scopes, ptr::null_mut(), || request::open(session, name));
        }
        decref(name);
    }
}

/// It has returned, or an exception has left it.
unsafe fn ended(this: *mut Handling) {
    // SAFETY: as for `runs`, but for an exception, which `close` keeps.
    unsafe { request::close(std::mem::replace(&mut (*this).entry, ptr::null_mut())) }
}

unsafe extern "C" fn am_send(this: *mut PyObject, value: *mut PyObject, result: *mut *mut PyObject) -> PySendResult {
    // SAFETY: called by CPython.
    unsafe {
        let this: *mut Handling = this.cast();
        runs(this);
        let sent = PyIter_Send((*this).coroutine, value, result);
        if sent != PySendResult::PYGEN_NEXT {
            ended(this);
        }
        sent
    }
}

unsafe extern "C" fn send(this: *mut PyObject, value: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe {
        let mut result = ptr::null_mut();
        if am_send(this, value, &mut result) == PySendResult::PYGEN_RETURN {
            // Made here: a tuple or an exception as the value would be taken apart.
            let stop = PyObject_CallFunctionObjArgs(PyExc_StopIteration, result, ptr::null_mut::<PyObject>());
            decref(result);
            result = ptr::null_mut();
            if !stop.is_null() {
                PyErr_SetObject(PyExc_StopIteration, stop);
                decref(stop);
            }
        }
        result
    }
}

unsafe extern "C" fn next(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe { send(this, Py_None()) }
}

unsafe extern "C" fn throw(this: *mut PyObject, args: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe {
        let this: *mut Handling = this.cast();
        runs(this);
        let throw = PyObject_GetAttrString((*this).coroutine, c"throw".as_ptr());
        let result = if throw.is_null() { throw } else { PyObject_CallObject(throw, args) };
        xdecref(throw);
        if result.is_null() {
            ended(this);
        }
        result
    }
}

unsafe extern "C" fn close(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe {
        let this: *mut Handling = this.cast();
        let close = PyObject_GetAttrString((*this).coroutine, c"close".as_ptr());
        let result =
            if close.is_null() { close } else { PyObject_CallFunctionObjArgs(close, ptr::null_mut::<PyObject>()) };
        xdecref(close);
        ended(this);
        result
    }
}

unsafe extern "C" fn itself(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe { incref(this) }
}

/// Only how it is run is its own.
unsafe extern "C" fn attribute(this: *mut PyObject, name: *mut PyObject) -> *mut PyObject {
    const OWN: [&std::ffi::CStr; 4] = [c"send", c"throw", c"close", c"__await__"];
    // SAFETY: called by CPython.
    unsafe {
        if OWN.iter().any(|own| PyUnicode_CompareWithASCIIString(name, own.as_ptr()) == 0) {
            return PyObject_GenericGetAttr(this, name);
        }
        PyObject_GetAttr((*this.cast::<Handling>()).coroutine, name)
    }
}

unsafe extern "C" fn set_attribute(this: *mut PyObject, name: *mut PyObject, value: *mut PyObject) -> c_int {
    // SAFETY: called by CPython; null means that it is deleted.
    unsafe { PyObject_SetAttr((*this.cast::<Handling>()).coroutine, name, value) }
}

unsafe extern "C" fn repr(this: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe { PyObject_Repr((*this.cast::<Handling>()).coroutine) }
}

unsafe extern "C" fn traverse(this: *mut PyObject, visit: visitproc, arg: *mut c_void) -> c_int {
    // SAFETY: called by the garbage collector on a live object. Strings and entries are in no cycle.
    unsafe {
        for object in [Py_TYPE(this).cast(), (*this.cast::<Handling>()).coroutine] {
            if !object.is_null() {
                let result = visit(object, arg);
                if result != 0 {
                    return result;
                }
            }
        }
    }
    0
}

unsafe extern "C" fn dealloc(this: *mut PyObject) {
    // SAFETY: the last reference is gone; the fields are ours to let go.
    unsafe {
        PyObject_GC_UnTrack(this.cast());
        let handling: *mut Handling = this.cast();
        if !(*handling).weak_references.is_null() {
            PyObject_ClearWeakRefs(this);
        }
        // First the coroutine: it may still run, to be closed.
        decref((*handling).coroutine);
        ended(handling);
        xdecref((*handling).name);
        let kind = Py_TYPE(this);
        PyObject_GC_Del(this.cast());
        decref(kind.cast());
    }
}

/// Makes the type. False with an exception set if that fails.
///
/// # Safety
/// The GIL is held.
pub unsafe fn prepare() -> bool {
    static METHODS: Gil<[PyMethodDef; 5]> = Gil::new([
        PyMethodDef { ml_flags: METH_O, ..method(c"send", send) },
        PyMethodDef { ml_flags: METH_VARARGS, ..method(c"throw", throw) },
        method(c"close", close),
        method(c"__await__", method_await),
        PyMethodDef::zeroed(),
    ]);
    // SAFETY: the spec is read during the call; methods live for ever.
    unsafe {
        if !(*TYPE.get()).is_null() {
            return true;
        }
        let mut members = weak_references_at(offset_of!(Handling, weak_references));
        *TYPE.get() = make_type(
            c"inferscope._native.Handling",
            size_of::<Handling>(),
            Py_TPFLAGS_HAVE_GC,
            &mut [
                PyType_Slot { slot: Py_tp_dealloc, pfunc: dealloc as *mut _ },
                PyType_Slot { slot: Py_tp_traverse, pfunc: traverse as *mut _ },
                PyType_Slot { slot: Py_tp_getattro, pfunc: attribute as *mut _ },
                PyType_Slot { slot: Py_tp_setattro, pfunc: set_attribute as *mut _ },
                PyType_Slot { slot: Py_tp_members, pfunc: members.as_mut_ptr().cast() },
                PyType_Slot { slot: Py_tp_repr, pfunc: repr as *mut _ },
                PyType_Slot { slot: Py_tp_iter, pfunc: itself as *mut _ },
                PyType_Slot { slot: Py_tp_iternext, pfunc: next as *mut _ },
                PyType_Slot { slot: Py_am_await, pfunc: itself as *mut _ },
                PyType_Slot { slot: Py_am_send, pfunc: am_send as *mut _ },
                PyType_Slot { slot: Py_tp_methods, pfunc: METHODS.get().as_mut_ptr().cast() },
                PyType_Slot { slot: 0, pfunc: ptr::null_mut() },
            ],
        )
        .cast();
        !(*TYPE.get()).is_null()
    }
}

unsafe extern "C" fn method_await(this: *mut PyObject, _: *mut PyObject) -> *mut PyObject {
    // SAFETY: called by CPython.
    unsafe { incref(this) }
}
