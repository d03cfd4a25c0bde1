//! The pointer through which CPython calls an object (its vectorcall), and how a function of ours is put there. The object
//! stays the one it was, with every attribute: neither `inspect` nor PyTorch's compiler nor who patches it can tell.
//!
//! From 3.12 on that is a function of CPython's own (`PyFunction_SetVectorcall`). Before, and for objects that are no Python
//! functions, the pointer is looked for in the object: it is done only if it stands there exactly once.

use crate::callable::Vectorcall;
use crate::gil::Gil;
use crate::scopes::interpreter_function;
use pyo3::ffi::*;
use std::mem::transmute;

type Ask = unsafe extern "C" fn(*mut PyObject) -> Option<Vectorcall>;
type Set = unsafe extern "C" fn(*mut PyObject, Vectorcall);

/// What objects of one type were called through before: ours call on through it.
pub struct Original(Gil<Option<Vectorcall>>);

impl Original {
    pub const fn new() -> Original {
        Original(Gil::new(None))
    }

    /// Calls on as if we were not there.
    ///
    /// # Safety
    /// The GIL is held; called by a function that [`put`] was given with this.
    #[inline(always)]
    pub unsafe fn call(
        &self,
        callable: *mut PyObject,
        args: *const *mut PyObject,
        count: usize,
        keywords: *mut PyObject,
    ) -> *mut PyObject {
        // SAFETY: by the caller's promise; it is set before any pointer is.
        unsafe {
            let original = (*self.0.get()).unwrap_unchecked();
            original(callable, args, count, keywords)
        }
    }
}

/// Python functions.
pub static FUNCTION: Original = Original::new();

/// Whether it is a Python function.
///
/// # Safety
/// The GIL is held and the object is alive.
pub unsafe fn is_function(object: *mut PyObject) -> bool {
    // SAFETY: any object has a type; the interpreter's own is only compared.
    unsafe { interpreter_function(c"PyFunction_Type").is_some_and(|kind| Py_TYPE(object).cast() == kind) }
}

/// Has `object` called through `ours`. False where it is called by somebody else's function already, or by one of ours.
///
/// # Safety
/// The GIL is held, no exception is set, `object` is alive, and `original` is for objects of its type.
pub unsafe fn put(object: *mut PyObject, ours: Vectorcall, original: &Original) -> bool {
    // SAFETY: by the caller's promise.
    unsafe {
        let Some(present) = present(object) else { return false };
        let known = original.0.get();
        if known.is_some_and(|known| known as usize != present as usize) {
            return false;
        }
        if is_function(object)
            && let Some(set) = interpreter_function(c"PyFunction_SetVectorcall")
        {
            *known = Some(present);
            transmute::<*mut libc::c_void, Set>(set)(object, ours);
            return true;
        }
        let Some(place) = place_of(object, present) else { return false };
        *original.0.get() = Some(present);
        *place = ours;
        true
    }
}

/// What the object is called through now.
unsafe fn present(object: *mut PyObject) -> Option<Vectorcall> {
    // SAFETY: the signatures documented for these names.
    unsafe {
        if let Some(ask) = interpreter_function(c"PyVectorcall_Function") {
            return transmute::<*mut libc::c_void, Ask>(ask)(object);
        }
        // 3.10 has the former in its headers only.
        let function = interpreter_function(c"_PyFunction_Vectorcall").filter(|_| is_function(object))?;
        Some(transmute::<*mut libc::c_void, Vectorcall>(function))
    }
}

/// Where in the object the pointer stands.
unsafe fn place_of(object: *mut PyObject, present: Vectorcall) -> Option<*mut Vectorcall> {
    // SAFETY: an object of a type has at least as many bytes as the type says; words of it are read, not understood.
    unsafe {
        let size = PyObject_GetAttrString(Py_TYPE(object).cast(), c"__basicsize__".as_ptr());
        if size.is_null() {
            PyErr_Clear();
            return None;
        }
        let words = PyLong_AsSize_t(size) / size_of::<usize>();
        Py_DECREF(size);
        let first = object.cast::<usize>();
        let head = size_of::<PyObject>() / size_of::<usize>();
        let mut found = (head..words).filter(|at| *first.add(*at) == present as usize);
        let place = found.next().filter(|_| found.next().is_none())?;
        Some(first.add(place).cast())
    }
}
