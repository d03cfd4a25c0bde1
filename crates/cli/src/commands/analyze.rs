//! `inferscope analyze`: opens a trace, finds what holds it back, and prints or writes the report.

use crate::args::{Analyze, ReportFormat};
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::verdict::Verdict;
use crate::{open, output, rule_file, terminal};

pub fn run(settings: &Settings, analyze: &Analyze) -> Result<Ending, Failure> {
    if let (Some(path), None) = (&analyze.output, analyze.format) {
        // Told before a large trace is read.
        let hint = "choose one of these, or say what to write with --format";
        ReportFormat::of(path).map_err(|why| Failure::usage(format_args!("{}: {why}; {hint}", path.display())))?;
    }
    let rules = rule_file::load(analyze.rules.as_deref())?;
    let timeline = open::open(settings, analyze.trace.as_deref())?;
    let verdict = Verdict::of(timeline, analyze.step.as_deref(), &rules)?;
    match &analyze.output {
        Some(path) => {
            verdict.write_file(settings, path, analyze.format)?;
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
