//! `inferscope diff A B`: opens two traces, lays them side by side, and tells what got slower and whether that is noise.
//! Gates of `--fail-on` decide the exit code.

use crate::args::{Reading, ReportFormat, Tables};
use crate::config::{Layer, Settings};
use crate::confine::Output;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::open::Source;
use crate::rule_file::RuleFile;
use crate::verdict::Verdict;
use crate::{open, output, step_name, terminal};
use clap::{Args, ValueEnum};
use diagnosis::compare::gate::GateState;
use diagnosis::compare::{self, Gate, GateResult, Side};
use report::comparison::Titles;
use std::path::{Path, PathBuf};
use timeline::Timeline;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope diff before after
  inferscope diff before after --fail-on \"step_p50 > +5%\" --fail-on \"kernels > +0\"
  inferscope diff before after --output diff.md   for a pull request
  inferscope diff old.json new.json --format json | jq .answer

With a sign, a gate limits the change from A to B; without one, the value of B.
A change within the noise of the steps fails no gate. Exit code 4: a gate failed;
5: the traces cannot be compared.")]
pub struct Diff {
    /// The baseline trace: a folder, or a file of another profiler
    #[arg(value_name = "A")]
    a: PathBuf,

    /// The trace to compare with the baseline
    #[arg(value_name = "B")]
    b: PathBuf,

    /// The step or scope to compare [default: chosen automatically from those that both have]
    #[arg(long, value_name = "NAME")]
    step: Option<String>,

    /// Fail if this holds, such as "step_p50 > +5%"; may be repeated
    #[arg(long, value_name = "GATE", allow_hyphen_values = true)]
    fail_on: Vec<String>,

    /// Output format [default: text; with --output, by file extension, else markdown]
    #[arg(short, long, value_name = "FORMAT")]
    format: Option<DiffFormat>,

    /// Write to this file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    reading: Reading,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DiffFormat {
    /// For a terminal
    Text,
    /// For a pull request
    #[value(alias = "md")]
    Markdown,
    /// For programs; schema/comparison.schema.json describes it (of memory snapshots, schema/memory_comparison.schema.json)
    Json,
}

impl Diff {
    pub fn layer(&self) -> Layer {
        self.reading.layer().over(self.tables.layer())
    }

    fn file(&self) -> Option<&Path> {
        output::file(self.output.as_deref())
    }

    /// What was asked for, or what the file's name asks for: as [`ReportFormat`], but there is no page.
    fn format(&self) -> Result<DiffFormat, String> {
        let Some(path) = self.file().filter(|_| self.format.is_none()) else {
            return Ok(self.format.unwrap_or(DiffFormat::Text));
        };
        match ReportFormat::of(path) {
            Ok(ReportFormat::Text) => Ok(DiffFormat::Text),
            Ok(ReportFormat::Markdown) => Ok(DiffFormat::Markdown),
            Ok(ReportFormat::Json) => Ok(DiffFormat::Json),
            Ok(ReportFormat::Html) | Err(_) => {
                let ending = path.extension().unwrap_or_default().to_string_lossy();
                let hint = "use one of these, or choose with --format";
                Err(format!("{}: a comparison is written to .md, .json or .txt, not .{ending}; {hint}", path.display()))
            }
        }
    }
}

pub fn run(settings: &Settings, diff: &Diff) -> Result<Ending, Failure> {
    // A slip in a name or in a gate is told before large files are read.
    let format = diff.format().map_err(Failure::usage)?;
    let gates: Vec<Gate> =
        diff.fail_on.iter().map(|text| Gate::parse(text)).collect::<Result<_, _>>().map_err(Failure::usage)?;
    let (a, b) = verdicts(settings, diff)?;
    if let Some(ending) = snapshots(settings, diff, format, &a, &b)? {
        return Ok(ending);
    }
    let comparison = compare::compare(side(&a), side(&b)).map_err(|why| {
        let hint = "name a step that both have with --step, or record both in the same way";
        Failure::bad_input(format!("{} and {} cannot be compared: {why}; {hint}", diff.a.display(), diff.b.display()))
    })?;
    let results: Vec<GateResult> = gates.iter().map(|gate| gate.judge(&comparison)).collect();
    let (a, b) = (diff.a.display().to_string(), diff.b.display().to_string());
    let titles = Titles { a: &a, b: &b };
    let style = match diff.file() {
        Some(_) => report::Style::default(),
        None => terminal::stdout_style(&settings.color),
    };
    output::write_to(diff.file(), |mut out| match format {
        DiffFormat::Text => report::comparison::write(&comparison, &titles, &results, settings.top, &style, &mut out),
        DiffFormat::Markdown => {
            report::comparison::markdown::write(&comparison, &titles, &results, settings.top, &mut out)
        }
        DiffFormat::Json => report::comparison::json::write(&comparison, &titles, &results, &mut out),
    })?;
    if let Some(path) = diff.file() {
        settings.say(format_args!("wrote {}", path.display()));
    }
    end(&results)
}

