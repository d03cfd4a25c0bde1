//! `inferscope run`: starts a command, records it until it ends, and ends as it did.

use crate::args::Run;
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::finish::{check_report, finish, without_memory};

pub fn run(settings: &Settings, run: &Run) -> Result<Ending, Failure> {
    // A fault in them is told before anything is recorded.
    let rules = crate::rule_file::load(settings, run.rules.as_deref())?;
    check_report(settings, run.report.as_deref())?;
    let outcome = recorder::run(&settings.recording, &run.argv)?;
    let ending = Ending::from(outcome.exit);
    let whole = match &outcome.trace {
        Some(trace) => {
            without_memory(trace, ending.code());
            finish(settings, trace, &outcome.notes, run.report.as_deref(), &rules).whole
        }
        None => {
            outcome.notes.iter().for_each(|note| settings.say(note));
            run.report.is_none()
        }
    };
    // Whoever asked for a file and goes by the exit code must not look for it in vain.
    Ok(if ending == Ending::FINE && !whole { Ending::Code(1) } else { ending })
}
