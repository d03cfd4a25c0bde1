//! `inferscope record`: the recorder that the Python package starts for its own process. Nobody types it.

use crate::args::Record;
use crate::config::{LogLevel, Settings};
use crate::ending::Ending;
use crate::failure::Failure;
use crate::finish::finish;

pub fn run(settings: &Settings, record: &Record) -> Result<Ending, Failure> {
    // It shares no terminal with anybody: what it says goes to a log that is read only when it fails.
    let silent = Settings { log_level: LogLevel::Error, ..settings.clone() };
    // A fault in the user's rules must not cost the recording; `inferscope analyze` tells of it.
    let rules = crate::rule_file::load(&silent, None).unwrap_or_default();
    let done = |trace: &std::path::Path, goes_on: bool| {
        if goes_on {
            timeline::parallel::use_one_core();
        }
        finish(&silent, trace, &[], None, &rules).report
    };
    recorder::record(&silent.recording, &record.ready, record.pid, done)?;
    Ok(Ending::FINE)
}
