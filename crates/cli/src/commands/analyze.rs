//! `inferscope analyze`: opens a trace, measures it, and prints the summary.

use crate::args::Analyze;
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::{open, output, terminal};
use report::Style;

pub fn run(settings: &Settings, analyze: &Analyze) -> Result<Ending, Failure> {
    let timeline = open::open(settings, analyze.trace.as_deref())?;
    let metrics = analysis::measure(&timeline);
    let style = match &analyze.output {
        Some(_) => Style::default(),
        None => terminal::stdout_style(&settings.color),
    };
    output::write_to(analyze.output.as_deref(), |mut out| {
        report::text::write(&timeline, &metrics, settings.top, &style, &mut out)
    })?;
    Ok(Ending::FINE)
}
