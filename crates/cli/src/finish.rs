//! The end of a recording: opens the trace that was just written, looks at it, writes the reports into its folder, and
//! tells in a few lines what there is to see.

use crate::config::Settings;
use crate::failure::Failure;
use crate::output::Rights;
use crate::rule_file::RuleFile;
use crate::unfinished::LastWords;
use crate::verdict::Verdict;
use crate::{open, output, terminal};
use std::path::{Path, PathBuf};
use timeline::parallel;
use trace::tables::{REPORT, REPORT_PAGE};

/// What came of it.
pub struct Finished {
    /// Where the report is.
    pub report: Option<PathBuf>,
    /// All that was asked for was written.
    pub whole: bool,
    /// None: the trace cannot be read.
    pub verdict: Option<Verdict>,
}

/// A report that cannot be written is told before anything is recorded for it.
pub fn check_report(settings: &Settings, extra: Option<&Path>) -> Result<(), Failure> {
    let Some(extra) = extra else { return Ok(()) };
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    // The trace's own folder is there by then.
    if settings.recording.output.as_deref().is_some_and(|output| absolute(extra).parent() == Some(&absolute(output))) {
        return Ok(());
    }
    output::check(extra).map_err(|error| {
        Failure::error(format_args!("cannot write {}: {error}. Choose another place with --report.", extra.display()))
    })
}

/// If there is not enough memory for the report: what is said then, and how the command ends.
pub fn without_memory(trace: &Path, code: i32) {
    let text = format!("no report: not enough memory. The trace is complete: {}", trace.display());
    crate::memory::when_none_is_left(&text, code);
}

/// Never fails: the command's own exit matters more than our report.
pub fn finish(settings: &Settings, trace: &Path, notes: &[String], extra: Option<&Path>, rules: &RuleFile) -> Finished {
    // A trace that is large takes a while to look at, and whoever does not want to wait still wants to know where it is.
    let place =
        format!("interrupted before the report was written; to see it, run `inferscope analyze {}`", quoted(trace));
    let _last_words = (!settings.quiet()).then(|| LastWords::new(&place));
    match try_finish(settings, trace, extra, rules) {
        Ok((report, whole, verdict)) => Finished { report: Some(report), whole, verdict: Some(verdict) },
        Err(failure) => {
            terminal::say(format_args!("no report: {}", failure.message()));
            notes.iter().for_each(|note| settings.say(note));
            settings.say(format_args!("the trace is in {}", trace.display()));
            Finished { report: None, whole: extra.is_none(), verdict: None }
        }
    }
}

/// Where the report is, whether the one that was asked for is there too, and what they are of.
fn try_finish(
    settings: &Settings,
    trace: &Path,
    extra: Option<&Path>,
    rules: &RuleFile,
) -> Result<(PathBuf, bool, Verdict), Failure> {
    // Somebody waits for it.
    crate::memory::keep_what_is_freed();
    let verdict = Verdict::of(open::read(settings, trace)?, None, rules)?;
    let report = trace.join(REPORT);
    let page = trace.join(REPORT_PAGE);
    let (mut text, mut picture) = (Ok(()), Ok(()));
    let size = verdict.timeline.slices.len() + verdict.timeline.gpu.work.len();
    let write_text = Box::new(|| text = verdict.write_file(settings, &report, None, Rights::Private));
    parallel::run(size, vec![write_text], || picture = verdict.write_file(settings, &page, None, Rights::Private));
    let kept = text.and(picture);
    // Without it there are still those in the trace's folder.
    let wanted = extra.map_or(Ok(()), |extra| verdict.write_file(settings, extra, None, Rights::Usual));
    if let Err(failure) = &wanted {
        terminal::say(failure.message());
    }
    kept?;
    tell(settings, &verdict, trace, &page);
    Ok((report, wanted.is_ok(), verdict))
}

fn tell(settings: &Settings, verdict: &Verdict, trace: &Path, page: &Path) {
    if settings.quiet() {
        return;
    }
    let style = terminal::stderr_style(&settings.color);
    let Verdict { timeline, metrics, diagnosis } = verdict;
    // Nobody is left to read it if stderr is gone.
    _ = report::reports::brief::write(timeline, metrics, diagnosis, &style, &mut std::io::stderr().lock());
    terminal::tell(format_args!("report   {}\ndetails  inferscope analyze {}\n", page.display(), quoted(trace)));
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c));
    if plain { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
