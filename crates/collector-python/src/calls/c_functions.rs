//! Calls of functions that are not Python: which callables count as that, and what they are called.

use super::super::gil::Gil;
use super::functions::{intern, known, recent, remember};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyType;
use std::ptr;
use trace::NameId;
use trace::event::{MAX_TEXT, cut};
use workload::session::Session;

/// `function` and `method`: calls of these show up as Python calls.
static PYTHON: Gil<[*mut ffi::PyTypeObject; 2]> = Gil::new([ptr::null_mut(); 2]);

pub fn prepare(py: Python<'_>) -> PyResult<()> {
    let types = py.import("types")?;
    for (place, name) in ["FunctionType", "MethodType"].into_iter().enumerate() {
        let kind = types.getattr(name)?.cast_into::<PyType>()?;
        // SAFETY: attached. The reference is never given back: these types live as long as the interpreter.
        unsafe { PYTHON.get()[place] = kind.into_ptr().cast() };
    }
    Ok(())
}

/// What a callable is known by: an address that all calls of the same function share. None: it is a Python function.
///
/// # Safety
/// The GIL is held and `callable` is alive.
#[inline(always)]
pub unsafe fn identity(callable: *mut ffi::PyObject) -> Option<usize> {
    // SAFETY: by the caller's promise.
    unsafe {
        let kind = ffi::Py_TYPE(callable);
        if PYTHON.get().contains(&kind) {
            return None;
        }
        if ffi::PyCFunction_Check(callable) != 0 {
            // A bound method such as `list.append` is a new object at every call; its definition (`m_ml`, right after
            // the object's head in every version) is not.
            return Some(*callable.cast::<usize>().add(2));
        }
        let lasting = kind == (&raw mut ffi::PyMethodDescr_Type)
            || kind == (&raw mut ffi::PyWrapperDescr_Type)
            || ffi::PyType_Check(callable) != 0;
        // Of other callables there may be any number: they go by their type.
        Some(if lasting { callable as usize } else { kind as usize })
    }
}

/// The name of a callable by its identity. `NONE`: there is no more room.
///
/// # Safety
/// The GIL is held, no exception is set, both belong together.
#[inline(always)]
pub unsafe fn name_of(session: &Session, identity: usize, callable: *mut ffi::PyObject) -> NameId {
    // SAFETY: by the caller's promise.
    unsafe {
        match recent(identity).or_else(|| known(identity)) {
            Some(name) => name,
            None => admit(session, identity, callable),
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn admit(session: &Session, identity: usize, callable: *mut ffi::PyObject) -> NameId {
    let admitted = Python::try_attach(|py| {
        // SAFETY: alive by the caller's promise.
        let object = unsafe { Bound::from_borrowed_ptr(py, callable) };
        let lasting = identity == callable as usize;
        // SAFETY: as above.
        let by_definition = unsafe { ffi::PyCFunction_Check(callable) } != 0;
        let named = if lasting || by_definition { object } else { object.get_type().into_any() };
        let name = intern(session, cut(&describe(&named), MAX_TEXT));
        // SAFETY: attached.
        unsafe { remember(identity, name, (!by_definition).then_some(&named)) };
        name
    });
    admitted.unwrap_or(NameId::NONE)
}

/// `module.name`, as far as the object knows.
fn describe(object: &Bound<'_, PyAny>) -> String {
    let text = |object: &Bound<'_, PyAny>, attribute: &str| {
        let value = object.getattr(attribute).ok()?;
        let string = value.cast::<pyo3::types::PyString>().ok()?;
        Some(string.to_string_lossy().into_owned())
    };
    let name = text(object, "__qualname__").or_else(|| text(object, "__name__")).unwrap_or_default();
    let owner = || {
        let owner = object.getattr("__self__").or_else(|_| object.getattr("__objclass__")).ok()?;
        let kind = if owner.is_instance_of::<PyType>() { owner } else { owner.get_type().into_any() };
        text(&kind, "__module__")
    };
    let module = text(object, "__module__").or_else(owner).unwrap_or_else(|| "builtins".to_owned());
    format!("{module}.{name}")
}
