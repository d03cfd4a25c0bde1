//! Outermost calls into known entry points of a program (a model, a request handler) as records. Which functions those are is
//! said by `inferscope._entries`; here is how they are marked: by the pointer that CPython calls a function through
//! ([`pointer`]), so that the function itself stays the object that it was.

mod call;
mod coroutine;
mod hooks;
mod names;
mod pointer;
mod replacement;
mod request;
mod result;

use super::refs::incref;
use pyo3::prelude::*;
use pyo3::types::PyString;
use workload::session::{self, Session};

/// Adds the functions below and the types to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // SAFETY: attached.
    if !unsafe { coroutine::prepare() && replacement::prepare() } {
        return Err(PyErr::fetch(module.py()));
    }
    module.add_function(wrap_pyfunction!(entry_point, module)?)?;
    module.add_function(wrap_pyfunction!(entry_request, module)?)?;
    module.add_function(wrap_pyfunction!(entry_result, module)?)?;
    module.add_function(wrap_pyfunction!(entry_replacement, module)?)?;
    module.add_function(wrap_pyfunction!(entry_hooks, module)?)
}

/// The session, where it wants entries.
#[inline(always)]
fn recording() -> Option<&'static Session> {
    session::current().filter(|session| session.settings.recording.entries)
}

/// Marks the outermost calls of a function whose first argument is what is called (or of a jitted function), by the kind of
/// the entry. False where that cannot be done: the function is another's, or the interpreter is of a kind that we do not know.
#[pyfunction]
fn entry_point(function: &Bound<'_, PyAny>, kind: &str) -> bool {
    // SAFETY: attached, and the object is alive.
    unsafe { call::mark(function.as_ptr(), kind) }
}

/// Marks a request handler, a function or a coroutine function. The request's method is found in its argument number
/// `argument`: in that object's `attribute` where one is given, and there under `key` where one is given.
#[pyfunction]
#[pyo3(signature = (function, argument, attribute=None, key=None))]
fn entry_request(
    function: &Bound<'_, PyAny>,
    argument: usize,
    attribute: Option<Bound<'_, PyString>>,
    key: Option<Bound<'_, PyString>>,
) -> bool {
    let owned = |text: Option<Bound<'_, PyString>>| text.map_or(std::ptr::null_mut(), |text| text.into_ptr());
    // SAFETY: attached; the list owns what it is given.
    unsafe { request::mark(function.as_ptr(), argument, owned(attribute), owned(key)) }
}

/// Calls `then(first argument, result)` after each call of a function that succeeds. What it raises is swallowed.
#[pyfunction]
fn entry_result(function: &Bound<'_, PyAny>, then: Py<PyAny>) -> bool {
    // SAFETY: attached; the list owns what it is given.
    unsafe { result::follow(function.as_ptr(), then.into_ptr()) }
}

/// What to put in the place of a marked function where the interpreter does not ask functions how they are called (3.11).
#[pyfunction]
fn entry_replacement<'py>(function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: attached; a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(function.py(), replacement::new(incref(function.as_ptr()))) }
}

/// Sets what is called when an outermost call of a model begins and ends, on its thread, with the entry's name and id. None:
/// nothing.
#[pyfunction]
#[pyo3(signature = (begin=None, end=None))]
fn entry_hooks(begin: Option<Py<PyAny>>, end: Option<Py<PyAny>>) {
    // SAFETY: attached.
    unsafe { hooks::set(begin, end) }
}
