//! `inferscope analyze`: opens a trace, finds what holds it back, and prints or writes the report.

use crate::args::{Analyze, ReportFormat};
use crate::config::Settings;
use crate::confine::Output;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::output::Rights;
use crate::verdict::Verdict;
use crate::{open, output, rule_file, terminal};
use std::path::Path;
use timeline::{Note, Timeline};

pub fn run(settings: &Settings, analyze: &Analyze) -> Result<Ending, Failure> {
    let file = output::file(analyze.output.as_deref());
    if let (Some(path), None) = (file, analyze.format) {
        // Told before a large trace is read.
        let hint = "use one of these, or choose with --format";
        ReportFormat::of(path).map_err(|why| Failure::usage(format_args!("{}: {why}; {hint}", path.display())))?;
    }
    let rules = rule_file::load(settings, analyze.rules.as_deref())?;
    let output = file.map_or(Output::None, Output::File);
    let [mut source] = open::confined(settings, [analyze.trace.as_deref()], output)?;
    let timeline = source.read(settings)?;
    refuse_nothing(&source.path, &timeline)?;
    let verdict = Verdict::of(timeline, analyze.step.as_deref(), &rules)?;
    match file {
        Some(path) => {
            verdict.write_file(settings, path, analyze.format, Rights::Usual)?;
            settings.say(format_args!("wrote {}", path.display()));
        }
        None => {
            let style = terminal::stdout_style(&settings.color);
            let format = analyze.format.unwrap_or(ReportFormat::Text);
            output::write_to(None, |out| verdict.write(settings, format, &style, out))?;
        }
    }
    Ok(Ending::FINE)
}

/// A file without an event. A recording of ours that has none is analysed: it says why.
fn refuse_nothing(path: &Path, timeline: &Timeline) -> Result<(), Failure> {
    let nothing = timeline.slices.is_empty()
        && timeline.samples.is_empty()
        && timeline.counters.is_empty()
        && timeline.gpu.is_empty()
        && timeline.memory.is_empty();
    if !nothing || timeline.info.recorder.is_empty() && path.is_dir() {
        return Ok(());
    }
    let why = timeline.notes.first().map_or_else(|| "The file holds no events.".to_owned(), Note::said);
    Err(Failure::bad_input(format_args!("nothing to analyze in {}. {why}", path.display())))
}
