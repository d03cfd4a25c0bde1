//! Inside the workload: hooks that CPython calls with the GIL held, which write records into the segment and return. Here is
//! the whole Python surface of the library, as a list; `python/inferscope` wraps it for people.

mod after_import;
mod arguments;
mod callable;
mod calls;
mod cuda;
mod docs;
mod entries;
mod gc;
mod gil;
mod json;
mod layers;
mod ops;
mod refs;
mod scopes;
mod stack;
mod steps;
mod text;
mod thread;
mod wrong_arguments;

use pyo3::prelude::*;
use std::sync::Once;
use trace::settings::internal;
use trace::status::Collector;
use workload::library::Library;
use workload::settings::{Group, Recording, Settings};
use workload::{guard, session};

#[pymodule]
#[pyo3(name = "_native")]
fn native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    guard::silence();
    // SAFETY: attached, and the module is alive.
    if !unsafe { scopes::add_to(module.as_ptr()) } {
        return Err(PyErr::fetch(module.py()));
    }
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(start, module)?)?;
    module.add_function(wrap_pyfunction!(stop, module)?)?;
    module.add_function(wrap_pyfunction!(is_recording, module)?)?;
    module.add_function(wrap_pyfunction!(setting, module)?)?;
    module.add_function(wrap_pyfunction!(allow, module)?)?;
    module.add_function(wrap_pyfunction!(discard, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(status, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_start, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_release, module)?)?;
    module.add_function(wrap_pyfunction!(memory_start, module)?)?;
    layers::add_to(module)?;
    entries::add_to(module)?;
    ops::add_to(module)?;
    stack::add_to(module)?;
    after_import::add_to(module)?;
    Ok(())
}

/// Starts recording as `INFERSCOPE_*` say, for a program described by its name and Python's version. `package` is the
/// folder of the Python package, whose own calls are not recorded. Returns why it cannot, or None.
#[pyfunction]
fn start(py: Python<'_>, program: String, version: String, package: String) -> Option<String> {
    if session::current().is_some() {
        return None;
    }
    let Some(settings) = Settings::from_environment() else {
        return Some(format!("{} is not set: no recorder is there", internal::SEGMENTS));
    };
    match session::start(Library::Python, settings, program, version) {
        Ok(session) => {
            scopes::begin_ids(session.segment.number());
            static HOOK: Once = Once::new();
            let mut hooked = Ok(());
            HOOK.call_once(|| hooked = follow_forks(py));
            if hooked.is_err() {
                guard::count_error(Collector::Scopes);
            }
            gc::start(py, session);
            calls::start(py, session, &package);
            // SAFETY: attached.
            unsafe { *PACKAGE.get() = package };
            None
        }
        Err(reason) => Some(reason),
    }
}

static PACKAGE: gil::Gil<String> = gil::Gil::new(String::new());

fn follow_forks(py: Python<'_>) -> PyResult<()> {
    let hooks = pyo3::types::PyDict::new(py);
    hooks.set_item("after_in_child", py.import("inferscope._native")?.getattr("after_fork")?)?;
    py.import("os")?.call_method("register_at_fork", (), Some(&hooks))?;
    Ok(())
}

/// Stops recording in this process. What was recorded stays for the recorder.
#[pyfunction]
fn stop(py: Python<'_>) {
    calls::stop(py);
    if gc::stop(py).is_err() {
        guard::count_error(Collector::Gc);
    }
    session::stop();
    // SAFETY: attached.
    let package = unsafe { PACKAGE.get() }.clone();
    py.detach(|| cuda::stop(&package));
}

/// Whether events are recorded now.
#[pyfunction]
fn is_recording() -> bool {
    session::current().is_some()
}

/// What the recorder asked for, by the field of its row in the table of settings: as it would be written. None when no recorder is
/// there.
#[pyfunction]
fn setting(field: &str) -> Option<String> {
    let row = Recording::ROWS.iter().find(|row| row.field == field)?;
    Some(Settings::from_environment()?.recording.text(row))
}

/// Lets a recorder that is not our parent read this process's memory.
#[pyfunction]
fn allow(pid: u32) {
    session::allow(pid);
}

/// The recorder has read everything: gives the stopped recording's memory back.
#[pyfunction]
fn discard() {
    session::discard();
}

/// For `os.register_at_fork`: a child of a recorded process is recorded too, in a segment of its own.
#[pyfunction]
fn after_fork(py: Python<'_>) {
    match session::after_fork() {
        Some(Ok(session)) => {
            gc::start(py, session);
            // SAFETY: attached.
            let package = unsafe { PACKAGE.get() }.clone();
            calls::start(py, session, &package);
            cuda::memory_after_fork(&package);
        }
        Some(Err(_)) => stop(py),
        None => {}
    }
}

/// What each collector is doing: (name, state, message).
#[pyfunction]
fn status() -> Vec<(&'static str, &'static str, String)> {
    let Some(session) = session::current() else { return Vec::new() };
    let line = |collector: Collector| {
        let status = session.status(collector);
        let state = match status.state() {
            trace::status::State::Off => "off",
            trace::status::State::On => "on",
            trace::status::State::Failed => "failed",
        };
        (collector.name(), state, status.message())
    };
    Collector::ALL.into_iter().map(line).collect()
}

/// Records the GPU from now on in a process that may already use CUDA. Returns why it cannot, or None.
#[pyfunction]
fn gpu_start(py: Python<'_>) -> Option<String> {
    // SAFETY: attached.
    let package = unsafe { PACKAGE.get() }.clone();
    // Loading CUPTI takes milliseconds and no Python.
    py.detach(|| cuda::start(&package))
}

/// PyTorch has been imported: blocks of its allocators are recorded, as the settings say. `load`: also where no CUDA is in use.
#[pyfunction]
fn memory_start(py: Python<'_>, load: bool) {
    // SAFETY: attached.
    let package = unsafe { PACKAGE.get() }.clone();
    py.detach(|| cuda::memory_start(&package, load));
}

/// Lets another profiler have CUPTI: what the GPU does is no longer recorded. `who` goes into the report.
#[pyfunction]
fn gpu_release(py: Python<'_>, who: String) {
    // SAFETY: attached.
    let package = unsafe { PACKAGE.get() }.clone();
    py.detach(|| cuda::release(&package, &who));
}
