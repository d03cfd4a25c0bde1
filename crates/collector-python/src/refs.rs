//! Counting references without a call, as the limited API's own headers of 3.10 do in every extension built with them:
//! a scope would otherwise spend a fifth of its time in functions that add one. Right for every version from 3.10 on with
//! a GIL: the count is the first field, and since 3.12 a set sign bit in its lower half means that the object is immortal.

use pyo3::ffi::{Py_DECREF, Py_None, PyObject};
use std::ptr;

#[cfg(target_endian = "big")]
compile_error!("the lower half of a reference count is taken to come first");

/// Counts one reference more, and gives the object back.
///
/// # Safety
/// The GIL is held and the object is alive.
#[inline(always)]
pub unsafe fn incref(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: every object starts with its count.
    unsafe {
        let count = object.cast::<i32>();
        if *count >= 0 {
            *count += 1;
        }
    }
    object
}

/// Counts one reference less.
///
/// # Safety
/// The GIL is held and one reference is the caller's.
#[inline(always)]
pub unsafe fn decref(object: *mut PyObject) {
    // SAFETY: as for `incref`. The last reference goes the official way.
    unsafe {
        let count = object.cast::<i32>();
        if *count > 1 {
            *count -= 1;
        } else if *count >= 0 {
            Py_DECREF(object);
        }
    }
}

/// As [`decref`], unless it is null.
///
/// # Safety
/// As for [`decref`].
#[inline(always)]
pub unsafe fn xdecref(object: *mut PyObject) {
    if !object.is_null() {
        // SAFETY: by the caller's promise.
        unsafe { decref(object) };
    }
}

/// `return None`.
#[inline(always)]
pub fn none() -> *mut PyObject {
    // SAFETY: callers are called by CPython, with the GIL.
    unsafe { incref(Py_None()) }
}

const SPARE: usize = 64;

/// Objects of one type that nobody refers to any more, kept to be used again. They keep their reference to the type.
pub struct Used<T> {
    count: usize,
    objects: [*mut T; SPARE],
}

impl<T> Used<T> {
    pub const fn new() -> Used<T> {
        Used { count: 0, objects: [ptr::null_mut(); SPARE] }
    }

    /// One with one reference and stale contents.
    #[inline(always)]
    pub fn take(&mut self) -> Option<*mut T> {
        self.count = self.count.checked_sub(1)?;
        let object = *self.objects.get(self.count)?;
        // SAFETY: nobody else knows the object. Only the lower half: what is above may hold flags.
        unsafe { *object.cast::<i32>() = 1 };
        Some(object)
    }

    /// Keeps an object from its deallocation. False: there are enough, free it.
    #[inline(always)]
    pub fn put(&mut self, object: *mut T) -> bool {
        let Some(place) = self.objects.get_mut(self.count) else { return false };
        *place = object;
        self.count += 1;
        true
    }
}
