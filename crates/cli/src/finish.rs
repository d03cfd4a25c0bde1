//! The end of a recording: opens the trace that was just written, looks at it, writes the reports into its folder, and
//! tells in a few lines what there is to see.

use crate::config::Settings;
use crate::failure::Failure;
use crate::unfinished::LastWords;
use crate::verdict::Verdict;
use crate::{open, terminal};
use analysis::user_rules::UserRule;
use std::path::{Path, PathBuf};
use trace::tables::{REPORT, REPORT_PAGE};

/// Never fails: the command's own exit matters more than our report. Returns where the report is.
pub fn finish(
    settings: &Settings,
    trace: &Path,
    notes: &[String],
    extra: Option<&Path>,
    rules: &[UserRule],
) -> Option<PathBuf> {
    // A trace that is large takes a while to look at, and whoever does not want to wait still wants to know where it is.
    let place = format!("interrupted before the report; look at the trace with `inferscope analyze {}`", quoted(trace));
    let _last_words = (!settings.quiet()).then(|| LastWords::new(&place));
    match try_finish(settings, trace, extra, rules) {
        Ok(report) => Some(report),
        Err(failure) => {
            terminal::say(format_args!("no report: {}", failure.message()));
            notes.iter().for_each(|note| settings.say(note));
            settings.say(format_args!("the trace is in {}", trace.display()));
            None
        }
    }
}

fn try_finish(settings: &Settings, trace: &Path, extra: Option<&Path>, rules: &[UserRule]) -> Result<PathBuf, Failure> {
    // Somebody waits for it.
    crate::memory::keep_what_is_freed();
    let verdict = Verdict::of(open::read(settings, trace)?, None, rules)?;
    let report = trace.join(REPORT);
    let page = trace.join(REPORT_PAGE);
    let kept = verdict.write_file(settings, &report, None).and(verdict.write_file(settings, &page, None));
    // Without it there are still those in the trace's folder.
    if let Some(Err(failure)) = extra.map(|extra| verdict.write_file(settings, extra, None)) {
        terminal::say(failure.message());
    }
    kept?;
    tell(settings, &verdict, trace, &page);
    Ok(report)
}

fn tell(settings: &Settings, verdict: &Verdict, trace: &Path, page: &Path) {
    if settings.quiet() {
        return;
    }
    let style = terminal::stderr_style(&settings.color);
    let Verdict { timeline, metrics, diagnosis } = verdict;
    // Nobody is left to read it if stderr is gone.
    _ = report::brief::write(timeline, metrics, diagnosis, &style, &mut std::io::stderr().lock());
    terminal::tell(format_args!("report   {}\nlook at  inferscope analyze {}\n", page.display(), quoted(trace)));
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