/// Two snapshots of memory are compared by what they hold. None: they are none.
fn snapshots(
    settings: &Settings,
    diff: &Diff,
    format: DiffFormat,
    a: &Verdict,
    b: &Verdict,
) -> Result<Option<Ending>, Failure> {
    let of_memory = [a, b].map(|one| analysis::memory::is_all(&one.timeline));
    let (left, right) = (diff.a.display().to_string(), diff.b.display().to_string());
    match of_memory {
        [false, false] => return Ok(None),
        [true, true] => {}
        [first, _] => {
            let (snapshot, other) = if first { (&left, &right) } else { (&right, &left) };
            let why = format!("{snapshot} is a memory snapshot, {other} is not: compare it with another snapshot");
            return Err(Failure::bad_input(why));
        }
    }
    if let Some(gate) = diff.fail_on.first() {
        return Err(Failure::bad_input(format!("gate {gate}: no data (memory snapshots have no such metrics)")));
    }
    let comparison = compare::memory::compare_memory(side(a), side(b));
    let titles = Titles { a: &left, b: &right };
    let style = match diff.file() {
        Some(_) => report::Style::default(),
        None => terminal::stdout_style(&settings.color),
    };
    output::write_to(diff.file(), |mut out| match format {
        DiffFormat::Text => report::comparison::memory::text(&comparison, &titles, settings.top, &style, &mut out),
        DiffFormat::Markdown => report::comparison::memory::markdown(&comparison, &titles, settings.top, &mut out),
        DiffFormat::Json => report::comparison::memory::json(&comparison, &titles, &mut out),
    })?;
    if let Some(path) = diff.file() {
        settings.say(format_args!("wrote {}", path.display()));
    }
    Ok(Some(Ending::FINE))
}

fn end(results: &[GateResult]) -> Result<Ending, Failure> {
    let of = |state| results.iter().filter(move |result| result.state == state);
    for failed in of(GateState::Failed) {
        terminal::say(format_args!("gate failed: {}: {}", failed.text, failed.said));
    }
    if let Some(open) = of(GateState::Undecided).next() {
        return Err(Failure::bad_input(format!("gate {}: no data ({})", open.text, open.said)));
    }
    Ok(if of(GateState::Failed).next().is_some() { Ending::Code(4) } else { Ending::FINE })
}

fn side(verdict: &Verdict) -> Side<'_> {
    Side { timeline: &verdict.timeline, metrics: &verdict.metrics, diagnosis: &verdict.diagnosis }
}

/// Both with the same steps, where they have steps in common.
fn verdicts(settings: &Settings, diff: &Diff) -> Result<(Verdict, Verdict), Failure> {
    let output = diff.file().map_or(Output::None, Output::File);
    let [mut first, mut second] = open::confined(settings, [Some(&diff.a), Some(&diff.b)], output)?;
    let of = |source: &mut Source| {
        let timeline = source.read(settings)?;
        if let Some(step) = &diff.step
            && !has(&timeline, step)
        {
            return Err(step_name::not_found(&timeline, step, source.path.display()));
        }
        Verdict::of(timeline, diff.step.as_deref(), &RuleFile::default())
    };
    let (a, b) = (of(&mut first)?, of(&mut second)?);
    if compare::incomparable(&a.diagnosis, &b.diagnosis).is_none() {
        return Ok((a, b));
    }
    // Each chose the step that takes most of its own time; one of the two may be in both.
    for name in [a.diagnosis.steps.name.clone(), b.diagnosis.steps.name.clone()] {
        if has(&a.timeline, &name) && has(&b.timeline, &name) {
            settings.say(format_args!("comparing \"{name}\", the step that both have"));
            let again = |verdict: Verdict| Verdict::of(verdict.timeline, Some(&name), &RuleFile::default());
            return Ok((again(a)?, again(b)?));
        }
    }
    Ok((a, b))
}

fn has(timeline: &Timeline, step: &str) -> bool {
    analysis::Steps::find(timeline, Some(step)).not_found.is_none()
}
