//! `inferscope track`: memory of a command, a process or the machine over time, kept as telemetry; and why a command died of it.

use super::watch::{self, Options};
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use clap::Args;
use std::path::{Path, PathBuf};

/// Where telemetry goes if nothing else is said.
pub const FOLDER: &str = "inferscope-telemetry";

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope track -- python serve.py      until it ends; exit code unchanged
  inferscope track --pid 4711 --interval 1 --warn 85% --critical 95%
  inferscope track --duration 60           the whole machine
  inferscope query summary                 what was tracked

Samples from outside, so the program is not slowed down. A program that dies of
memory leaves a bundle in the folder that says why: oom_dump_*/metadata.json")]
pub struct Track {
    #[command(flatten)]
    options: Options,

    /// Keep telemetry in this folder [default: ./inferscope-telemetry]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

pub fn run(settings: &Settings, track: &Track) -> Result<Ending, Failure> {
    let folder = track.output.as_deref().unwrap_or(Path::new(FOLDER));
    watch::watch(settings, &track.options, Some(folder))
}
