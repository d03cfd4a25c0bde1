//! The devices in the analysis JSON: what each did in a step, and the kernels, copies, calls and layers of the recording.

use super::times::Micros;
use crate::gpu_words::shared_memory;
use crate::in_steps::{self, InSteps};
use analysis::device::gpu::GpuMetrics;
use diagnosis::Diagnosis;
use diagnosis::wording;
use serde::Serialize;
use timeline::{NameIndex, Timeline};

/// Of a step, on average.
#[derive(Serialize)]
pub struct Device<'a> {
    device: u32,
    name: Option<&'a str>,
    pid: Option<i64>,
    step_us: Option<Micros>,
    busy_us: Option<Micros>,
    busy_percent_of_step: Option<f64>,
    kernel_us: Option<Micros>,
    copy_us: Option<Micros>,
    exposed_copy_us: Option<Micros>,
    span_us: Option<Micros>,
    leading_gap_us: Option<Micros>,
    trailing_gap_us: Option<Micros>,
    kernels: u64,
    unlinked_events: u64,
}

/// Of the whole recording.
#[derive(Serialize)]
pub struct Work<'a> {
    kernels: Vec<Kernel<'a>>,
    copies: Vec<Copy<'a>>,
    api_calls: Vec<Api<'a>>,
    layers: Vec<Layer<'a>>,
    ranges: Vec<Range<'a>>,
    steps: Vec<Step>,
    launch: Option<Launch>,
    clock: Clock,
    overhead: Option<Overhead>,
    unlinked_events: u64,
}

#[derive(Serialize)]
struct Kernel<'a> {
    name: &'a str,
    count: u64,
    total_us: Micros,
    mean_us: Micros,
    p95_us: Micros,
    percent: f64,
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    registers: Option<u32>,
    shared_memory_bytes: Option<u64>,
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
    layer: Option<&'a str>,
}

#[derive(Serialize)]
struct Copy<'a> {
    kind: &'a str,
    count: u64,
    bytes: u64,
    total_us: Micros,
    gb_per_s: Option<f64>,
    exposed_us: Micros,
}

#[derive(Serialize)]
struct Api<'a> {
    name: &'a str,
    count: u64,
    total_us: Micros,
    mean_us: Micros,
    p95_us: Micros,
}

#[derive(Serialize)]
struct Layer<'a> {
    name: &'a str,
    total_us: Micros,
    kernels: u64,
    direct: u64,
    by_sequence: u64,
    by_capture: u64,
}

#[derive(Serialize)]
struct Range<'a> {
    name: &'a str,
    kind: &'static str,
    kernels: u64,
    total_us: Micros,
}

#[derive(Serialize)]
struct Step {
    step: u32,
    kernels: u64,
    copies: u64,
    total_us: Micros,
    first_start_us: Micros,
    last_end_us: Micros,
}

#[derive(Serialize)]
struct Launch {
    latency_p50_us: Option<Micros>,
    latency_p95_us: Option<Micros>,
    call_p50_us: Option<Micros>,
    mean_depth: f64,
    max_depth: u64,
    over_time: OverTime,
}

/// In buckets of equal length, from the start of the recording.
#[derive(Serialize)]
struct OverTime {
    bucket_us: Micros,
    latency_us: Option<Vec<Option<f64>>>,
    depth: Vec<Option<f64>>,
}

#[derive(Serialize)]
struct Clock {
    residual_ns: Option<u64>,
    linked: u64,
    violations: u64,
    shortest_launch_ns: Option<i64>,
    shortest_return_ns: Option<i64>,
    waits: u64,
    early_returns: u64,
    early: u64,
    early_ns: Option<u64>,
}

#[derive(Serialize)]
struct Overhead {
    own_us: Micros,
    launches: u64,
    cupti_us: Micros,
    percent: Option<f64>,
    how: String,
    by: Option<&'static str>,
}

/// No recording tells apart what differs by less.
fn thousandths(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}

/// Rows of a list; the exports have every event.
const MOST: usize = 1000;

pub fn in_steps<'a>(timeline: &Timeline, diagnosis: &'a Diagnosis) -> Vec<(Device<'a>, InSteps)> {
    let devices = diagnosis.gpu.iter().flat_map(|gpu| &gpu.devices);
    let device = |device: &'a analysis::device::gpu::DeviceMetrics| {
        let mean = in_steps::of(timeline, diagnosis, device);
        let known = device.window_ns > 0;
        let each = |ns: u64| known.then(|| Micros::of(ns / mean.steps.max(1)));
        let time = |ns: u64| known.then(|| Micros::of(ns));
        let said = Device {
            device: device.ordinal,
            name: Some(&*device.name).filter(|name| !name.is_empty()),
            pid: Some(timeline.processes[device.process.0 as usize].pid).filter(|pid| *pid > 0),
            step_us: time(mean.window_ns),
            busy_us: time(mean.busy_ns),
            busy_percent_of_step: known
                .then(|| thousandths(100.0 * device.busy_ns as f64 / device.window_ns as f64).min(100.0)),
            kernel_us: each(device.kernel_ns),
            copy_us: each(device.copy_ns),
            exposed_copy_us: each(device.exposed_copy_ns),
            span_us: time(mean.span_ns),
            leading_gap_us: time(mean.leading_ns),
            trailing_gap_us: time(mean.trailing_ns),
            kernels: mean.kernels,
            unlinked_events: mean.unlinked,
        };
        (said, mean)
    };
    devices.map(device).collect()
}

