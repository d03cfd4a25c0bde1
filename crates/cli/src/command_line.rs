//! The whole command line, as `--help` shows it: every command with its arguments.

use crate::args::{Analyze, Attach, Config, Export, Record, Run};
use crate::commands;
use crate::config::Layer;
use clap::{Parser, Subcommand};

/// Records any Python or CUDA program, and tells where its time went.
#[derive(Parser, Debug)]
#[command(name = "inferscope", version, propagate_version = false)]
#[command(after_help = "Examples:
  inferscope run serve.py                  record a program; it does not notice
  inferscope run --calls -- python -m app  every Python call, too
  inferscope attach 4711 --duration 30     a process that runs already
  inferscope analyze                       look at the newest trace again
  inferscope export trace --format chrome --output trace.json
                                           open it in ui.perfetto.dev
  inferscope verify --fix gc-freeze -- serve.py
                                           try a fix without editing anything
  inferscope doctor                        what can be recorded here

Settings: flags, then INFERSCOPE_* variables, then .inferscope.yaml, then
defaults. `inferscope config show` says which is which.")]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,

    /// Only errors on stderr
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say more on stderr about what is done
    #[arg(short, long, global = true)]
    pub verbose: bool,

    /// When to use colour: auto, always or never
    #[arg(long, global = true, value_name = "WHEN")]
    pub color: Option<String>,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Start a command and record it until it ends
    Run(Run),
    /// Record a process that runs already: its stacks, threads and memory
    Attach(Attach),
    /// Say what holds a trace back, as text, Markdown, a page or JSON
    Analyze(Analyze),
    /// Say what got slower from one trace to another, where, and whether it is noise
    Diff(commands::diff::Diff),
    /// Hold a trace against limits, for CI: exit code 4 when one does not hold
    Check(commands::check::Check),
    /// Show, explain and check rules, ours and yours
    Rules(commands::rules::Rules),
    /// Replay the recorded steps with something changed, and say what that would gain
    Whatif(commands::whatif::Whatif),
    /// Run a command with and without a fix, and say whether it gains what was predicted
    Verify(commands::verify::Verify),
    /// Write every event of a trace for another tool
    Export(Export),
    /// Say what can be recorded on this machine, and why not
    Doctor,
    /// Show the settings, and where each comes from
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
        let mut layer = Layer::default();
        layer.flag("color", "--color", self.color.as_deref());
        layer.flag("log_level", "--quiet", self.quiet.then_some("error"));
        layer.flag("log_level", "--verbose", self.verbose.then_some("debug"));
        layer
    }
}
