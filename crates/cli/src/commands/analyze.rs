//! `inferscope analyze`: opens a trace, finds what holds it back, and prints or writes the report.

use crate::args::{Analyze, ReportFormat};
use crate::commands::query;
use crate::config::Settings;
use crate::confine::{Needs, Output};
use crate::ending::Ending;
use crate::failure::Failure;
use crate::output::Rights;
use crate::verdict::Verdict;
use crate::{memory, open, output, rule_file, terminal};
use std::path::Path;
use timeline::{Note, Timeline};

pub fn run(settings: &Settings, analyze: &Analyze) -> Result<Ending, Failure> {
    if let Some(path) = analyze.trace.as_deref().filter(|path| query::is_telemetry(path)) {
        let mut needs = Needs::default();
        needs.read(path);
        memory::limit(settings.max_memory);
        let confined = needs.confine();
        settings.debug(|| format!("confined by Landlock: {confined}"));
        return telemetry(settings, analyze, path);
    }
    let file = output::file(analyze.output.as_deref());
    if let (Some(path), None) = (file, analyze.format) {
        // Told before a large trace is read.
        let hint = "use one of these, or choose with --format";
        ReportFormat::of(path).map_err(|why| Failure::usage(format_args!("{}: {why}; {hint}", path.display())))?;
    }
    let rules = rule_file::load(settings, analyze.rules.as_deref())?;
    let output = file.map_or(Output::None, Output::File);
    let [mut source] = open::confined(settings, [analyze.trace.as_deref()], output)?;
    if query::is_telemetry_json(&source.path) {
        return telemetry(settings, analyze, &source.path);
    }
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

/// What `inferscope track` wrote, or telemetry of another tool: it has no steps and no findings, and is shown as `query` shows it.
fn telemetry(settings: &Settings, analyze: &Analyze, path: &Path) -> Result<Ending, Failure> {
    let as_json = match (analyze.output.as_deref(), analyze.format) {
        (None, None | Some(ReportFormat::Text)) => false,
        (None, Some(ReportFormat::Json)) => true,
        _ => {
            let why = "memory telemetry is shown as text, or with --format json, and written to no file";
            return Err(Failure::usage(why).with_hint("`inferscope query` has CSV and JSON of single events"));
        }
    };
    let mut shown = Vec::new();
    query::overview(settings, path, as_json, &mut shown)?;
    output::write_to(None, |out| out.write_all(&shown))?;
    Ok(Ending::FINE)
}

/// A file without an event. A recording of ours that has none is analysed: it says why.
fn refuse_nothing(path: &Path, timeline: &Timeline) -> Result<(), Failure> {
    let nothing = timeline.slices.is_empty()
        && timeline.samples.is_empty()
        && timeline.counters.is_empty()
        && timeline.gpu.is_empty()
        && timeline.memory.is_empty();
    if !nothing || timeline.info.recorded_by.is_ours() && path.is_dir() {
        return Ok(());
    }
    let why = timeline.notes.first().map_or_else(|| "The file holds no events.".to_owned(), Note::said);
    Err(Failure::bad_input(format_args!("nothing to analyze in {}. {why}", path.display())))
}
