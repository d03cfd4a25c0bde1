//! `inferscope diagnose`: what the memory of telemetry, a trace or a snapshot comes to, with its risks, as a folder of JSON that can be handed on.

use crate::args::{Reading, ReportFormat};
use crate::commands::query;
use crate::config::{Layer, Settings};
use crate::confine::{Needs, Output};
use crate::ending::Ending;
use crate::failure::Failure;
use crate::open::Source;
use crate::rule_file::RuleFile;
use crate::verdict::Verdict;
use crate::{memory, open, output};
use clap::{Args, ValueEnum};
use diagnosis::memory_figures;
use report::Style;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use telemetry::Event;
use telemetry::risk::{Figures, Folder, Gathered};

/// Where it is written if nothing else is said.
const FOLDER: &str = "inferscope-diagnosis";
/// Events that are handed on, the newest.
const MOST_EVENTS: usize = 3_000;
/// The exit code of `--fail-on risk`.
const AT_RISK: i32 = 3;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope diagnose inferscope-telemetry
  inferscope diagnose snapshot.pickle --output memory-diagnosis
  inferscope diagnose trace --fail-on risk       exit code 3 if there is a risk

Writes diagnostic_summary.json with figures, risks (memory ran out, at least 85 %
of the device in use, at least 30 % of what is reserved not handed out) and advice,
and beside it report.json, telemetry_timeline.json, environment.json, manifest.json.")]
pub struct Diagnose {
    /// A telemetry folder or JSON file (.json, .jsonl), a trace, or a memory snapshot
    #[arg(value_name = "PATH", default_value = crate::commands::track::FOLDER)]
    path: PathBuf,

    /// Write to this folder, which must not exist
    #[arg(short, long, value_name = "DIR", default_value = FOLDER)]
    output: PathBuf,

    /// End with exit code 3 if there is a risk
    #[arg(long, value_name = "WHAT")]
    fail_on: Option<FailOn>,

    #[command(flatten)]
    reading: Reading,
}

impl Diagnose {
    pub fn layer(&self) -> Layer {
        self.reading.layer()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum FailOn {
    Risk,
}

/// What was found, of whichever source.
struct Found {
    figures: Figures,
    suggestions: Vec<String>,
    events: Vec<Event>,
    environment: Value,
    report: Value,
}

pub fn run(settings: &Settings, diagnose: &Diagnose) -> Result<Ending, Failure> {
    let found = match query::is_telemetry(&diagnose.path) {
        true => {
            let mut needs = Needs::default();
            needs.read(&diagnose.path);
            needs.output(Output::Folder(parent(&diagnose.output)));
            memory::limit(settings.max_memory);
            needs.confine();
            of_telemetry(settings, diagnose)?
        }
        false => of_file(settings, diagnose)?,
    };
    let folder = Folder {
        source: &diagnose.path.display().to_string(),
        time_ns: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64),
        figures: &found.figures,
        suggestions: &found.suggestions,
        events: &found.events,
        environment: found.environment,
        report: found.report,
    };
    folder.write(&diagnose.output).map_err(|error| {
        Failure::writing(diagnose.output.display(), &error).with_hint("choose another folder with --output")
    })?;
    let risks = found.figures.risks();
    output::write_to(None, |out| {
        let lines = report::telemetry::diagnosis(&found.figures, &found.suggestions);
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    })?;
    settings.say(format_args!("wrote {}", diagnose.output.display()));
    Ok(if diagnose.fail_on.is_some() && risks.any() { Ending::Code(AT_RISK) } else { Ending::FINE })
}

fn of_telemetry(settings: &Settings, diagnose: &Diagnose) -> Result<Found, Failure> {
    let (mut gathered, mut events) = (Gathered::default(), VecDeque::new());
    query::read(&diagnose.path, &mut |event| {
        gathered.add(&event);
        if events.len() == MOST_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
    })?;
    let figures = gathered.finish();
    // No grade from no data.
    if figures.backend.is_empty() && figures.ooms == 0 {
        let hint = "track for longer, or sample more often: `inferscope track --interval 0.02 -- COMMAND`";
        return Err(Failure::bad_input(format_args!("{} has no sample in it", diagnose.path.display())).with_hint(hint));
    }
    let mut report = Vec::new();
    query::overview(settings, &diagnose.path, true, &mut report)?;
    let suggestions = report::telemetry::advice(figures.risks());
    let host = events.back().map(|event| event.source.host.clone());
    let report = serde_json::from_slice(&report).unwrap_or(Value::Null);
    Ok(Found { figures, suggestions, events: events.into(), environment: json!({ "host": host }), report })
}

/// A recording, or telemetry as JSON.
fn of_file(settings: &Settings, diagnose: &Diagnose) -> Result<Found, Failure> {
    let output = Output::Folder(parent(&diagnose.output));
    let [source] = open::confined(settings, [Some(diagnose.path.as_path())], output)?;
    match query::is_telemetry_json(&source.path) {
        true => of_telemetry(settings, diagnose),
        false => of_recording(settings, diagnose, source),
    }
}

fn of_recording(settings: &Settings, diagnose: &Diagnose, mut source: Source) -> Result<Found, Failure> {
    let verdict = Verdict::of(source.read(settings)?, None, &RuleFile::default())?;
    let of = memory_figures::of(&verdict.timeline, &verdict.diagnosis);
    if of.backend.is_empty() && of.ooms == 0 {
        let hint = "record with a GPU, or track host memory: `inferscope track -- COMMAND`";
        return Err(
            Failure::bad_input(format_args!("{} has no GPU memory in it", diagnose.path.display())).with_hint(hint)
        );
    }
    let figures = Figures {
        backend: of.backend,
        allocated: of.allocated,
        reserved: of.reserved,
        peak: of.peak,
        used: of.used,
        total: of.total,
        ooms: of.ooms,
    };
    let actions = memory_figures::findings(&verdict.diagnosis).filter_map(|finding| finding.actions.first());
    let mut suggestions: Vec<String> = actions.map(|action| action.text().to_owned()).collect();
    if suggestions.is_empty() {
        suggestions = report::telemetry::advice(figures.risks());
    }
    let mut report = Vec::new();
    verdict
        .write(settings, ReportFormat::Json, &Style::default(), &mut report)
        .map_err(|error| Failure::writing(diagnose.output.display(), &error))?;
    let info = &verdict.timeline.info;
    let environment = json!({ "host": info.host.hostname, "kernel": info.host.kernel, "software": info.software });
    let report = serde_json::from_slice(&report).unwrap_or(Value::Null);
    Ok(Found { figures, suggestions, events: Vec::new(), environment, report })
}

/// Where the folder is made.
fn parent(folder: &Path) -> &Path {
    folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
