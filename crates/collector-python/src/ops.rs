//! Operators of PyTorch as records, in the few steps that `inferscope._ops` looks at: what its dispatch mode calls for every
//! operator, and the moment at which a step begins. Native, so that no frame of ours stands in the traceback of an operator that
//! fails and none of our own work is in an operator's time.

use super::gil::Gil;
use super::text::{name_of, plain, with_text};
use crate::thread;
use pyo3::exceptions::PyException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use trace::event::{TextRole, text_count, text_records};
use trace::status::{Collector, State};
use trace::{Event, Kind, NameId, clock};
use workload::guard::guarded;
use workload::session;

/// What takes the place of a mode's `__torch_dispatch__`: asks `before` whether and as what to record an operator, calls it, and
/// hands its times to `after`. What these two raise never reaches the program.
#[pyclass(frozen, module = "inferscope._native")]
pub struct OpDispatch {
    mode: Py<PyAny>,
    before: Py<PyAny>,
    after: Py<PyAny>,
    failed: Py<PyAny>,
}

#[pymethods]
impl OpDispatch {
    #[new]
    fn new(mode: Py<PyAny>, before: Py<PyAny>, after: Py<PyAny>, failed: Py<PyAny>) -> OpDispatch {
        OpDispatch { mode, before, after, failed }
    }

    /// PyTorch accepts nothing but a method of the mode itself.
    #[getter]
    fn __self__(&self, py: Python<'_>) -> Py<PyAny> {
        self.mode.clone_ref(py)
    }

    #[pyo3(signature = (function, _types, args, kwargs=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        function: &Bound<'py, PyAny>,
        _types: &Bound<'py, PyAny>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let seen = match self.before.bind(py).call1((function, args, kwargs)) {
            Ok(seen) => seen,
            Err(error) => self.ours(py, error)?,
        };
        // The operator itself, without PyTorch's function around it: its frame would stand in the traceback of one that fails.
        let own = seen.cast::<PyTuple>().ok().and_then(|seen| seen.get_item(0).ok());
        let begin = clock::now();
        let result = own.as_ref().unwrap_or(function).call(args, kwargs)?;
        let end = clock::now();
        if !seen.is_none()
            && let Err(error) = self.after.bind(py).call1((seen, &result, begin, end))
        {
            self.ours(py, error)?;
        }
        Ok(result)
    }
}

impl OpDispatch {
    /// An error of our own is told to `failed`; an interrupt belongs to the user.
    fn ours<'py>(&self, py: Python<'py>, error: PyErr) -> PyResult<Bound<'py, PyAny>> {
        if !error.is_instance_of::<PyException>(py) {
            return Err(error);
        }
        let _ = self.failed.bind(py).call1((error.value(py),));
        Ok(py.None().into_bound(py))
    }
}

/// What to call when a step begins, owned, or null; and not before when, in nanoseconds since [`start`].
static ON_STEP: Gil<*mut ffi::PyObject> = Gil::new(ptr::null_mut());
static DUE: AtomicU64 = AtomicU64::new(u64::MAX);

fn elapsed() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// A step begins. The error is an interrupt of the user's, set as the exception.
///
/// # Safety
/// The GIL is held, no exception is set, `name` is a `str`.
#[inline(always)]
pub unsafe fn step_begins(name: *mut ffi::PyObject) -> Result<(), ()> {
    // SAFETY: by the caller's promise.
    if unsafe { *ON_STEP.get() }.is_null() || elapsed() < DUE.load(Ordering::Relaxed) {
        return Ok(());
    }
    // SAFETY: by the caller's promise.
    unsafe { tell(name) }
}

#[cold]
unsafe fn tell(name: *mut ffi::PyObject) -> Result<(), ()> {
    // SAFETY: by the caller's promise. Our own reference: the callback may set another.
    unsafe {
        let callback = ffi::Py_NewRef(*ON_STEP.get());
        let result = ffi::PyObject_CallFunctionObjArgs(callback, name, ptr::null_mut::<ffi::PyObject>());
        ffi::Py_DECREF(callback);
        if !result.is_null() {
            ffi::Py_DECREF(result);
            return Ok(());
        }
        if ffi::PyErr_ExceptionMatches(ffi::PyExc_Exception) == 0 {
            return Err(());
        }
        ffi::PyErr_Clear();
        if let Some(session) = session::current() {
            session.status(Collector::Ops).errors.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Calls `then(name)` at the begin of every step from `seconds` from now on, or never again.
#[pyfunction]
fn ops_on_step(then: Option<Py<PyAny>>, seconds: f64) {
    let wait = Duration::try_from_secs_f64(seconds).map_or(u64::MAX, |wait| wait.as_nanos() as u64);
    DUE.store(elapsed().saturating_add(wait), Ordering::Relaxed);
    let new = then.map_or(ptr::null_mut(), Py::into_ptr);
    // SAFETY: attached. The old one goes last: that may run any code.
    unsafe {
        let old = std::mem::replace(&mut *ON_STEP.get(), new);
        ffi::Py_XDECREF(old);
    }
}

/// Writes an operator that has ended.
#[pyfunction]
fn op(name: &Bound<'_, PyString>, begin: u64, end: u64, args: &Bound<'_, PyString>) {
    let Some(session) = session::current() else { return };
    // SAFETY: attached, called without an exception set, both are `str`.
    guarded(Collector::Ops, (), || unsafe {
        let id = name_of(session, name.as_ptr());
        let inline = (id == NameId::INLINE).then(|| with_text(name.as_ptr(), |text, _| plain(text).into_owned()));
        let (args, was_cut) = with_text(args.as_ptr(), |text, was_cut| (text.to_owned(), was_cut));
        if was_cut {
            session.status(Collector::Ops).cut.fetch_add(1, Ordering::Relaxed);
        }
        let count = inline.as_deref().map_or(0, text_count) + text_count(&args);
        let Some(writing) = thread::writing(session, Collector::Ops) else { return };
        if !writing.reserve(count + 1, Collector::Ops) {
            return;
        }
        let name = inline.iter().flat_map(|text| text_records(TextRole::Name, text));
        name.chain(text_records(TextRole::Args, &args)).for_each(|words| writing.push(words));
        let (thread, value) = (writing.tid, end.saturating_sub(begin));
        let (kind, flags) = (Kind::Op as u16, count as u16);
        writing.push(Event { time: begin, value, thread, name: id, kind, flags, extra: 0 }.to_words());
    });
}

/// What the status page says about operators: on, off or failed, and why.
#[pyfunction]
fn ops_state(state: &str, message: &str) {
    if let Some(session) = session::current() {
        let state = match state {
            "on" => State::On,
            "failed" => State::Failed,
            _ => State::Off,
        };
        session.status(Collector::Ops).set(state, message);
    }
}

/// Adds the functions above to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<OpDispatch>()?;
    module.add_function(wrap_pyfunction!(ops_on_step, module)?)?;
    module.add_function(wrap_pyfunction!(op, module)?)?;
    module.add_function(wrap_pyfunction!(ops_state, module)?)
}
