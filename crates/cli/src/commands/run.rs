//! `inferscope run`: starts a command, records it until it ends, and ends as it did.

use crate::args::Run;
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::finish::finish;

pub fn run(settings: &Settings, run: &Run) -> Result<Ending, Failure> {
    // A fault in them is told before anything is recorded.
    let rules = crate::rule_file::load(run.rules.as_deref())?;
    let outcome = recorder::run(&settings.recording, &run.argv)?;
    match &outcome.trace {
        Some(trace) => _ = finish(settings, trace, &outcome.notes, run.report.as_deref(), &rules),
        None => outcome.notes.iter().for_each(|note| settings.say(note)),
    }
    Ok(outcome.exit.into())
}
