//! Arguments of functions of the plain C shape (`METH_FASTCALL | METH_KEYWORDS`), and Python objects that are looked up
//! once.

use super::gil::Gil;
use super::wrong_arguments;
use pyo3::ffi::*;
use std::ffi::CStr;
use std::ptr;

/// Arguments by position or keyword, borrowed; null where not given, the first `required` always given. None with an
/// exception set if they do not fit.
///
/// # Safety
/// The GIL is held; `args` holds `count` objects and then one for each name in `keywords`, as CPython hands them.
#[inline(always)]
pub unsafe fn arguments<const N: usize>(
    function: &CStr,
    names: [&CStr; N],
    required: usize,
    args: *const *mut PyObject,
    count: Py_ssize_t,
    keywords: *mut PyObject,
) -> Option<[*mut PyObject; N]> {
    let mut found = [ptr::null_mut(); N];
    let count = count as usize;
    // SAFETY: by the caller's promise.
    unsafe {
        if count == 1 && keywords.is_null() {
            // Nearly always, and worth not calling memcpy for.
            found[0] = *args;
            return Some(found);
        }
        if count > N {
            wrong_arguments::too_many(function, required, N, count);
            return None;
        }
        for (at, slot) in found.iter_mut().enumerate().take(count) {
            *slot = *args.add(at);
        }
        if !keywords.is_null() && !by_keyword(function, &names, args.add(count), keywords, &mut found) {
            return None;
        }
        if let Some(missing) = found.iter().take(required).position(|argument| argument.is_null()) {
            wrong_arguments::missing(function, names[missing]);
            return None;
        }
        Some(found)
    }
}

/// False with an exception set if one does not fit.
#[cold]
unsafe fn by_keyword(
    function: &CStr,
    names: &[&CStr],
    values: *const *mut PyObject,
    keywords: *mut PyObject,
    found: &mut [*mut PyObject],
) -> bool {
    // SAFETY: as for `arguments`.
    unsafe {
        for number in 0..PyTuple_Size(keywords) {
            let keyword = PyTuple_GetItem(keywords, number);
            let place = names.iter().position(|name| PyUnicode_CompareWithASCIIString(keyword, name.as_ptr()) == 0);
            match place {
                Some(place) if found[place].is_null() => found[place] = *values.add(number as usize),
                Some(place) => {
                    wrong_arguments::twice(function, names[place]);
                    return false;
                }
                None => {
                    wrong_arguments::unexpected(function, keyword, names);
                    return false;
                }
            }
        }
    }
    true
}

/// A function of a module, imported at its first use and kept.
pub struct Imported {
    module: &'static CStr,
    function: &'static CStr,
    object: Gil<*mut PyObject>,
}

impl Imported {
    pub const fn new(module: &'static CStr, function: &'static CStr) -> Imported {
        Imported { module, function, object: Gil::new(ptr::null_mut()) }
    }

    /// Borrowed; null with an exception set if it cannot be had.
    ///
    /// # Safety
    /// The GIL is held and no exception is set.
    pub unsafe fn get(&self) -> *mut PyObject {
        // SAFETY: by the caller's promise; no borrow is kept over the import.
        unsafe {
            if (*self.object.get()).is_null() {
                let module = PyImport_ImportModule(self.module.as_ptr());
                if module.is_null() {
                    return module;
                }
                let function = PyObject_GetAttrString(module, self.function.as_ptr());
                Py_DECREF(module);
                *self.object.get() = function;
            }
            *self.object.get()
        }
    }
}
