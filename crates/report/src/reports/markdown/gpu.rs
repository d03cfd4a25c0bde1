//! The GPU: how busy each device was in the steps, its kernels and copies, what launching cost, and which layers its time
//! went to.

use super::code::{code, short_place};
use super::table::{Table, bar};
use super::words::prose;
use crate::gpu_words::{at_least, causes, in_no_layer, kernel_ns, overhead, place, title, top, window};
use crate::in_steps;
use crate::units::{bytes, count, counted, duration, percent_of};
use analysis::device::gpu::{GpuMetrics, KernelLayer};
use diagnosis::Diagnosis;
use std::io::{self, Write};
use timeline::Timeline;

const TOP: usize = 10;

pub fn write(timeline: &Timeline, diagnosis: &Diagnosis, metrics: &GpuMetrics, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "## GPU\n")?;
    devices(timeline, diagnosis, metrics, out)?;
    idle(timeline, diagnosis, metrics, out)?;
    if let Some(launch) = &metrics.launch {
        if launch.latency.is_some() {
            let (p50, p95) = (duration(launch.latency_p50_ns), duration(launch.latency_p95_ns));
            writeln!(out, "- Launch to kernel: {p50} (median), {p95} (p95).")?;
            writeln!(out, "- Launch call: {} (median).", duration(launch.call_p50_ns))?;
        }
        writeln!(out, "- Queue depth: at most {}.", counted(launch.max_depth, "GPU operation"))?;
    }
    writeln!(out, "- Recording overhead: {}.\n", prose(&overhead(metrics)))?;
    kernels(timeline, metrics, out)?;
    copies(metrics, out)?;
    layers(timeline, metrics, out)?;
    ranges(timeline, metrics, out)
}

fn devices(timeline: &Timeline, diagnosis: &Diagnosis, metrics: &GpuMetrics, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new([
        "device",
        " busy",
        "",
        " kernels",
        " exposed copies",
        " idle before the first work",
        " idle after the last",
    ]);
    for device in &metrics.devices {
        let mean = in_steps::of(timeline, diagnosis, device);
        let share = |ns: u64| percent_of(ns, device.window_ns);
        table.row([
            prose(&title(timeline, device)),
            format!("{}{} {}", at_least(diagnosis, device), share(device.busy_ns), window(diagnosis.steps.source)),
            bar(device.busy_ns as f64 / device.window_ns.max(1) as f64),
            share(device.kernel_ns),
            share(device.exposed_copy_ns),
            duration(mean.leading_ns),
            duration(mean.trailing_ns),
        ]);
    }
    table.write(out)
}

/// Why each device had nothing to do; with its busy time the shares make up the whole.
fn idle(timeline: &Timeline, diagnosis: &Diagnosis, metrics: &GpuMetrics, out: &mut impl Write) -> io::Result<()> {
    for device in &metrics.devices {
        let steps = in_steps::count(timeline, diagnosis, device.process);
        let causes = causes(diagnosis, device);
        if causes.is_empty() {
            continue;
        }
        let mut table = Table::new([" share", "", " per step", "cause", "mostly in"]);
        for one in causes {
            table.row([
                percent_of(one.ns, device.window_ns),
                bar(one.share),
                duration(one.ns / steps),
                one.cause.name().into(),
                prose(&top(one)),
            ]);
        }
        writeln!(out, "Idle time of {} by cause:\n", prose(&title(timeline, device)))?;
        table.write(out)?;
    }
    Ok(())
}

fn of(shown: usize) -> String {
    if shown > TOP { format!(": {TOP} of {}", count(shown as u64)) } else { String::new() }
}

/// A path is code, a number of layers is words.
fn layer(layer: &KernelLayer) -> String {
    layer.path().map_or_else(|| layer.to_string(), code)
}

fn kernels(timeline: &Timeline, metrics: &GpuMetrics, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new([" share", "", " total", " count", " mean", " p95", "kernel", "launched from", "layer"]);
    let all = kernel_ns(metrics);
    for kernel in metrics.kernels.iter().take(TOP) {
        table.row([
            percent_of(kernel.total_ns, all),
            bar(kernel.share),
            duration(kernel.total_ns),
            count(kernel.count),
            duration(kernel.mean_ns),
            duration(kernel.p95_ns),
            code(timeline.names.text(kernel.name)),
            place(kernel).map(|(file, line)| short_place(file, line)).unwrap_or_default(),
            kernel.layer.as_ref().map(layer).unwrap_or_default(),
        ]);
    }
    if metrics.kernels.is_empty() {
        return Ok(());
    }
    writeln!(out, "Kernels, by time{}:\n", of(metrics.kernels.len()))?;
    table.write(out)
}

fn copies(metrics: &GpuMetrics, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(["copies", " count", " bytes", " total", " achieved", " exposed"]);
    for copy in &metrics.copies {
        table.row([
            prose(&copy.label),
            count(copy.count),
            bytes(copy.bytes),
            duration(copy.total_ns),
            format!("{:.2} GB/s", copy.gb_per_s),
            duration(copy.exposed_ns),
        ]);
    }
    table.write(out)
}

fn ranges(timeline: &Timeline, metrics: &GpuMetrics, out: &mut impl Write) -> io::Result<()> {
    if metrics.ranges.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([" GPU time", " kernels", "range", "kind"]);
    for range in metrics.ranges.iter().take(TOP) {
        let name = code(timeline.names.text(range.name));
        table.row([duration(range.total_ns), count(range.kernels), name, range.kind.name().into()]);
    }
    writeln!(out, "Steps, scopes and NVTX ranges, by GPU work launched inside them{}:\n", of(metrics.ranges.len()))?;
    table.write(out)
}

fn layers(timeline: &Timeline, metrics: &GpuMetrics, out: &mut impl Write) -> io::Result<()> {
    if metrics.layers.is_empty() {
        return Ok(());
    }
    let some = |number: u64| if number > 0 { count(number) } else { String::new() };
    let all = kernel_ns(metrics);
    let mut table = Table::new([
        " share",
        "",
        " GPU time",
        " kernels",
        " launched inside",
        " by sequence",
        " as captured",
        "layer",
    ]);
    for layer in metrics.layers.iter().take(TOP) {
        table.row([
            percent_of(layer.total_ns, all),
            bar(layer.total_ns as f64 / all.max(1) as f64),
            duration(layer.total_ns),
            count(layer.kernels),
            some(layer.direct),
            some(layer.by_sequence),
            some(layer.by_capture),
            code(timeline.names.text(layer.name)),
        ]);
    }
    let apart = Some(in_no_layer(metrics)).filter(|said| !said.is_empty()).map(|said| format!(" ({said})"));
    let apart = apart.unwrap_or_default();
    writeln!(out, "Layers, by kernel time{apart}{}:\n", of(metrics.layers.len()))?;
    table.write(out)
}
