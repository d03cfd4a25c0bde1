//! The GPU sections of the page: devices, kernels, copies, API calls and layers, as rows.

use super::names::short;
use super::steps::{PerStep, per_step};
use super::words::MOST_ROWS;
use crate::gpu_words::{about, causes, kernel_ns, place, shared_memory, sides, title, top, window};
use crate::in_steps;
use crate::units::{count, duration};
use analysis::device::gpu::{ApiRow, CopyRow, DeviceMetrics, GpuMetrics, KernelRow, LayerRow, RangeRow};
use analysis::steps::StepSource;
use diagnosis::Diagnosis;
use serde::Serialize;
use timeline::Timeline;

#[derive(Serialize)]
pub struct Gpu {
    window: &'static str,
    /// Of steps, not of the whole recording.
    of_steps: bool,
    devices: Vec<Device>,
    facts: Vec<String>,
    /// Of all kernels: the table may have fewer.
    kernel_ns: u64,
    kernels: Vec<Kernel>,
    copies: Vec<Copy>,
    apis: Vec<Api>,
    layers: Vec<Layer>,
    ranges: Vec<Range>,
}

/// Times are of a step, on average.
#[derive(Serialize)]
struct Device {
    title: String,
    about: String,
    window: u64,
    busy: u64,
    kernel: u64,
    copy: u64,
    exposed: u64,
    leading: u64,
    trailing: u64,
    kernels: u64,
    steps: u64,
    per_step: PerStep,
    idle: Vec<Idle>,
}

/// Why it had nothing to do: a step's mean, and what has most of it.
#[derive(Serialize)]
struct Idle {
    cause: &'static str,
    code: &'static str,
    ns: u64,
    top: String,
}

#[derive(Serialize)]
struct Kernel {
    name: String,
    count: u64,
    total: u64,
    mean: u64,
    p95: u64,
    share: f64,
    grid: String,
    block: String,
    registers: Option<u32>,
    shared: Option<u64>,
    file: String,
    line: u32,
    layer: String,
}

#[derive(Serialize)]
struct Copy {
    label: String,
    count: u64,
    bytes: u64,
    total: u64,
    speed: f64,
    exposed: u64,
}

#[derive(Serialize)]
struct Api {
    name: String,
    count: u64,
    total: u64,
    mean: u64,
    p95: u64,
}

#[derive(Serialize)]
struct Layer {
    name: String,
    total: u64,
    kernels: u64,
    direct: u64,
    by_sequence: u64,
    by_capture: u64,
}

/// A step, scope or NVTX range, with the work launched inside it.
#[derive(Serialize)]
struct Range {
    name: String,
    kind: &'static str,
    total: u64,
    kernels: u64,
}

pub fn gpu(timeline: &Timeline, metrics: &GpuMetrics, diagnosis: &Diagnosis) -> Gpu {
    Gpu {
        window: window(diagnosis.steps.source),
        of_steps: diagnosis.steps.source != StepSource::Whole,
        devices: metrics.devices.iter().map(|one| device(timeline, diagnosis, one)).collect(),
        facts: facts(metrics),
        kernel_ns: kernel_ns(metrics),
        kernels: metrics.kernels.iter().take(MOST_ROWS).map(|row| kernel(timeline, row)).collect(),
        copies: metrics.copies.iter().map(copy).collect(),
        apis: metrics.apis.iter().take(MOST_ROWS).map(|row| api(timeline, row)).collect(),
        ranges: metrics.ranges.iter().take(MOST_ROWS).map(|row| range(timeline, row)).collect(),
        layers: metrics.layers.iter().take(MOST_ROWS).map(|row| layer(timeline, row)).collect(),
    }
}

/// One sentence each, on launches.
fn facts(metrics: &GpuMetrics) -> Vec<String> {
    let Some(launch) = &metrics.launch else {
        return vec!["Launch calls were not recorded.".into()];
    };
    let mut facts = Vec::new();
    if launch.latency.is_some() {
        let (p50, p95) = (duration(launch.latency_p50_ns), duration(launch.latency_p95_ns));
        facts.push(format!("Launch to kernel: {p50} (median), {p95} (p95)."));
        facts.push(format!("Launch call: {} (median).", duration(launch.call_p50_ns)));
    }
    let (mean, most) = (launch.depth.mean, count(launch.max_depth));
    facts.push(format!("Queue depth: {mean:.1} on average, at most {most}."));
    facts
}

fn device(timeline: &Timeline, diagnosis: &Diagnosis, device: &DeviceMetrics) -> Device {
    let mean = in_steps::of(timeline, diagnosis, device);
    let each = |ns: u64| ns / mean.steps.max(1);
    Device {
        title: title(timeline, device),
        about: about(timeline, device).join(" · "),
        window: mean.window_ns,
        busy: mean.busy_ns,
        kernel: each(device.kernel_ns),
        copy: each(device.copy_ns),
        exposed: each(device.exposed_copy_ns),
        leading: mean.leading_ns,
        trailing: mean.trailing_ns,
        kernels: mean.kernels,
        steps: mean.steps,
        per_step: per_step(timeline, diagnosis, device),
        idle: causes(diagnosis, device)
            .iter()
            .map(|one| Idle {
                cause: one.cause.name(),
                code: one.cause.code(),
                ns: each(one.ns),
                top: short(&top(one)),
            })
            .collect(),
    }
}

fn kernel(timeline: &Timeline, row: &KernelRow) -> Kernel {
    let (file, line) = place(row).unwrap_or(("", 0));
    Kernel {
        name: short(timeline.names.text(row.name)),
        count: row.count,
        total: row.total_ns,
        mean: row.mean_ns,
        p95: row.p95_ns,
        share: row.share,
        grid: row.shape.map(|shape| sides(shape.grid)).unwrap_or_default(),
        block: row.shape.map(|shape| sides(shape.block)).unwrap_or_default(),
        registers: row.shape.map(|shape| shape.registers),
        shared: row.shape.as_ref().map(shared_memory),
        file: short(file),
        line,
        layer: row.layer.as_ref().map(|layer| short(&layer.to_string())).unwrap_or_default(),
    }
}

fn copy(row: &CopyRow) -> Copy {
    let (speed, exposed) = (row.gb_per_s, row.exposed_ns);
    Copy { label: row.label.clone(), count: row.count, bytes: row.bytes, total: row.total_ns, speed, exposed }
}

fn api(timeline: &Timeline, row: &ApiRow) -> Api {
    let name = short(timeline.names.text(row.name));
    Api { name, count: row.count, total: row.total_ns, mean: row.mean_ns, p95: row.p95_ns }
}

fn range(timeline: &Timeline, row: &RangeRow) -> Range {
    let name = short(timeline.names.text(row.name));
    Range { name, kind: row.kind.name(), total: row.total_ns, kernels: row.kernels }
}

fn layer(timeline: &Timeline, row: &LayerRow) -> Layer {
    Layer {
        name: short(timeline.names.text(row.name)),
        total: row.total_ns,
        kernels: row.kernels,
        direct: row.direct,
        by_sequence: row.by_sequence,
        by_capture: row.by_capture,
    }
}
