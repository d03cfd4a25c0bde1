//! The `inferscope` command: arguments in, exit code out. Each command is a file in `commands`; what they say when they
//! cannot do their work is one sentence on stderr.

// They panic when nobody reads: `output` and `terminal` do not.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod args;
mod command_line;
mod commands;
mod config;
mod confine;
mod doctor;
mod ending;
mod failure;
mod finish;
mod found_file;
mod interrupt;
mod landlock;
mod memory;
mod newest;
mod open;
mod output;
mod post_mortem;
mod rule_file;
mod step_name;
mod terminal;
mod unfinished;
mod verdict;
mod verify;
mod yaml;

use clap::{CommandFactory, Parser};
use command_line::{Arguments, Command};
use config::Settings;
use ending::Ending;
use failure::Failure;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: memory::Allocator = memory::Allocator;

fn main() -> ExitCode {
    let ending = Arguments::try_parse().map_err(Failure::from).and_then(run).unwrap_or_else(|failure| failure.tell());
    ending.leave()
}

fn run(arguments: Arguments) -> Result<Ending, Failure> {
    let base = arguments.layer();
    match &arguments.command {
        Command::Run(run) => commands::run::run(&run.recording.settings(base)?, run),
        Command::Attach(attach) => commands::attach::run(&attach.recording.settings(base)?, attach),
        Command::Record(record) => commands::record::run(&record.recording.settings(base)?, record),
        Command::Top(top) => commands::top::run(&Settings::load(base.over(top.reading.layer()))?, top),
        Command::Analyze(analyze) => commands::analyze::run(&Settings::load(base.over(analyze.layer()))?, analyze),
        Command::Diff(diff) => commands::diff::run(&Settings::load(base.over(diff.layer()))?, diff),
        Command::Check(check) => commands::check::run(&Settings::load(base.over(check.layer()))?, check),
        Command::Rules(rules) => commands::rules::run(&Settings::load(base)?, rules),
        Command::Whatif(whatif) => commands::whatif::run(&Settings::load(base.over(whatif.layer()))?, whatif),
        Command::Verify(verify) => commands::verify::run(&Settings::load(base)?, verify),
        Command::Export(export) => commands::export::run(&Settings::load(base.over(export.reading.layer()))?, export),
        Command::Plot(plot) => commands::plot::run(&Settings::load(base.over(plot.reading.layer()))?, plot),
        Command::Track(track) => commands::track::run(&Settings::load(base)?, track),
        Command::Monitor(monitor) => commands::monitor::run(&Settings::load(base)?, monitor),
        Command::Query(query) => commands::query::run(&Settings::load(base)?, query),
        Command::Diagnose(diagnose) => commands::diagnose::run(&Settings::load(base.over(diagnose.layer()))?, diagnose),
        Command::Info(info) => commands::info::run(&Settings::load(base)?, info),
        Command::Doctor => commands::doctor::run(&Settings::load(base)?),
        Command::Config(config) => commands::config::run(&Settings::load(base)?, config),
        Command::Completions { shell } => commands::completions::run(*shell, &mut Arguments::command()),
    }
}
