//! Python strings as names: any Unicode, lone surrogates included, cut to what a record carries. A name that was used
//! before costs one comparison of pointers.

use super::gil::Gil;
use pyo3::ffi::*;
use std::borrow::Cow;
use std::ptr;
use std::sync::atomic::Ordering;
use trace::NameId;
use trace::event::{MAX_TEXT, cut};
use trace::names::SEPARATOR;
use trace::status::Collector;
use workload::session::Session;

/// Calls `then` with the text of a `str`, at most `MAX_TEXT` bytes of it, and whether it was cut.
///
/// # Safety
/// The GIL is held, no exception is set, and `string` is a `str`.
pub unsafe fn with_text<R>(string: *mut PyObject, then: impl FnOnce(&str, bool) -> R) -> R {
    // SAFETY: by the caller's promise; every new reference is given back before returning.
    unsafe {
        let length = PyUnicode_GetLength(string);
        // A character takes at least a byte, so this many hold all that will be kept.
        let long = length > MAX_TEXT as Py_ssize_t;
        let part = if long { PyUnicode_Substring(string, 0, MAX_TEXT as Py_ssize_t) } else { Py_NewRef(string) };
        if part.is_null() {
            PyErr_Clear();
            return then("", true);
        }
        let mut size = 0;
        let bytes = PyUnicode_AsUTF8AndSize(part, &mut size);
        let result = if bytes.is_null() {
            // A lone surrogate has no UTF-8.
            PyErr_Clear();
            let encoded = PyUnicode_AsEncodedString(part, c"utf-8".as_ptr(), c"backslashreplace".as_ptr());
            let (mut data, mut size) = (ptr::null_mut(), 0);
            if encoded.is_null() || PyBytes_AsStringAndSize(encoded, &mut data, &mut size) < 0 {
                PyErr_Clear();
                Py_XDECREF(encoded);
                Py_DECREF(part);
                return then("", true);
            }
            let owned = String::from_utf8_lossy(std::slice::from_raw_parts(data.cast(), size as usize)).into_owned();
            Py_DECREF(encoded);
            then(cut(&owned, MAX_TEXT), long || owned.len() > MAX_TEXT)
        } else {
            let text = std::str::from_utf8_unchecked(std::slice::from_raw_parts(bytes.cast(), size as usize));
            then(cut(text, MAX_TEXT), long || text.len() > MAX_TEXT)
        };
        Py_DECREF(part);
        result
    }
}

/// The separator belongs to functions; in a name somebody chose it becomes a picture of itself.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.contains(SEPARATOR) { Cow::Owned(text.replace(SEPARATOR, "\u{241f}")) } else { Cow::Borrowed(text) }
}

#[derive(Clone, Copy)]
struct Known {
    /// Owned, so that its address means this string for as long as it stands here.
    string: *mut PyObject,
    generation: u32,
    name: NameId,
}

const KNOWN: usize = 1024;
static NAMES: Gil<[Known; KNOWN]> =
    Gil::new([Known { string: ptr::null_mut(), generation: 0, name: NameId::NONE }; KNOWN]);

/// The number of a name, `INLINE` when there is no more room for it.
///
/// # Safety
/// As for [`with_text`].
#[inline(always)]
pub unsafe fn name_of(session: &Session, string: *mut PyObject) -> NameId {
    // SAFETY: the GIL is held, and nothing below this borrow calls Python.
    let known = unsafe { &NAMES.get()[(string as usize >> 4) % KNOWN] };
    if known.string == string && known.generation == session.generation {
        return known.name;
    }
    // SAFETY: by the caller's promise.
    unsafe { intern(session, string) }
}

#[cold]
#[inline(never)]
unsafe fn intern(session: &Session, string: *mut PyObject) -> NameId {
    // SAFETY: by the caller's promise.
    let name = unsafe {
        with_text(string, |text, was_cut| {
            if was_cut {
                session.status(Collector::Scopes).cut.fetch_add(1, Ordering::Relaxed);
            }
            session.intern_message(&plain(text))
        })
    };
    // SAFETY: by the caller's promise. The old string is let go last: that runs no Python code, for a str has none.
    unsafe {
        // What is inline, or huge, is not worth holding on to.
        if name != NameId::INLINE && PyUnicode_GetLength(string) <= MAX_TEXT as Py_ssize_t {
            let known = &mut NAMES.get()[(string as usize >> 4) % KNOWN];
            let old = std::mem::replace(&mut known.string, Py_NewRef(string));
            (known.generation, known.name) = (session.generation, name);
            Py_XDECREF(old);
        }
    }
    name
}