pub fn work<'a>(timeline: &'a Timeline, metrics: &'a GpuMetrics) -> Work<'a> {
    let name = |name: NameIndex| timeline.names.text(name);
    let clock = &metrics.clock;
    Work {
        kernels: metrics.kernels.iter().take(MOST).map(|kernel| self::kernel(timeline, kernel)).collect(),
        copies: metrics
            .copies
            .iter()
            .map(|copy| Copy {
                kind: &copy.label,
                count: copy.count,
                bytes: copy.bytes,
                total_us: Micros::of(copy.total_ns),
                gb_per_s: (copy.total_ns > 0).then(|| thousandths(copy.gb_per_s)),
                exposed_us: Micros::of(copy.exposed_ns),
            })
            .collect(),
        api_calls: metrics
            .apis
            .iter()
            .take(MOST)
            .map(|api| Api {
                name: name(api.name),
                count: api.count,
                total_us: Micros::of(api.total_ns),
                mean_us: Micros::of(api.mean_ns),
                p95_us: Micros::of(api.p95_ns),
            })
            .collect(),
        layers: metrics
            .layers
            .iter()
            .take(MOST)
            .map(|layer| Layer {
                name: name(layer.name),
                total_us: Micros::of(layer.total_ns),
                kernels: layer.kernels,
                direct: layer.direct,
                by_sequence: layer.by_sequence,
                by_capture: layer.by_capture,
            })
            .collect(),
        ranges: metrics
            .ranges
            .iter()
            .take(MOST)
            .map(|range| Range {
                name: name(range.name),
                kind: range.kind.name(),
                kernels: range.kernels,
                total_us: Micros::of(range.total_ns),
            })
            .collect(),
        steps: metrics.steps.iter().take(MOST).map(|step| self::step(timeline, step)).collect(),
        launch: metrics.launch.as_ref().map(launch),
        clock: Clock {
            residual_ns: (clock.residual_ns > 0).then_some(clock.residual_ns),
            linked: clock.linked,
            violations: clock.violations,
            shortest_launch_ns: clock.shortest_launch_ns,
            shortest_return_ns: clock.shortest_return_ns,
            waits: clock.waits,
            early_returns: clock.early_returns,
            early: clock.early,
            early_ns: clock.early_ns,
        },
        overhead: metrics.overhead.as_ref().map(|overhead| Overhead {
            own_us: Micros::of(overhead.own_ns),
            launches: overhead.launches,
            cupti_us: Micros::of(overhead.cupti_ns),
            percent: overhead.percent.map(thousandths),
            how: wording::device::overhead(overhead.how),
            by: overhead.how.by().map(|by| by.name()),
        }),
        unlinked_events: metrics.before_window,
    }
}

fn step(timeline: &Timeline, step: &analysis::device::gpu::StepWork) -> Step {
    let since = |time: u64| Micros::of(time.saturating_sub(timeline.start));
    Step {
        step: step.step,
        kernels: step.kernels,
        copies: step.copies,
        total_us: Micros::of(step.total_ns),
        first_start_us: since(step.first_start),
        last_end_us: since(step.last_end),
    }
}

fn launch(launch: &analysis::device::gpu::LaunchMetrics) -> Launch {
    let of_kernels = |ns: u64| launch.latency.as_ref().map(|_| Micros::of(ns));
    let scaled = |curve: &analysis::Curve, scale: f64| -> Vec<Option<f64>> {
        curve.buckets.iter().map(|value| value.map(|value| thousandths(value * scale))).collect()
    };
    Launch {
        latency_p50_us: of_kernels(launch.latency_p50_ns),
        latency_p95_us: of_kernels(launch.latency_p95_ns),
        call_p50_us: of_kernels(launch.call_p50_ns),
        mean_depth: thousandths(launch.depth.mean),
        max_depth: launch.max_depth,
        over_time: OverTime {
            bucket_us: Micros::of(launch.depth.bucket_ns),
            latency_us: launch.latency.as_ref().map(|latency| scaled(latency, 1e-3)),
            depth: scaled(&launch.depth, 1.0),
        },
    }
}

fn kernel<'a>(timeline: &'a Timeline, kernel: &'a analysis::device::gpu::KernelRow) -> Kernel<'a> {
    let place = kernel.place.as_ref();
    Kernel {
        name: timeline.names.text(kernel.name),
        count: kernel.count,
        total_us: Micros::of(kernel.total_ns),
        mean_us: Micros::of(kernel.mean_ns),
        p95_us: Micros::of(kernel.p95_ns),
        percent: thousandths(100.0 * kernel.share),
        grid: kernel.shape.map(|shape| shape.grid),
        block: kernel.shape.map(|shape| shape.block),
        registers: kernel.shape.map(|shape| shape.registers),
        shared_memory_bytes: kernel.shape.as_ref().map(shared_memory),
        file: place.and_then(|place| place.file.as_deref()),
        line: place.and_then(|place| place.line),
        function: place.and_then(|place| place.function.as_deref()),
        layer: kernel.layer.as_ref().and_then(|layer| layer.path()),
    }
}
