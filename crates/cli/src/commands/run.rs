//! `inferscope run`: starts a command, records it until it ends, and ends as it did.

use crate::args::Run;
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::finish::{check_report, finish, without_memory};
use crate::post_mortem::HostMemory;
use analysis::spelling::nearest_of;
use recorder::Calls;
use std::path::{Path, PathBuf};

pub fn run(settings: &Settings, run: &Run) -> Result<Ending, Failure> {
    // A fault in them is told before anything is recorded.
    let rules = crate::rule_file::load(settings, run.rules.as_deref())?;
    check_report(settings, run.report.as_deref())?;
    let mut memory = HostMemory::new();
    let samples = settings.recording.memory_hz > 0.0;
    let look = |pid| {
        if samples {
            memory.look(pid)
        }
    };
    let outcome =
        recorder::run_and(&settings.recording, &run.argv, look).map_err(|error| not_started(settings, run, error))?;
    let ending = Ending::from(outcome.exit);
    let whole = match &outcome.trace {
        Some(trace) => {
            without_memory(trace, ending.code());
            let finished = finish(settings, trace, &outcome.notes, run.report.as_deref(), &rules);
            memory.explain(settings, ending, trace, finished.verdict.as_ref());
            finished.whole
        }
        None => {
            outcome.notes.iter().for_each(|note| settings.say(note));
            run.report.is_none()
        }
    };
    // Whoever asked for a file and goes by the exit code must not look for it in vain.
    Ok(if ending == Ending::FINE && !whole { Ending::Code(1) } else { ending })
}

/// Why the command was not started, with what may have been meant.
fn not_started(settings: &Settings, run: &Run, error: recorder::Error) -> Failure {
    match &error {
        recorder::Error::CommandNotFound { program } if program == "c" && settings.recording.calls != Calls::Off => {
            let rest: Vec<_> = run.argv[1..].iter().map(|word| word.to_string_lossy()).collect();
            Failure::usage(format_args!(
                "`--calls c` takes c for the command to run: to record calls of C functions too, write `--calls=c {}`",
                rest.join(" ")
            ))
        }
        recorder::Error::NoSuchFile { file } => match similar_file(Path::new(file)) {
            Some(near) => Failure::from(error).with_hint(format_args!("did you mean {}?", near.display())),
            None => Failure::from(error),
        },
        _ => Failure::from(error),
    }
}

/// A file of nearly that name in the same folder.
fn similar_file(missing: &Path) -> Option<PathBuf> {
    let wanted = missing.file_name()?.to_str()?;
    let folder = missing.parent().filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    let files =
        entries.flatten().filter(|entry| entry.path().is_file() && entry.path().extension() == missing.extension());
    let names: Vec<String> = files.filter_map(|entry| entry.file_name().into_string().ok()).take(MOST_FILES).collect();
    nearest_of(wanted, names.iter().map(String::as_str)).map(|near| missing.with_file_name(near))
}

/// In a larger folder the rest is not looked at.
const MOST_FILES: usize = 1000;
