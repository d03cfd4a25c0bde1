//! What of ours wants to know when a model is called from outside and when that call ends.

use crate::gil::Gil;
use crate::refs::{decref, incref, xdecref};
use pyo3::ffi::*;
use pyo3::prelude::*;
use std::ptr;

/// Begin and end, each owned or null.
static HOOKS: Gil<[*mut PyObject; 2]> = Gil::new([ptr::null_mut(); 2]);

pub const BEGIN: usize = 0;
pub const END: usize = 1;

/// # Safety
/// The GIL is held.
pub unsafe fn set(begin: Option<Py<PyAny>>, end: Option<Py<PyAny>>) {
    let pointer = |hook: Option<Py<PyAny>>| hook.map_or(ptr::null_mut(), Py::into_ptr);
    // SAFETY: by the caller's promise; the old ones are let go when nothing is borrowed any more.
    unsafe {
        let old = std::mem::replace(HOOKS.get(), [pointer(begin), pointer(end)]);
        old.into_iter().for_each(|hook| xdecref(hook));
    }
}

/// Calls one with the entry's name and id. What it raises is swallowed; an exception on its way survives.
///
/// # Safety
/// The GIL is held and `name` is a `str`.
#[inline(always)]
pub unsafe fn tell(which: usize, name: *mut PyObject, id: u32) {
    // SAFETY: by the caller's promise.
    unsafe {
        let hook = HOOKS.get()[which];
        if !hook.is_null() {
            call(hook, name, id);
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn call(hook: *mut PyObject, name: *mut PyObject, id: u32) {
    // SAFETY: as for `tell`. The hook may replace itself.
    unsafe {
        let (mut kind, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        PyErr_Fetch(&mut kind, &mut value, &mut traceback);
        incref(hook);
        let number = PyLong_FromUnsignedLong(id.into());
        if !number.is_null() {
            let result = PyObject_CallFunctionObjArgs(hook, name, number, ptr::null_mut::<PyObject>());
            xdecref(result);
            decref(number);
        }
        PyErr_Clear();
        decref(hook);
        PyErr_Restore(kind, value, traceback);
    }
}
