//! Ranges of `nn.Module`s as records. Which module is at work, and when this is looked at, `inferscope._layers` decides: it
//! does so for few calls of a model only, so plain functions do here.

use super::scopes::{innermost, record};
use super::text::name_of;
use pyo3::prelude::*;
use pyo3::types::PyString;
use trace::status::{Collector, State};
use trace::{Kind, clock};
use workload::guard::guarded;
use workload::session;

/// An open range: its id, when it began, and which session knows it.
type Open = (u32, u64, u32);

/// Adds the functions below to the module.
pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(layer_begin, module)?)?;
    module.add_function(wrap_pyfunction!(layer_end, module)?)?;
    module.add_function(wrap_pyfunction!(layers_state, module)?)
}

/// Opens a range inside the range whose id is `parent`, or where that is 0 inside the scope around. None when nobody records.
#[pyfunction]
fn layer_begin(name: &Bound<'_, PyString>, parent: u32) -> Option<Open> {
    let session = session::current()?;
    guarded(Collector::Layers, None, || {
        let id = record::next_id();
        // SAFETY: attached, called without an exception set, and the name is a `str`.
        let began = unsafe {
            let name = (name.as_ptr(), name_of(session, name.as_ptr()));
            let parent = if parent == 0 { innermost(session) } else { parent };
            record::begin(session, Kind::LayerBegin, name, id, parent, None)
        };
        Some((id, began, session.generation))
    })
}

/// Closes a range now, or at `at` (of the recording's own clock) where it is only now seen that it has ended. Gives the time.
#[pyfunction]
#[pyo3(signature = (name, open, at=None))]
fn layer_end(name: &Bound<'_, PyString>, open: Open, at: Option<u64>) -> u64 {
    let (id, began, generation) = open;
    let now = at.unwrap_or_else(clock::now).max(began);
    if let Some(session) = session::current()
        && session.generation == generation
    {
        // SAFETY: as for `layer_begin`.
        guarded(Collector::Layers, (), || unsafe {
            let name = (name.as_ptr(), name_of(session, name.as_ptr()));
            record::end(session, Kind::LayerEnd, name, id, began, now);
        });
    }
    now
}

/// What the status page says about layers: on, or failed and why.
#[pyfunction]
fn layers_state(on: bool, message: &str) {
    if let Some(session) = session::current() {
        session.status(Collector::Layers).set(if on { State::On } else { State::Failed }, message);
    }
}
