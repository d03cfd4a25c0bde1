//! Calls functions once a module has been imported, whoever imports it and whenever: a finder on `sys.meta_path` that
//! finds nothing itself, one for all modules that are waited for. Native, and called as an object rather than by a method:
//! functions written in Python would stand in the program's tracebacks, and its tracers, profilers and coverage would count
//! their lines at every import.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Has the other finders find the module, and asks its loader to say when it is done.
#[pyclass(frozen, module = "inferscope._native")]
pub struct AfterImport {
    awaited: Mutex<HashMap<String, Awaited>>,
}

#[derive(Default)]
struct Awaited {
    then: Vec<Py<PyAny>>,
    /// The other finders are being asked for it just now.
    looking: bool,
}

type Found<'py> = PyResult<Option<Bound<'py, PyAny>>>;

#[pymethods]
impl AfterImport {
    #[new]
    fn new() -> AfterImport {
        AfterImport { awaited: Mutex::default() }
    }

    /// `then` is called without arguments once the module is there, and catches what it raises itself.
    fn add(&self, name: String, then: Py<PyAny>) {
        self.lock().entry(name).or_default().then.push(then);
    }

    /// Which modules it waits for.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.lock().keys().cloned().collect()
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
        let Some(wanted) = name.cast::<PyString>().ok().and_then(|name| name.to_str().ok()) else { return Ok(None) };
        if !slf.get().look(wanted) {
            return Ok(None);
        }
        let found = found_by_others(name, path, target);
        if let Some(awaited) = slf.get().lock().get_mut(wanted) {
            awaited.looking = false;
        }
        let found = found?;
        if let Some(spec) = &found {
            // A loader that takes no attribute does its work unheard: this module goes without.
            let _ = spec.getattr("loader").and_then(|loader| listen(slf, wanted, &loader));
        }
        Ok(found)
    }
}

impl AfterImport {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Awaited>> {
        self.awaited.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the others are to be asked for this module: it is waited for, and nobody asks them already.
    fn look(&self, name: &str) -> bool {
        self.lock().get_mut(name).is_some_and(|awaited| !std::mem::replace(&mut awaited.looking, true))
    }

    fn done(slf: &Bound<'_, Self>, name: &str) -> PyResult<()> {
        let (done, is_last) = {
            let mut awaited = slf.get().lock();
            (awaited.remove(name), awaited.is_empty())
        };
        if is_last {
            let finders = meta_path(slf.py())?;
            if finders.contains(slf)? {
                finders.call_method1("remove", (slf,))?;
            }
        }
        for then in done.map_or_else(Vec::new, |awaited| awaited.then) {
            then.call0(slf.py())?;
        }
        Ok(())
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

fn listen(finder: &Bound<'_, AfterImport>, name: &str, loader: &Bound<'_, PyAny>) -> PyResult<()> {
    // Only an attribute of the object itself can be taken away again.
    loader.getattr("__dict__")?;
    let execute = loader.getattr("exec_module")?.unbind();
    let (finder, name) = (finder.clone(), name.to_owned());
    let listener = Listener { finder: finder.clone().unbind(), name, loader: loader.clone().unbind(), execute };
    loader.setattr("exec_module", Py::new(finder.py(), listener)?)
}

/// Stands in for a loader's `exec_module` once.
#[pyclass(frozen, module = "inferscope._native")]
struct Listener {
    finder: Py<AfterImport>,
    name: String,
    loader: Py<PyAny>,
    execute: Py<PyAny>,
}

#[pymethods]
impl Listener {
    fn __call__(&self, py: Python<'_>, module: &Bound<'_, PyAny>) -> PyResult<()> {
        // The class has the real one. Another who waits for the same module may have taken this one away already.
        let _ = self.loader.bind(py).delattr("exec_module");
        self.execute.call1(py, (module,))?;
        AfterImport::done(self.finder.bind(py), &self.name)
    }
}

/// Adds the class to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<AfterImport>()
}
