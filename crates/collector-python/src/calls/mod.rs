//! Calls: begin and end of every Python function, and of C functions where wanted. Chooses the interpreter's fastest
//! way; the rest of the module is the same for all.

mod c_functions;
mod frames;
mod functions;
mod hook_object;
mod hooked_threads;
mod monitoring;
mod monitoring_tool;
mod open;
mod profile_hook;

use pyo3::prelude::*;
use trace::Ticks;
use trace::clock::{Mapping, Source, now};
use trace::status::{Collector, State};
use workload::call_filter::Filter;
use workload::session::Session;
use workload::settings::Calls;

/// Starts recording calls, if the settings say so. If it cannot, the status page says why and the workload goes on.
pub fn start(py: Python<'_>, session: &'static Session, package: &str) {
    let settings = &session.settings.recording;
    // What an earlier recording left in place, when its recorder went without a stop.
    stop(py);
    if settings.calls == Calls::Off {
        return;
    }
    // SAFETY: attached.
    unsafe { functions::prepare(Filter::new(&settings.include, &settings.exclude, package)) };
    open::set_shortest(ticks(settings.min_us));
    let with_c = settings.calls == Calls::WithC;
    let started = c_functions::prepare(py).and_then(|()| {
        if py.version_info() >= (3, 12) {
            monitoring_tool::start(py, with_c)
        } else {
            hooked_threads::start(py, with_c)
        }
    });
    let status = session.status(Collector::Calls);
    match started {
        Ok(note) => status.set(State::On, note),
        Err(error) => {
            stop(py);
            status.set(State::Failed, &error.value(py).to_string());
        }
    }
}

/// Stops, and leaves the interpreter as it was found.
pub fn stop(py: Python<'_>) {
    let stopped = if py.version_info() >= (3, 12) { monitoring_tool::stop(py) } else { hooked_threads::stop(py) };
    if stopped.is_err() {
        workload::guard::count_error(Collector::Calls);
    }
}

/// Microseconds in ticks of this process's clock.
fn ticks(microseconds: u64) -> u64 {
    if microseconds == 0 {
        return 0;
    }
    let mapping = Mapping::calibrate(Source::detect());
    let here = now();
    let second = 1_000_000_000;
    let nanos = mapping.nanos(Ticks(here + second)).0.saturating_sub(mapping.nanos(Ticks(here)).0).max(1);
    let ticks = u128::from(microseconds) * 1000 * u128::from(second) / u128::from(nanos);
    u64::try_from(ticks).unwrap_or(u64::MAX)
}

/// `__name__` of a module's globals.
fn module_name(globals: &Bound<'_, PyAny>) -> Option<String> {
    globals.get_item("__name__").ok()?.extract().ok()
}
