//! Which scope is open around the running code: a context variable, so that every asyncio task and every thread has
//! its own answer. The functions behind it are outside the limited API but unchanged since 3.7.1: looked up by name.

use super::super::gil::Gil;
use super::super::refs::decref;
use super::entry::{self, Entry};
use pyo3::ffi::*;
use std::ffi::{CStr, c_char, c_int};
use std::ptr;

type New = unsafe extern "C" fn(*const c_char, *mut PyObject) -> *mut PyObject;
type Get = unsafe extern "C" fn(*mut PyObject, *mut PyObject, *mut *mut PyObject) -> c_int;
type Set = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;

struct Variable {
    object: *mut PyObject,
    get: Get,
    set: Set,
}

static VARIABLE: Gil<Option<Variable>> = Gil::new(None);

/// A function of the interpreter that the limited API does not show. None where there is no such function.
pub fn interpreter_function(name: &CStr) -> Option<*mut libc::c_void> {
    // SAFETY: a look-up among what is loaded already.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// Makes the variable. Without it scopes are recorded all the same, but each without its parent.
///
/// # Safety
/// The GIL is held.
pub unsafe fn prepare() {
    let find = || {
        let new = interpreter_function(c"PyContextVar_New")?;
        let get = interpreter_function(c"PyContextVar_Get")?;
        let set = interpreter_function(c"PyContextVar_Set")?;
        // SAFETY: the signatures documented for these names.
        let (new, get, set) = unsafe {
            (
                std::mem::transmute::<*mut libc::c_void, New>(new),
                std::mem::transmute::<*mut libc::c_void, Get>(get),
                std::mem::transmute::<*mut libc::c_void, Set>(set),
            )
        };
        // SAFETY: as documented; a null default means none.
        let object = unsafe { new(c"inferscope".as_ptr(), ptr::null_mut()) };
        if object.is_null() {
            // SAFETY: an exception is set.
            unsafe { PyErr_Clear() };
            return None;
        }
        Some(Variable { object, get, set })
    };
    // SAFETY: the GIL is held, and nothing else borrows the variable while the interpreter makes it.
    unsafe {
        if VARIABLE.get().is_none() {
            let found = find();
            *VARIABLE.get() = found;
        }
    }
}

/// The innermost entry of this context, as a new reference, or null.
///
/// # Safety
/// The GIL is held and no exception is set.
#[inline(always)]
pub unsafe fn get() -> *mut Entry {
    // SAFETY: by the caller's promise; nothing else borrows the variable.
    unsafe {
        let Some(variable) = VARIABLE.get() else { return ptr::null_mut() };
        let mut value = ptr::null_mut();
        if (variable.get)(variable.object, ptr::null_mut(), &mut value) < 0 {
            PyErr_Clear();
            return ptr::null_mut();
        }
        if value.is_null() || entry::is_entry(value) {
            return value.cast();
        }
        decref(value);
        ptr::null_mut()
    }
}

/// Makes `entry` (null: none) the innermost of this context.
///
/// # Safety
/// As for [`get`].
#[inline(always)]
pub unsafe fn set(entry: *mut Entry) {
    // SAFETY: by the caller's promise.
    unsafe {
        let Some(variable) = VARIABLE.get() else { return };
        let value = if entry.is_null() { Py_None() } else { entry.cast() };
        let token = (variable.set)(variable.object, value);
        if token.is_null() {
            PyErr_Clear();
        } else {
            decref(token);
        }
    }
}
