//! `inferscope check`: fails if a trace exceeds limits. A limit that the trace has no data for is an error, never a pass.

use crate::args::{DataFormat, Reading};
use crate::config::{Layer, Settings};
use crate::confine::Output;
use crate::ending::Ending;
use crate::failure::Failure;
use crate::rule_file::RuleFile;
use crate::verdict::Verdict;
use crate::{open, output, terminal};
use analysis::StepSource;
use clap::Args;
use diagnosis::compare::gate::GateState;
use diagnosis::named::{Named, find};
use report::limits::{self, Judged};
use std::path::PathBuf;

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  inferscope check trace --max-step-ms 25 --max-p99-ms 40 --max-rss-mib 2000
  inferscope check trace --max-kernels 400 --max-implicit-syncs 0
  inferscope check trace --min-gpu-busy 60% --max-gpu-mib 8000
  inferscope check trace --max-kernels 400 --format json | jq .state

Limits apply per step: median for time, mean otherwise; memory limits to the
peak of the recording. Exit code 4: a limit is exceeded; 5: there is no data for
one.")]
pub struct Check {
    /// The trace [default: the newest run of this folder]
    #[arg(value_name = "TRACE")]
    trace: Option<PathBuf>,

    /// The step or scope to check [default: chosen automatically; `inferscope analyze` says why]
    #[arg(long, value_name = "NAME")]
    step: Option<String>,

    /// Maximum median step time (ms)
    #[arg(long, value_name = "MS", value_parser = number, allow_negative_numbers = true)]
    max_step_ms: Option<f64>,

    /// Maximum 99th percentile of the step time (ms)
    #[arg(long, value_name = "MS", value_parser = number, allow_negative_numbers = true)]
    max_p99_ms: Option<f64>,

    /// Maximum resident memory (RSS) of the recorded processes at any time
    #[arg(long, value_name = "MIB", value_parser = number, allow_negative_numbers = true)]
    max_rss_mib: Option<f64>,

    /// Maximum kernels per step
    #[arg(long, value_name = "N", value_parser = number, allow_negative_numbers = true)]
    max_kernels: Option<f64>,

    /// Maximum small copies to the host that block it, per step: `.item()`, `nonzero`
    #[arg(long, value_name = "N", value_parser = number, allow_negative_numbers = true)]
    max_implicit_syncs: Option<f64>,

    /// Maximum GPU memory of the recorded processes at any time
    #[arg(long, value_name = "MIB", value_parser = number, allow_negative_numbers = true)]
    max_gpu_mib: Option<f64>,

    /// What --max-gpu-mib was called before --max-rss-mib was there
    #[arg(long, value_name = "MIB", value_parser = number, allow_negative_numbers = true, hide = true)]
    max_mib: Option<f64>,

    /// Maximum memory copied between host and GPU per step
    #[arg(long, value_name = "MIB", value_parser = number, allow_negative_numbers = true)]
    max_copied_mib: Option<f64>,

    /// Minimum share of the step in which the GPU is busy: 60% or 0.6
    #[arg(long, value_name = "SHARE", value_parser = share, allow_negative_numbers = true)]
    min_gpu_busy: Option<f64>,

    /// Output format; schema/check.schema.json describes the JSON
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    format: DataFormat,

    #[command(flatten)]
    reading: Reading,
}

/// A flag with the metric that it limits, from above or from below.
struct Limit {
    flag: &'static str,
    metric: &'static str,
    least: bool,
    value: f64,
}

impl Check {
    pub fn layer(&self) -> Layer {
        self.reading.layer()
    }

    fn limits(&self) -> Vec<Limit> {
        let all = [
            ("--max-step-ms", "step_p50", false, self.max_step_ms),
            ("--max-p99-ms", "step_p99", false, self.max_p99_ms),
            ("--max-rss-mib", RSS, false, self.max_rss_mib),
            ("--max-kernels", "kernels", false, self.max_kernels),
            ("--max-implicit-syncs", "implicit_syncs", false, self.max_implicit_syncs),
            ("--max-copied-mib", "copied_mib", false, self.max_copied_mib),
            ("--max-gpu-mib", GPU_MEMORY, false, self.max_gpu_mib),
            ("--max-mib", GPU_MEMORY, false, self.max_mib),
            ("--min-gpu-busy", "gpu_busy", true, self.min_gpu_busy),
        ];
        let limit =
            |(flag, metric, least, value): (_, _, _, Option<f64>)| Some(Limit { flag, metric, least, value: value? });
        all.into_iter().filter_map(limit).collect()
    }
}

/// The peak of the recording, with or without steps.
const RSS: &str = "memory_mib";
const GPU_MEMORY: &str = "gpu_memory_mib";
/// A whole recording is no step: its length and its kernels are whatever it happened to last.
const NO_STEPS: &str = "no steps found; mark them with `inferscope.step()`, or name a scope with --step";

pub fn run(settings: &Settings, check: &Check) -> Result<Ending, Failure> {
    let limits = check.limits();
    if limits.is_empty() {
        return Err(Failure::usage("nothing to check: name a limit, such as --max-step-ms 50"));
    }
    let [mut source] = open::confined(settings, [check.trace.as_deref()], Output::None)?;
    let verdict = Verdict::of(source.read(settings)?, check.step.as_deref(), &RuleFile::default())?;
    let steps = &verdict.diagnosis.steps;
    let named = Named::new(&verdict.timeline, &verdict.metrics, verdict.diagnosis.figures());
    // Judged before anything is written: the exit code must not depend on whether somebody reads.
    let judge = |limit: &Limit| {
        let metric = find(limit.metric)?;
        let whole = steps.source == StepSource::Whole && ![RSS, GPU_MEMORY].contains(&limit.metric);
        let measured = if whole { Err(NO_STEPS.to_owned()) } else { named.get(metric).clone() };
        Some(Judged { flag: limit.flag, metric, least: limit.least, limit: limit.value, measured })
    };
    let judged: Vec<Judged> = limits.iter().filter_map(judge).collect();
    output::write_to(None, |mut out| match check.format {
        DataFormat::Text => limits::write(&judged, &terminal::stdout_style(&settings.color), &mut out),
        DataFormat::Json => limits::write_json(&source.path.display().to_string(), steps, &judged, &mut out),
    })?;
    end(&judged)
}

fn end(judged: &[Judged]) -> Result<Ending, Failure> {
    let of = |state| judged.iter().filter(move |limit| limit.state() == state);
    of(GateState::Failed)
        .for_each(|limit| terminal::say(format_args!("limit exceeded: {}: {}", limit.asked(), limit.said())));
    let failed = of(GateState::Failed).next().is_some();
    let mut open = of(GateState::Undecided).map(Judged::without_data);
    if failed {
        open.for_each(terminal::say);
        return Ok(Ending::Code(4));
    }
    open.next().map_or(Ok(Ending::FINE), |line| Err(Failure::bad_input(line)))
}

fn number(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok();
    value.filter(|value| value.is_finite() && *value >= 0.0).ok_or_else(|| "must be a number, 0 or more".into())
}

fn share(text: &str) -> Result<f64, String> {
    let (digits, by) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits.trim_end(), 100.0));
    let value = digits.parse::<f64>().ok().map(|value| value / by);
    value.filter(|value| (0.0..=1.0).contains(value)).ok_or_else(|| "must be from 0% to 100%, or from 0 to 1".into())
}
