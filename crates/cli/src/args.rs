//! The command line, as `--help` teaches it. Values of settings stay text here: `config` reads them together with those of
//! the environment and the file, so that each has one meaning and one error.

mod export_format;
mod reading;
mod report_format;

use crate::config::{Layer, Settings};
use crate::failure::Failure;
use clap::{Args, Subcommand};
pub use export_format::{ExportFormat, names as export_formats};
pub use reading::Reading;
use report_format::report_file;
pub use report_format::{DataFormat, ReportFormat};
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
  inferscope attach 4711 --duration 30 --rate 250

Records stacks, threads, memory, and clocks, power and memory of GPUs. Scopes,
calls and kernels are recorded from inside: they need `inferscope run`.")]
#[command(mut_args(|arg| { let inside = INSIDE_ONLY.contains(&arg.get_id().as_str()); arg.hide(inside) }))]
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

/// What is recorded only from inside the process: flags that `attach` neither takes nor shows.
const INSIDE_ONLY: [&str; 7] = ["calls", "include", "exclude", "min_us", "layers", "gpu_detail", "overhead_budget"];

/// What to record: the flags of settings.
#[derive(Args, Debug)]
pub struct Recording {
    /// Write the trace to this folder [default: a new one in ./inferscope-traces]
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,

    /// Stack samples per second, 1 to 1000 [default: 100]
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    rate: Option<String>,

    /// Do not sample stacks
    #[arg(long, conflicts_with_all = ["rate", "native"])]
    no_stacks: bool,

    /// Also sample native (C/C++/Rust) frames; `=false` overrides a settings file
    #[arg(long, value_name = "true", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    native: Option<String>,

    /// Record every Python call; `=c` also calls of C functions
    #[arg(long, value_name = "c", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    calls: Option<String>,

    /// Record only calls in these modules, packages or path patterns
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,

    /// Skip calls in these modules, packages or path patterns
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,

    /// Skip calls shorter than this
    #[arg(long, value_name = "MICROSECONDS", allow_negative_numbers = true)]
    min_us: Option<String>,

    /// Shared memory per process; CUDA programs use as much again, up to 64 [default: 100]
    #[arg(long, value_name = "MB", allow_negative_numbers = true)]
    trace_size_mb: Option<String>,

    /// Memory and thread readings per second; 0 turns them off [default: 10]
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    memory_hz: Option<String>,

    /// CUDA detail: off, kernel (GPU work only), launch (and its launch calls), all (every CUDA call) [default: launch]
    #[arg(long, value_name = "DETAIL")]
    gpu_detail: Option<String>,

    /// Record CUDA in windows so that recording slows the program by at most this on average; auto: 10% (1% for CUDA
    /// graphs), only if recording everything would exceed it; none: record everything [default: auto]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    overhead_budget: Option<String>,

    /// Attribute each kernel to its nn.Module; `=false` overrides a settings file
    #[arg(long, value_name = "true", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    layers: Option<String>,

    /// GPU clock, power and memory readings per second; 0 turns them off [default: 10]
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    device_hz: Option<String>,
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

    /// The step or scope to explain [default: the step with the most time]
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,

    /// Your rules file [default: the nearest .inferscope_rules.yaml]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,

    /// Rows in each table [default: 12]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    top: Option<String>,

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

impl Recording {
    /// The settings of a recording: these flags over `base`, and both over what the environment and the file say.
    pub fn settings(&self, base: Layer) -> Result<Settings, Failure> {
        let mut settings = Settings::load(base.over(self.layer()))?;
        // A path need not be text; every other value is.
        if self.output.is_some() {
            settings.recording.output = self.output.clone();
        }
        Ok(settings)
    }

    /// The first flag, if any, for what is recorded only from inside the process.
    pub fn inside_only(&self) -> Option<&'static str> {
        let flags = [
            ("--calls", self.calls.is_some()),
            ("--include", !self.include.is_empty()),
            ("--exclude", !self.exclude.is_empty()),
            ("--min-us", self.min_us.is_some()),
            ("--layers", self.layers.as_ref().is_some_and(|layers| layers != "false")),
            ("--gpu-detail", self.gpu_detail.as_ref().is_some_and(|detail| detail != "off")),
            ("--overhead-budget", self.overhead_budget.is_some()),
        ];
        flags.into_iter().find_map(|(flag, given)| given.then_some(flag))
    }

    fn layer(&self) -> Layer {
        let mut layer = Layer::default();
        layer.flag("output", "--output", self.output.as_deref().and_then(std::path::Path::to_str));
        layer.flag("rate_hz", "--rate", self.rate.as_deref());
        // Whoever names a rate wants stacks, whatever the environment says.
        layer.flag("stacks", "--rate", self.rate.as_ref().map(|_| "true"));
        layer.flag("stacks", "--no-stacks", self.no_stacks.then_some("false"));
        layer.flag("native", "--native", self.native.as_deref());
        layer.flag("calls", "--calls", self.calls.as_deref());
        layer.flag_list("calls_include", "--include", &self.include);
        layer.flag_list("calls_exclude", "--exclude", &self.exclude);
        layer.flag("calls_min_us", "--min-us", self.min_us.as_deref());
        layer.flag("trace_size_mb", "--trace-size-mb", self.trace_size_mb.as_deref());
        layer.flag("memory_hz", "--memory-hz", self.memory_hz.as_deref());
        layer.flag("gpu_detail", "--gpu-detail", self.gpu_detail.as_deref());
        layer.flag("overhead_budget", "--overhead-budget", self.overhead_budget.as_deref());
        layer.flag("layers", "--layers", self.layers.as_deref());
        layer.flag("device_hz", "--device-hz", self.device_hz.as_deref());
        layer
    }
}

impl Analyze {
    pub fn layer(&self) -> Layer {
        let mut layer = self.reading.layer();
        layer.flag("top", "--top", self.top.as_deref());
        layer
    }
}

/// Of which the names are not asked: several processes may have one.
fn pid(text: &str) -> Result<u32, String> {
    let pid = text.parse().ok().filter(|pid| *pid > 0);
    pid.ok_or_else(|| "must be a process id: `pgrep -f NAME` finds it".into())
}

/// A number of seconds, with a fraction if you like, up to a year.
fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 31_536_000.0 {
        return Ok(std::time::Duration::from_secs_f64(seconds));
    }
    Err("must be more than 0 seconds and at most a year (31536000)".into())
}

#[cfg(test)]
mod tests;
