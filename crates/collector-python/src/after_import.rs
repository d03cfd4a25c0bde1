//! Calls a function once a module has been imported, whoever imports it and whenever: a finder on `sys.meta_path` that
//! finds nothing itself. Native, and called as an object rather than by a method: functions written in Python would stand
//! in the program's tracebacks, and its tracers, profilers and coverage would count their lines at every import.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Has the other finders find the module, and asks its loader to say when it is done.
#[pyclass(frozen, module = "inferscope._native")]
pub struct AfterImport {
    name: String,
    /// None once it has been called.
    then: Mutex<Option<Py<PyAny>>>,
    looking: AtomicBool,
}

type Found<'py> = PyResult<Option<Bound<'py, PyAny>>>;

#[pymethods]
impl AfterImport {
    /// `then` is called without arguments and catches what it raises itself.
    #[new]
    fn new(name: String, then: Py<PyAny>) -> AfterImport {
        AfterImport { name, then: Mutex::new(Some(then)), looking: AtomicBool::new(false) }
    }

    /// Which module it waits for.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// What the import system calls: this object.
    #[getter]
    fn find_spec<'py>(slf: Bound<'py, Self>) -> Bound<'py, Self> {
        slf
    }

    #[pyo3(signature = (name, path=None, target=None))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyAny>,
        path: Option<Bound<'py, PyAny>>,
        target: Option<Bound<'py, PyAny>>,
    ) -> Found<'py> {
        let this = slf.get();
        let wanted = name.cast::<PyString>().is_ok_and(|name| *name == this.name.as_str());
        if !wanted || this.is_done() || this.looking.swap(true, Ordering::Relaxed) {
            return Ok(None);
        }
        let found = found_by_others(name, path, target);
        this.looking.store(false, Ordering::Relaxed);
        let found = found?;
        if let Some(spec) = &found {
            // A loader that takes no attribute does its work unheard: this module goes without.
            let _ = spec.getattr("loader").and_then(|loader| listen(slf, &loader));
        }
        Ok(found)
    }
}

impl AfterImport {
    fn is_done(&self) -> bool {
        self.then.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }

    fn done(slf: &Bound<'_, Self>) -> PyResult<()> {
        let then = slf.get().then.lock().unwrap_or_else(PoisonError::into_inner).take();
        let finders = meta_path(slf.py())?;
        if finders.contains(slf)? {
            finders.call_method1("remove", (slf,))?;
        }
        then.map_or(Ok(()), |then| then.call0(slf.py()).map(|_| ()))
    }
}

fn meta_path(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    py.import("sys")?.getattr("meta_path")
}

fn found_by_others<'py>(
    name: &Bound<'py, PyAny>,
    path: Option<Bound<'py, PyAny>>,
    target: Option<Bound<'py, PyAny>>,
) -> Found<'py> {
    // A copy: a finder may remove itself while it is asked.
    let finders = PyList::empty(name.py());
    finders.call_method1("extend", (meta_path(name.py())?,))?;
    for finder in finders {
        let Ok(find) = finder.getattr("find_spec") else { continue };
        let spec = find.call1((name, &path, &target))?;
        if !spec.is_none() {
            return Ok(Some(spec));
        }
    }
    Ok(None)
}

fn listen(finder: &Bound<'_, AfterImport>, loader: &Bound<'_, PyAny>) -> PyResult<()> {
    // Only an attribute of the object itself can be taken away again.
    loader.getattr("__dict__")?;
    let execute = loader.getattr("exec_module")?.unbind();
    let listener = Listener { finder: finder.clone().unbind(), loader: loader.clone().unbind(), execute };
    loader.setattr("exec_module", Py::new(finder.py(), listener)?)
}

/// Stands in for a loader's `exec_module` once.
#[pyclass(frozen, module = "inferscope._native")]
struct Listener {
    finder: Py<AfterImport>,
    loader: Py<PyAny>,
    execute: Py<PyAny>,
}

#[pymethods]
impl Listener {
    fn __call__(&self, py: Python<'_>, module: &Bound<'_, PyAny>) -> PyResult<()> {
        // The class has the real one. Another who waits for the same module may have taken this one away already.
        let _ = self.loader.bind(py).delattr("exec_module");
        self.execute.call1(py, (module,))?;
        AfterImport::done(self.finder.bind(py))
    }
}

/// Adds the class to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AfterImport>()
}
