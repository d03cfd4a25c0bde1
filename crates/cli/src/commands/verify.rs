//! `inferscope verify`: runs a command with and without a fix, in turn, and holds what was measured against what the analysis
//! predicted. What a run is is in `crate::verify`, what the numbers mean in `diagnosis::verify`.

use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::rule_file::RuleFile;
use crate::verdict::Verdict;
use crate::verify::fixes::{self, Unknown};
use crate::verify::runs::{Detail, Runner};
use crate::{open, output, terminal};
use analysis::StepSource;
use analysis::phrase;
use clap::{Args, ValueEnum};
use diagnosis::Diagnosis;
use diagnosis::fixes::{ChosenFix, Switch};
use diagnosis::verify::{Experiment, FixState, Measure, Prediction, Run};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope verify --list                 the fixes, what they change, their risk
  inferscope verify --fix gc-pauses -- serve.py
  inferscope verify --fix tf32 --rounds 10 -- python generate.py
  inferscope verify --fix threads=4 --trace trace -- serve.py
                                           the prediction from a recording
  inferscope verify --fix affinity=0-7 --format json -- serve.py | jq .verdict

Runs the command once recorded, for the prediction, then in rounds without and
with the fix in turn. The time is that of the steps that the program marks, else
of the whole process. What the command prints is kept from the terminal. Exit
code 1: the command fails, or the fix could not be applied; 2: there is no such
fix, or it needs a code change.")]
pub struct Verify {
    /// The fix, or the code of the rule that it answers; some take a value, as in threads=4
    #[arg(long, value_name = "RULE", required_unless_present = "list")]
    fix: Option<String>,

    /// Pairs of runs
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..=1000))]
    rounds: u16,

    /// Take the prediction from this trace instead of a recorded run
    #[arg(long, value_name = "TRACE")]
    trace: Option<PathBuf>,

    /// The step or scope to time [default: chosen automatically; `inferscope analyze` says why]
    #[arg(long, value_name = "NAME")]
    step: Option<String>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    format: VerifyFormat,

    /// Keep the recordings and what the command printed in this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// List the fixes that can be switched on
    #[arg(long, conflicts_with_all = ["fix", "argv"])]
    list: bool,

    /// The command and its arguments
    #[arg(trailing_var_arg = true, value_name = "COMMAND", required_unless_present = "list")]
    argv: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum VerifyFormat {
    /// For a terminal
    Text,
    /// For programs
    Json,
}

pub fn run(settings: &Settings, verify: &Verify) -> Result<Ending, Failure> {
    let style = terminal::stdout_style(&settings.color);
    if verify.list {
        output::write_to(None, |out| match verify.format {
            VerifyFormat::Text => report::verify::list(&style, out),
            VerifyFormat::Json => report::verify::json::list(out),
        })?;
        return Ok(Ending::FINE);
    }
    let word = verify.fix.as_deref().unwrap_or_default();
    let chosen = fixes::choose(word).map_err(|unknown| match unknown {
        Unknown::Edit(text) | Unknown::Word(text) => Failure::usage(text),
    })?;
    // A trace that cannot be read is told before anything is run.
    let before = verify.trace.as_deref().map(|path| diagnose(settings, path, verify.step.as_deref())).transpose()?;
    let folder = Folder::create(verify.output.as_deref())?;
    let runner = Runner { settings, argv: &verify.argv, folder: &folder.path, step: verify.step.as_deref() };
    let tried = try_out(settings, verify, &chosen, before, &runner)?;
    output::write_to(None, |out| match verify.format {
        VerifyFormat::Text => report::verify::write(&tried, &style, out),
        VerifyFormat::Json => report::verify::json::write(&tried, out),
    })?;
    Ok(Ending::FINE)
}

fn diagnose(settings: &Settings, trace: &Path, step: Option<&str>) -> Result<Diagnosis, Failure> {
    Ok(Verdict::of(open::open(settings, trace)?, step, &RuleFile::default())?.diagnosis)
}

