//! The end of a recording: opens the trace that was just written, measures it, writes the report into its folder, and
//! tells in a few lines what there is to see.

use crate::config::Settings;
use crate::failure::Failure;
use crate::{open, output, terminal};
use analysis::Metrics;
use report::Style;
use std::path::{Path, PathBuf};
use timeline::Timeline;
use trace::tables::REPORT;

/// Rows in a report that is kept: more than fit on a screen.
const ROWS: usize = 30;

/// Never fails: the command's own exit matters more than our report. Returns where the report is.
pub fn finish(settings: &Settings, trace: &Path, notes: &[String], extra: Option<&Path>) -> Option<PathBuf> {
    match try_finish(settings, trace, extra) {
        Ok(report) => Some(report),
        Err(failure) => {
            eprintln!("inferscope: no report: {}", failure.message());
            notes.iter().for_each(|note| settings.say(note));
            settings.say(format_args!("the trace is in {}", trace.display()));
            None
        }
    }
}

fn try_finish(settings: &Settings, trace: &Path, extra: Option<&Path>) -> Result<PathBuf, Failure> {
    let timeline = open::read(settings, trace)?;
    let metrics = analysis::measure(&timeline);
    let report = trace.join(REPORT);
    let write = |path: &Path| -> Result<(), Failure> {
        let written = output::to_file(path, |mut out| {
            report::text::write(&timeline, &metrics, ROWS.max(settings.top), &Style::default(), &mut out)
        });
        written.map_err(|error| Failure::writing(path.display(), &error))
    };
    let kept = write(&report);
    if let Some(extra) = extra {
        write(extra)?;
    }
    kept?;
    tell(settings, &timeline, &metrics, trace);
    Ok(report)
}

fn tell(settings: &Settings, timeline: &Timeline, metrics: &Metrics, trace: &Path) {
    if settings.quiet() {
        return;
    }
    let style = terminal::stderr_style(&settings.color);
    // Nobody is left to read it if stderr is gone.
    _ = report::brief::write(timeline, metrics, &style, &mut std::io::stderr().lock());
    eprintln!("trace    {}", trace.display());
    eprintln!("look at  inferscope analyze {}", quoted(trace));
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
