//! `inferscope monitor`: memory of a command, a process or the machine, a line a sample, and nothing kept.

use super::watch::{self, Options};
use crate::config::Settings;
use crate::ending::Ending;
use crate::failure::Failure;
use clap::Args;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope monitor                       the whole machine, until Ctrl-C
  inferscope monitor --pid 4711 --interval 1 --duration 30
  inferscope monitor --warn 85% -- python serve.py

Shows samples and alerts and keeps nothing: `inferscope track` keeps them, and
explains a death by memory.")]
pub struct Monitor {
    #[command(flatten)]
    options: Options,
}

pub fn run(settings: &Settings, monitor: &Monitor) -> Result<Ending, Failure> {
    watch::watch(settings, &monitor.options, None)
}
