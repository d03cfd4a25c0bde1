//! The command line, as `--help` teaches it. The flags of settings are made from their rows, in `setting_flags`.

mod export_format;
mod report_format;
mod setting_flags;

use crate::config::{Layer, Settings};
use crate::failure::Failure;
use clap::{Args, Subcommand};
pub use export_format::{ExportFormat, names as export_formats};
use report_format::report_file;
pub use report_format::{DataFormat, ReportFormat};
use setting_flags::SettingFlags;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope run serve.py --port 80        .py: with the Python on PATH
  inferscope run --output trace -- ./start.sh
                                           Python children are followed
  inferscope run --calls --include mypackage --min-us 100 serve.py
  inferscope run --layers --overhead-budget 2% generate.py
                                           GPU work by nn.Module, cheaply
  inferscope run -- ./cuda_server          any CUDA program; no Python needed

Ends as the command does: with its exit code, or by the same signal. 127: command
not found; 126: it cannot be executed; 1: it succeeded, but the file of --report
could not be written.")]
pub struct Run {
    #[command(flatten)]
    pub recording: Recording,

    /// Also write the report to this file: .md, .html, .json or .txt
    #[arg(long, value_name = "FILE", value_parser = report_file())]
    pub report: Option<PathBuf>,

    /// Your rules file [default: the nearest .inferscope_rules.yaml]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,

    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub argv: Vec<OsString>,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope attach 4711                   until it ends, or Ctrl-C
  inferscope attach 4711 --duration 30      half a minute of it

Records stacks, threads, memory, and clocks, power and memory of GPUs. Scopes,
calls and kernels are recorded from inside: they need `inferscope run`.")]
#[command(mut_args(|arg| { let inside = is_inside_only(&arg); arg.hide(inside) }))]
pub struct Attach {
    /// The process to record
    #[arg(value_name = "PID", value_parser = pid)]
    pub pid: u32,

    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub duration: Option<std::time::Duration>,

    #[command(flatten)]
    pub recording: Recording,

    /// Also write the report to this file: .md, .html, .json or .txt
    #[arg(long, value_name = "FILE", value_parser = report_file())]
    pub report: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct Record {
    /// Written when recording has begun: what the process has to know of it
    #[arg(long, value_name = "FILE")]
    pub ready: PathBuf,

    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: u32,

    #[command(flatten)]
    pub recording: Recording,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope analyze                       the newest run of this folder
  inferscope analyze trace --top 40 | less
  inferscope analyze trace --output report.html
                                           a page with timeline and flame graph
  inferscope analyze trace --format json | jq .bottleneck

A trace whose recorder was killed is completed first, from what is left in shared
memory.")]
pub struct Analyze {
    /// A trace folder, or a torch.profiler, Nsight Systems (SQLite) or InferScope JSON file [default: the newest run of this folder]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,

    /// Output format [default: text; with --output, by file extension, else markdown]
    #[arg(short, long, value_name = "FORMAT")]
    pub format: Option<ReportFormat>,

    /// Write the report to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The step or scope to explain [default: chosen automatically; the report says why]
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,

    /// Your rules file [default: the nearest .inferscope_rules.yaml]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,

    #[command(flatten)]
    tables: Tables,

    #[command(flatten)]
    reading: Reading,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope export trace --output trace.pftrace
                                           open it in ui.perfetto.dev
  inferscope export trace --output trace.speedscope.json
                                           open it in speedscope.app
  inferscope export trace --output trace.pb.gz
                                           go tool pprof -http=: trace.pb.gz
  inferscope export trace --format json | jq '.events | length'

File extensions: .pftrace perfetto, .chrome.json chrome, .speedscope.json
speedscope, .pb.gz pprof, .folded collapsed, .json json, a folder parquet.")]
pub struct Export {
    /// The trace's folder [default: the newest run of this folder]
    #[arg(value_name = "TRACE")]
    pub trace: Option<PathBuf>,

    /// Output format [default: by the file extension of --output]
    #[arg(short, long, value_name = "FORMAT")]
    pub format: Option<ExportFormat>,

    /// Write to this file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    #[command(flatten)]
    pub reading: Reading,
}

#[derive(Args, Debug)]
pub struct Config {
    #[command(subcommand)]
    pub action: ConfigAction,
}

#[derive(Subcommand, Debug)]
pub enum ConfigAction {
    /// Show every setting, its value and where that comes from
    Show,
}

/// What to record: the settings of a recording.
pub type Recording = SettingFlags<setting_flags::Recording>;
/// How much a trace may take while it is read.
pub type Reading = SettingFlags<setting_flags::Reading>;
/// How much is printed of what is long.
pub type Tables = SettingFlags<setting_flags::Tables>;
/// What every command takes.
pub type Every = SettingFlags<setting_flags::Every>;

impl Recording {
    /// The settings of a recording: these flags over `base`, and both over what the environment and the file say.
    pub fn settings(&self, base: Layer) -> Result<Settings, Failure> {
        let mut settings = Settings::load(base.over(self.layer()))?;
        if self.folder.is_some() {
            settings.recording.output = self.folder.clone();
        }
        Ok(settings)
    }
}

/// What is recorded only from inside the process: `attach` neither takes nor shows it.
fn is_inside_only(arg: &clap::Arg) -> bool {
    trace::settings::all().any(|row| row.inside_only && arg.get_id() == row.field)
}

impl Analyze {
    pub fn layer(&self) -> Layer {
        self.reading.layer().over(self.tables.layer())
    }
}

/// Of which the names are not asked: several processes may have one.
pub fn pid(text: &str) -> Result<u32, String> {
    let pid = text.parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| "must be a process id: `pgrep -f NAME` finds it".into())
}

/// A number of seconds, with a fraction if you like, up to a year.
pub fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 31_536_000.0 {
        return Ok(std::time::Duration::from_secs_f64(seconds));
    }
    Err("must be more than 0 seconds and at most a year (31536000)".into())
}

#[cfg(test)]
mod tests;
