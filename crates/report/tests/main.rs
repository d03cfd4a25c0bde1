//! The tests of the reports in one program: linking one for each file would take longer than running them.

mod chrome_and_json;
mod damaged;
mod formats;
mod gpu;
mod json_round_trip;
mod memory;
mod memory_timelines;
mod plots;
mod snapshot;
mod text;
mod verdicts;
