//! Functions that make entry points: what they give is looked at after each call that succeeds. JAX's `jit` gives functions
//! that are called; a class of scikit-learn's is complete when its base has been told of it.

use super::pointer::{self, FUNCTION};
use crate::callable::called_with;
use crate::gil::Gil;
use crate::refs::{decref, incref, xdecref};
use pyo3::ffi::*;
use std::ptr;

/// Function and what is called after it, both owned, for ever: there are few.
static FOLLOWED: Gil<Vec<(*mut PyObject, *mut PyObject)>> = Gil::new(Vec::new());

/// # Safety
/// The GIL is held, no exception is set; takes the reference to `then` over.
pub unsafe fn follow(function: *mut PyObject, then: *mut PyObject) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        let put = pointer::is_function(function) && pointer::put(function, called, &FUNCTION);
        if put {
            FOLLOWED.get().push((incref(function), then));
        } else {
            decref(then);
        }
        put
    }
}

unsafe extern "C" fn called(
    callable: *mut PyObject,
    args: *const *mut PyObject,
    count: usize,
    keywords: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: called by CPython, with the GIL, through the pointer of a function.
    unsafe {
        let result = FUNCTION.call(callable, args, count, keywords);
        let then = FOLLOWED.get().iter().find(|(function, _)| *function == callable).map(|(_, then)| *then);
        if let Some(then) = then
            && !result.is_null()
            && called_with(count) > 0
        {
            xdecref(PyObject_CallFunctionObjArgs(then, *args, result, ptr::null_mut::<PyObject>()));
            PyErr_Clear();
        }
        result
    }
}
