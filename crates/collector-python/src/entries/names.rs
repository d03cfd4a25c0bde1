//! What entries are called: the kind, and the class of what is called (`model Net`), or the method of a request. A name that
//! was made before is found by the address of the class's own name.

use crate::gil::Gil;
use crate::refs::{decref, incref, xdecref};
use crate::text::with_text;
use pyo3::ffi::*;
use std::ptr;

/// The kinds of entries whose first argument is what is called; the last is a function, which is called itself.
pub const KINDS: [&str; 9] =
    ["model", "generate", "pipeline", "keras", "onnx", "predict", "predict_proba", "transform", "jax"];
pub const JITTED: usize = KINDS.len() - 1;

/// Methods of HTTP. Any other is the client's own text, and not written down.
const METHODS: [&str; 9] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT"];

#[derive(Clone, Copy)]
struct Known {
    /// The name of the class, owned: its address means this string for as long as it stands here.
    of: *mut PyObject,
    kind: usize,
    /// Owned.
    name: *mut PyObject,
    /// The class is what `torch.compile` gives: what it was made of has the name.
    compiled: bool,
}

const MOST: usize = 256;
static KNOWN: Gil<[Known; MOST]> =
    Gil::new([Known { of: ptr::null_mut(), kind: 0, name: ptr::null_mut(), compiled: false }; MOST]);

/// The name of an entry as a new reference. Null where it has none, without an exception.
///
/// # Safety
/// The GIL is held, no exception is set, and `what` is alive.
pub unsafe fn of_call(kind: usize, what: *mut PyObject) -> *mut PyObject {
    // SAFETY: by the caller's promise.
    unsafe {
        let named = if kind == JITTED { what } else { Py_TYPE(what).cast() };
        let (name, compiled) = known(kind, named);
        if !compiled {
            return name;
        }
        let inner = compiled_from(what);
        if inner.is_null() {
            return name;
        }
        let better = known(kind, Py_TYPE(inner).cast()).0;
        decref(inner);
        if better.is_null() {
            return name;
        }
        xdecref(name);
        better
    }
}

/// By the `__name__` of a class or function; and whether it is the class of compiled models.
unsafe fn known(kind: usize, named: *mut PyObject) -> (*mut PyObject, bool) {
    // SAFETY: as for `of_call`.
    unsafe {
        let of = PyObject_GetAttr(named, attribute());
        if of.is_null() || PyUnicode_CheckExact(of) == 0 {
            PyErr_Clear();
            xdecref(of);
            return (ptr::null_mut(), false);
        }
        let place = ((of as usize >> 4) ^ kind) % MOST;
        let found = KNOWN.get()[place];
        if found.of == of && found.kind == kind {
            decref(of);
            return (incref(found.name), found.compiled);
        }
        let (text, compiled) = with_text(of, |text, _| (format!("{} {text}", KINDS[kind]), text == "OptimizedModule"));
        let name = PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as Py_ssize_t);
        if name.is_null() {
            PyErr_Clear();
            decref(of);
            return (name, compiled);
        }
        // Strings run no code of anybody's when they are let go.
        let old = std::mem::replace(&mut KNOWN.get()[place], Known { of, kind, name, compiled });
        xdecref(old.of);
        xdecref(old.name);
        (incref(name), compiled)
    }
}

unsafe fn attribute() -> *mut PyObject {
    static NAME: Gil<*mut PyObject> = Gil::new(ptr::null_mut());
    // SAFETY: the GIL is held.
    unsafe {
        if (*NAME.get()).is_null() {
            *NAME.get() = PyUnicode_InternFromString(c"__name__".as_ptr());
        }
        *NAME.get()
    }
}

/// The model that `torch.compile` was given, as a new reference or null. Not by its attribute: that runs code of PyTorch's.
unsafe fn compiled_from(model: *mut PyObject) -> *mut PyObject {
    // SAFETY: as for `of_call`; what the dictionaries give is borrowed.
    unsafe {
        let attributes = PyObject_GetAttrString(model, c"__dict__".as_ptr());
        let item = |dictionary: *mut PyObject, key: *const _| {
            let is = !dictionary.is_null() && PyDict_Check(dictionary) != 0;
            if is { PyDict_GetItemString(dictionary, key) } else { ptr::null_mut() }
        };
        let inner = item(item(attributes, c"_modules".as_ptr()), c"_orig_mod".as_ptr());
        if !inner.is_null() {
            incref(inner);
        }
        xdecref(attributes);
        PyErr_Clear();
        inner
    }
}

/// The name of a request by its method, as a new reference; null where that is none, without an exception.
///
/// # Safety
/// As for [`of_call`]; `method` may be null.
pub unsafe fn of_request(method: *mut PyObject) -> *mut PyObject {
    static NAMES: Gil<[*mut PyObject; METHODS.len() + 1]> = Gil::new([ptr::null_mut(); METHODS.len() + 1]);
    // SAFETY: by the caller's promise.
    unsafe {
        if method.is_null() || PyUnicode_Check(method) == 0 {
            return ptr::null_mut();
        }
        let number = with_text(method, |text, _| METHODS.iter().position(|known| *known == text));
        let number = number.unwrap_or(METHODS.len());
        if NAMES.get()[number].is_null() {
            let text = format!("request {}", METHODS.get(number).unwrap_or(&"OTHER"));
            let made = PyUnicode_FromStringAndSize(text.as_ptr().cast(), text.len() as Py_ssize_t);
            if made.is_null() {
                PyErr_Clear();
                return made;
            }
            NAMES.get()[number] = made;
        }
        incref(NAMES.get()[number])
    }
}
