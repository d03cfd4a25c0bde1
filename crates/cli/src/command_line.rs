//! The whole command line, as `--help` shows it: every command with its arguments.

use crate::args::{Analyze, Attach, Config, Every, Export, Record, Run};
use crate::commands;
use crate::config::Layer;
use clap::{Parser, Subcommand};

/// Profiler for PyTorch inference and any Python or CUDA program: shows where the time goes.
#[derive(Parser, Debug)]
#[command(name = "inferscope", version, propagate_version = false)]
#[command(after_help = "Examples:
  inferscope run serve.py                  record a program; output and exit code are unchanged
  inferscope run --calls -- python -m app  also record every Python call
  inferscope attach 4711 --duration 30     record a running process
  inferscope analyze                       report on the newest trace again
  inferscope export trace --format chrome --output trace.json
                                           open it in ui.perfetto.dev
  inferscope verify --fix gc-freeze -- serve.py
                                           measure a fix without editing code
  inferscope doctor                        what can be recorded on this machine

Settings: flags, then INFERSCOPE_* variables, then .inferscope.yaml, then
defaults. `inferscope config show` shows each value and where it comes from.")]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,

    #[command(flatten)]
    every: Every,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run a command and record it until it exits
    Run(Run),
    /// Record a running process: stacks, threads and memory
    Attach(Attach),
    /// Watch a program while it runs, with the diagnosis of its last seconds
    Top(commands::top::Top),
    /// Report the bottlenecks in a trace, as text, Markdown, HTML or JSON
    Analyze(Analyze),
    /// Compare two traces: what got slower, where, and whether it is noise
    Diff(commands::diff::Diff),
    /// Fail if a trace exceeds limits (for CI): exit code 4
    Check(commands::check::Check),
    /// List, explain and validate rules, built-in and your own
    Rules(commands::rules::Rules),
    /// Predict the gain of a change by replaying the recorded steps
    Whatif(commands::whatif::Whatif),
    /// Run a command with and without a fix, and compare the gain with the prediction
    Verify(commands::verify::Verify),
    /// Export a trace for another tool
    Export(Export),
    /// Draw the memory of a trace, a snapshot or telemetry, as SVG, PNG or HTML
    Plot(commands::plot::Plot),
    /// Track memory of a command, a process or the machine, and explain a death by memory
    Track(commands::track::Track),
    /// Show memory of a command, a process or the machine while it runs
    Monitor(commands::monitor::Monitor),
    /// Query memory telemetry: sessions, events, alerts, OOMs
    Query(commands::query::Query),
    /// Write figures, risks and advice about memory to a folder
    Diagnose(commands::diagnose::Diagnose),
    /// Show this machine, its GPUs and the installed frameworks
    Info(commands::info::Info),
    /// Show what can be recorded on this machine, and why something cannot
    Doctor,
    /// Show the settings and where each value comes from
    Config(Config),
    /// Print a completion script for a shell
    Completions { shell: clap_complete::Shell },
    /// The recorder that the Python package starts for its own process
    #[command(hide = true)]
    Record(Record),
}

impl Arguments {
    /// The settings that every command takes.
    pub fn layer(&self) -> Layer {
        self.every.layer()
    }
}
