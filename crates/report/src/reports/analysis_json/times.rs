//! The summary and the steps in the analysis JSON.

use super::parts::is_idle;
use crate::in_steps::InSteps;
use analysis::{Metrics, PartKind, StepSource};
use diagnosis::Diagnosis;
use diagnosis::wording;
use serde::Serialize;
use timeline::Timeline;

/// Nanoseconds, written as microseconds with up to three decimals.
#[derive(Clone, Copy, Default, Serialize)]
pub struct Micros(f64);

impl Micros {
    pub fn of(nanos: u64) -> Micros {
        Micros(nanos as f64 / 1e3)
    }
}

/// The first six are of a step: the mean of those that count, or the whole recording where there are none.
#[derive(Serialize)]
pub struct Summary {
    end_to_end_latency_us: Option<Micros>,
    total_cpu_time_us: Option<Micros>,
    total_gpu_time_us: Option<Micros>,
    total_h2d_us: Option<Micros>,
    total_d2h_us: Option<Micros>,
    total_idle_us: Option<Micros>,
    /// What the parts of `timeline_breakdown` add up to.
    breakdown_us: Micros,
    recorded_us: Micros,
    /// Of all processes over the whole recording.
    recorded_cpu_time_us: Option<Micros>,
    mean_cores: Option<f64>,
    peak_memory_bytes: Option<u64>,
    processes: usize,
    threads: usize,
    slices: usize,
    samples: u64,
}

#[derive(Serialize)]
pub struct Steps<'a> {
    count: usize,
    source: &'static str,
    name: Option<&'a str>,
    why: String,
    confidence: Option<f64>,
    min_us: Option<Micros>,
    mean_us: Option<Micros>,
    p50_us: Option<Micros>,
    p95_us: Option<Micros>,
    p99_us: Option<Micros>,
    max_us: Option<Micros>,
    /// From the begin of the first step that counts to the end of the last, after the start of the recording.
    window_start_us: Option<Micros>,
    window_end_us: Option<Micros>,
    warmup: usize,
    outliers: usize,
    unfinished: u64,
    overlapping: bool,
    /// The part of what was recorded that lies in them.
    share: Option<f64>,
    runner_up: Option<RunnerUp<'a>>,
    passed_over: Option<PassedOver<'a>>,
    kinds: Vec<Kind<'a>>,
    startup: Option<Startup>,
}

/// The next best reading of the recording.
#[derive(Serialize)]
struct RunnerUp<'a> {
    name: &'a str,
    source: &'static str,
    count: u64,
    share: f64,
    differs: &'static str,
}

/// Marks that explain almost nothing.
#[derive(Serialize)]
struct PassedOver<'a> {
    name: &'a str,
    source: &'static str,
    count: u64,
    share: f64,
}

/// Another kind of steps.
#[derive(Serialize)]
struct Kind<'a> {
    name: &'a str,
    count: u64,
    share: f64,
    p50_us: Micros,
}

/// What comes before the first steady step.
#[derive(Serialize)]
struct Startup {
    duration_us: Micros,
    imports_us: Option<Micros>,
}

pub fn summary(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis, devices: &[InSteps]) -> Summary {
    let (steps, breakdown) = (&diagnosis.steps, &diagnosis.breakdown);
    let seen = breakdown.parts.iter().any(|part| part.kind != PartKind::Unknown);
    let sum = |fits: fn(PartKind) -> bool| {
        let parts = breakdown.parts.iter().filter(|part| fits(part.kind));
        seen.then(|| Micros::of(parts.map(|part| part.ns).fold(0, u64::saturating_add)))
    };
    let gpu = |time: fn(&InSteps) -> u64| {
        (!devices.is_empty()).then(|| Micros::of(devices.iter().map(time).fold(0, u64::saturating_add)))
    };
    let cpu: Vec<u64> = metrics.processes.iter().filter_map(|process| process.cpu_ns).collect();
    Summary {
        end_to_end_latency_us: (steps.count() > 0).then(|| Micros::of(steps.mean())),
        total_cpu_time_us: sum(|kind| matches!(kind, PartKind::Python | PartKind::Native | PartKind::Gc)),
        total_gpu_time_us: gpu(|device| device.busy_ns),
        total_h2d_us: gpu(|device| device.h2d_ns),
        total_d2h_us: gpu(|device| device.d2h_ns),
        total_idle_us: sum(is_idle),
        breakdown_us: Micros::of(breakdown.step_ns),
        recorded_us: Micros::of(metrics.duration),
        recorded_cpu_time_us: (!cpu.is_empty()).then(|| Micros::of(cpu.iter().copied().fold(0, u64::saturating_add))),
        mean_cores: metrics.cpu.as_ref().map(|cpu| (cpu.mean * 1e3).round() / 1e3),
        peak_memory_bytes: metrics.memory.as_ref().map(|memory| memory.peak.value as u64),
        processes: metrics.processes.len(),
        threads: metrics.threads.len(),
        slices: metrics.slices,
        samples: timeline.samples.len() as u64,
    }
}

/// A whole recording is no step: it has a length, but no percentiles.
pub fn steps<'a>(timeline: &Timeline, steps: &'a analysis::Steps, overlapping: bool) -> Steps<'a> {
    let found = steps.source != StepSource::Whole;
    let time = |time: u64| (found && steps.count() > 0).then(|| Micros::of(time));
    let since = |time: Option<u64>| time.unwrap_or(0).saturating_sub(timeline.start);
    let count = |count: usize| if found { count } else { 0 };
    Steps {
        count: count(steps.count()),
        source: steps.source.name(),
        name: found.then_some(&steps.name),
        why: wording::steps::why(steps),
        confidence: found.then(|| thousandths(steps.confidence)),
        min_us: time(steps.min()),
        mean_us: time(steps.mean()),
        p50_us: time(steps.p50()),
        p95_us: time(steps.percentile(95)),
        p99_us: time(steps.p99()),
        max_us: time(steps.max()),
        window_start_us: time(since(steps.measured().map(|step| step.start).min())),
        window_end_us: time(since(steps.measured().map(|step| step.end).max())),
        warmup: count(steps.warmups()),
        outliers: steps.steps.iter().filter(|step| step.outlier).count(),
        unfinished: steps.unfinished,
        overlapping,
        share: steps.share.map(thousandths),
        runner_up: steps.runner_up.as_ref().map(|other| RunnerUp {
            name: &other.name,
            source: other.source.name(),
            count: other.count,
            share: thousandths(other.share),
            differs: other.differs.name(),
        }),
        passed_over: steps.passed_over.as_ref().map(|marks| PassedOver {
            name: &marks.name,
            source: marks.source.name(),
            count: marks.count,
            share: thousandths(marks.share),
        }),
        kinds: steps.kinds.iter().map(kind).collect(),
        startup: steps.startup.map(|startup| Startup {
            duration_us: Micros::of(startup.dur()),
            imports_us: startup.imports_ns.map(Micros::of),
        }),
    }
}

fn kind(kind: &analysis::steps::StepKind) -> Kind<'_> {
    Kind { name: &kind.name, count: kind.count, share: thousandths(kind.share), p50_us: Micros::of(kind.p50_ns) }
}

fn thousandths(share: f64) -> f64 {
    (share * 1e3).round() / 1e3
}