fn try_out<'a>(
    settings: &Settings,
    verify: &Verify,
    chosen: &'a ChosenFix,
    before: Option<Diagnosis>,
    runner: &Runner,
) -> Result<Experiment<'a>, Failure> {
    let given = before.is_some();
    let diagnosis = match before {
        Some(diagnosis) => diagnosis,
        None => {
            settings.say("recording the command once, for the prediction");
            let trace = runner.record("recorded", Detail::Full, &[])?;
            diagnose(settings, &trace, verify.step.as_deref())?
        }
    };
    let prediction = Prediction::of(&diagnosis, chosen);
    settings.say(report::verify::announce(&prediction));
    // As little as shows the steps.
    let detail = match diagnosis.steps.source {
        StepSource::Step | StepSource::Scope | StepSource::Entry | StepSource::Turn | StepSource::Whole => {
            Detail::Steps
        }
        StepSource::Nvtx => Detail::Nvtx,
        StepSource::Sequence => Detail::Launches,
    };
    if given {
        settings.say("running the command once, so that no round pays for cold caches");
        runner.measure("warm-up", detail, &[])?;
    }
    let variables = fixes::environment(chosen);
    let (mut without, mut with): (Vec<Run>, Vec<Run>) = Default::default();
    for round in 1..=usize::from(verify.rounds) {
        // Without and with, with and without: what changes slowly falls on both alike.
        for fixed in if round % 2 == 1 { [false, true] } else { [true, false] } {
            let name = format!("round-{round:03}-{}", if fixed { "with" } else { "without" });
            let run = runner.measure(&name, detail, if fixed { &variables } else { &[] })?;
            if fixed {
                applied(chosen, &run.fix)?;
            }
            if fixed { with.push(run) } else { without.push(run) }
        }
        let measure = Measure::of(&without, &with);
        let [a, b] = [without.last(), with.last()].map(|run| run.map_or(0.0, |run| measure.of_run(run)));
        let [a, b] = [a, b].map(|ns| phrase::duration(ns as u64));
        settings.say(format_args!("round {round} of {}: {a} without, {b} with", verify.rounds));
    }
    Ok(Experiment::new(chosen, prediction, without, with))
}

/// A run without the fix in it measures nothing.
fn applied(chosen: &ChosenFix, state: &FixState) -> Result<(), Failure> {
    match (state, chosen.fix.switch) {
        (FixState::Applied(_), _) | (FixState::Unknown, Switch::Environment(_)) => Ok(()),
        (FixState::NotApplied(why), _) => {
            Err(Failure::error(format_args!("{} was not applied, so nothing was measured: {why}", chosen.fix.name)))
        }
        (FixState::Unknown, Switch::Process) => Err(Failure::error(format_args!(
            "{} was not applied, so nothing was measured: no Python process of this command could be reached",
            chosen.fix.name
        ))),
    }
}

/// Where the runs go: away at the end, unless they are to be kept.
struct Folder {
    path: PathBuf,
    kept: bool,
}

impl Folder {
    fn create(asked: Option<&Path>) -> Result<Folder, Failure> {
        let own = || std::env::temp_dir().join(format!("inferscope-verify-{}", std::process::id()));
        let folder = Folder { path: asked.map_or_else(own, Path::to_owned), kept: asked.is_some() };
        let failed = |why: &dyn std::fmt::Display| {
            let path = folder.path.display().to_string();
            Failure::error(format!("cannot write the recordings to {path}: {why}. Choose another place with --output."))
        };
        // In the temporary folder, which others write to, it must be a new one.
        let made = match asked {
            Some(path) => std::fs::create_dir_all(path),
            None => std::fs::create_dir(&folder.path),
        };
        made.map_err(|error| failed(&error))?;
        if std::fs::read_dir(&folder.path).map_err(|error| failed(&error))?.next().is_some() {
            return Err(failed(&"it is not empty"));
        }
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.kept {
            // What is left in the temporary folder does no harm, and nobody can do more about it.
            _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
