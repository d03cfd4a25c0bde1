//! Which reading of a recording gives the steps: what it explains, how regular it is, what it lies in, what runs between.

mod bad_input;
mod entries;
mod kinds;
mod libraries;
mod marks;
mod scores;

use analysis::steps::{Differs, StepSource, Steps};
use timeline::Timeline;

fn text(text: &str) -> Timeline {
    Timeline::from_text(text).unwrap_or_else(|error| panic!("{error}"))
}

fn find(said: &str) -> Steps {
    Steps::find(&text(said), None)
}

/// What is chosen: its source, name and number.
fn chosen(steps: &Steps) -> (StepSource, &str, usize) {
    (steps.source, &steps.name, steps.steps.len())
}

/// So many rounds of 10 ms in which the thread runs all the time.
fn rounds(count: u32, inside: &str) -> String {
    format!("track main\n repeat {count} every 10ms\n samples 0..10ms every 250us active gil main:1\n {inside}\n end\n")
}

/// A launch at a moment of a round, in tenths of a millisecond, and how long its kernel runs.
fn launch(name: &str, at: u32, dur: u32) -> String {
    let us = 100 * at;
    format!(
        "api cudaLaunchKernel {us}us..{}us\n stream 7\n kernel {name} {}us..{}us\n",
        us + 50,
        us + 60,
        us + 60 + 100 * dur
    )
}
