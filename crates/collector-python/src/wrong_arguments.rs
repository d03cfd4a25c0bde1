//! The errors of a call whose arguments do not fit, in the words that CPython has for functions written in Python: which
//! argument it is, and what was probably meant.

use pyo3::ffi::*;
use std::ffi::CStr;
use std::ptr;

/// As far from a name as that a mistyped word is still taken for it: one letter wrong, missing, doubled, or two swapped.
const NEAR: usize = 2;

/// # Safety
/// For this and the others: the GIL is held and no exception is set; afterwards one is.
#[cold]
pub unsafe fn too_many(function: &CStr, required: usize, most: usize, given: usize) {
    // SAFETY: by the caller's promise; the format's types are those of the arguments.
    unsafe {
        PyErr_Format(
            PyExc_TypeError,
            c"%s() takes from %zd to %zd positional arguments but %zd were given".as_ptr(),
            function.as_ptr(),
            required as Py_ssize_t,
            most as Py_ssize_t,
            given as Py_ssize_t,
        );
    }
}

#[cold]
pub unsafe fn missing(function: &CStr, name: &CStr) {
    let format = c"%s() missing 1 required positional argument: '%s'";
    // SAFETY: as for `too_many`.
    unsafe { PyErr_Format(PyExc_TypeError, format.as_ptr(), function.as_ptr(), name.as_ptr()) };
}

#[cold]
pub unsafe fn twice(function: &CStr, name: &CStr) {
    let format = c"%s() got multiple values for argument '%s'";
    // SAFETY: as for `too_many`.
    unsafe { PyErr_Format(PyExc_TypeError, format.as_ptr(), function.as_ptr(), name.as_ptr()) };
}

/// `keyword` is a `str`; `names` are what the function takes.
#[cold]
pub unsafe fn unexpected(function: &CStr, keyword: *mut PyObject, names: &[&CStr]) {
    // SAFETY: as for `too_many`; the letters are borrowed from a living object.
    unsafe {
        let mut length = 0;
        let letters = PyUnicode_AsUTF8AndSize(keyword, &mut length);
        let near = if letters.is_null() {
            // One that cannot be encoded is near to nothing.
            PyErr_Clear();
            None
        } else {
            nearest(std::slice::from_raw_parts(letters.cast(), length as usize), names)
        };
        match near {
            Some(name) => PyErr_Format(
                PyExc_TypeError,
                c"%s() got an unexpected keyword argument '%U'. Did you mean '%s'?".as_ptr(),
                function.as_ptr(),
                keyword,
                name.as_ptr(),
            ),
            None => {
                let names: Vec<_> = names.iter().map(|name| format!("'{}'", name.to_string_lossy())).collect();
                let takes = names.join(", ");
                let takes = PyUnicode_FromStringAndSize(takes.as_ptr().cast(), takes.len() as Py_ssize_t);
                if takes.is_null() {
                    return;
                }
                let format = c"%s() got an unexpected keyword argument '%U'; it takes %U";
                PyErr_Format(PyExc_TypeError, format.as_ptr(), function.as_ptr(), keyword, takes);
                Py_DECREF(takes);
                ptr::null_mut()
            }
        };
    }
}

/// Of a scope that is called as a decorator with anything but one function. Null, as such a call has to return.
#[cold]
pub unsafe fn of_decorator(scope: *mut PyObject, given: usize, keywords: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `too_many`.
    unsafe {
        if keywords.is_null() {
            let format = c"%R as a decorator takes one function but %zd arguments were given";
            PyErr_Format(PyExc_TypeError, format.as_ptr(), scope, given as Py_ssize_t)
        } else {
            // A tuple of them, or a dictionary, by the way that CPython calls.
            let format = c"%R as a decorator takes one function and no keyword arguments, got %S";
            let names = PySequence_Tuple(keywords);
            if names.is_null() {
                return names;
            }
            PyErr_Format(PyExc_TypeError, format.as_ptr(), scope, names);
            Py_DECREF(names);
            ptr::null_mut()
        }
    }
}

/// The name that a word was probably meant to be.
fn nearest<'n>(word: &[u8], names: &[&'n CStr]) -> Option<&'n CStr> {
    let near = |name: &&CStr| edits(word, name.to_bytes());
    // Of a short name two letters are most: `id` is not a mistyped `tag`.
    names.iter().copied().filter(|name| near(name) <= NEAR.min(name.count_bytes() / 2)).min_by_key(near)
}

/// How many letters have to be put in, taken out or replaced to make one word of the other.
fn edits(one: &[u8], other: &[u8]) -> usize {
    // Arguments have short names: a long word is far from all of them.
    if one.len() > 2 * other.len() + NEAR {
        return usize::MAX;
    }
    trace::spelling::edits(one, other)
}
