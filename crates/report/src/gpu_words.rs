//! What the reports say of devices, in the words that all of them share: shapes of launches, what a device is, what recording
//! it cost, and how far its times can be trusted.

use crate::units::{bytes, count, counted, duration};
use analysis::gpu::{DeviceMetrics, GpuMetrics, KernelRow};
use analysis::{HealthState, StepSource};
use timeline::Timeline;
use timeline::gpu::Shape;

/// `640×2`: sides of 1 at the end say nothing.
pub fn sides(sides: [u32; 3]) -> String {
    let kept = match sides {
        [_, 1, 1] => 1,
        [_, _, 1] => 2,
        _ => 3,
    };
    sides[..kept].iter().map(u32::to_string).collect::<Vec<_>>().join("×")
}

pub fn shared_memory(shape: &Shape) -> u64 {
    u64::from(shape.shared_static) + u64::from(shape.shared_dynamic)
}

/// The Python line that launched most of a kernel.
pub fn place(kernel: &KernelRow) -> Option<(&str, u32)> {
    let place = kernel.place.as_ref()?;
    Some((place.file.as_deref()?, place.line.unwrap_or(0)))
}

/// `GPU 0 · NVIDIA H200`, with its process where there are several.
pub fn title(timeline: &Timeline, device: &DeviceMetrics) -> String {
    let title = crate::streams::device_title(device.ordinal, &device.name);
    let process = &timeline.processes[device.process.0 as usize];
    match timeline.processes.len() {
        0 | 1 => title,
        _ => format!("{title} of {} ({})", process.program, process.pid),
    }
}

/// What the device is: multiprocessors, memory, bandwidth.
pub fn about(timeline: &Timeline, device: &DeviceMetrics) -> Vec<String> {
    let Some(known) = crate::streams::device(timeline, device.process, device.ordinal) else { return Vec::new() };
    let mut facts = Vec::new();
    facts.extend(known.multiprocessors.map(|number| counted(number as usize, "multiprocessor", "multiprocessors")));
    facts.extend((!known.compute_capability.is_empty()).then(|| format!("compute {}", known.compute_capability)));
    facts.extend(known.memory_bytes.map(|size| format!("{} of memory", bytes(size))));
    facts.extend(known.bandwidth.map(|speed| format!("{:.0} GB/s at most", speed as f64 / 1e9)));
    facts
}

/// Of what the busy share is: the steps, or the recording.
pub fn window(source: StepSource) -> &'static str {
    if source == StepSource::Whole { "of the recording" } else { "of the steps" }
}

/// `0.31 % (…)`; what is not measured is said to be so.
pub fn overhead(metrics: &GpuMetrics) -> String {
    let Some(overhead) = &metrics.overhead else { return "not measured".into() };
    let mut said = match overhead.percent {
        Some(percent) => format!("{percent:.2} %: "),
        None => String::new(),
    };
    said += &format!(
        "{} of the collectors' own in {}",
        duration(overhead.own_ns),
        counted(overhead.launches as usize, "launch", "launches")
    );
    if overhead.cupti_ns > 0 {
        said += &format!("; CUPTI says {} of itself", duration(overhead.cupti_ns));
    }
    said
}

/// State, label, text: lines for the health box.
pub type Line = (HealthState, &'static str, String);

pub fn health(timeline: &Timeline, metrics: &GpuMetrics) -> Vec<Line> {
    let mut lines = vec![clock(metrics), records(timeline)];
    lines.push((HealthState::Ok, "GPU overhead", overhead(metrics)));
    if metrics.before_window > 0 {
        let pieces = counted(metrics.before_window as usize, "piece of work has", "pieces of work have");
        let text =
            format!("{pieces} no recorded launch: they keep the device busy, and belong to no call and no layer");
        lines.push((HealthState::Ok, "GPU work from before", text));
    }
    lines
}

fn clock(metrics: &GpuMetrics) -> Line {
    let clock = &metrics.clock;
    let mut said = Vec::new();
    if clock.residual_ns > 0 {
        said.push(format!("device times are good to {}", duration(clock.residual_ns)));
    }
    let linked = counted(clock.linked as usize, "launch", "launches");
    let state = match (clock.violations, clock.linked) {
        (0, 0) => {
            said.push("no work is linked to its call, so nothing shows how well the clocks fit".into());
            HealthState::Warn
        }
        (0, _) => {
            said.push(format!("in {linked} no work starts before its call"));
            HealthState::Ok
        }
        (wrong, _) => {
            said.push(format!("{} of {linked} seem to start before their call", count(wrong)));
            HealthState::Warn
        }
    };
    let bound =
        |what: &str, ns: Option<i64>| ns.filter(|ns| *ns >= 0).map(|ns| format!("{what} {}", duration(ns as u64)));
    let late = bound("at most", clock.shortest_launch_ns).map(|bound| format!("{bound} too late"));
    let early = bound("at most", clock.shortest_return_ns).map(|bound| format!("{bound} too early"));
    let bounds: Vec<String> = [late, early].into_iter().flatten().collect();
    if !bounds.is_empty() && clock.violations == 0 {
        said.push(format!("so they are {}", bounds.join(" and ")));
    }
    (state, "GPU clock", said.join("; "))
}

/// How much there is, and what was lost of it.
fn records(timeline: &Timeline) -> Line {
    let ours =
        |loss: &&timeline::Loss| matches!(loss.collector.as_str(), "gpu" | "launches" | "layers") && loss.count > 0;
    let lost = timeline.losses.iter().filter(ours).fold(0u64, |sum, loss| sum.saturating_add(loss.count));
    let pieces = counted(timeline.gpu.work.len(), "piece of work", "pieces of work");
    match lost {
        0 => (HealthState::Ok, "GPU records", format!("{pieces}, nothing lost")),
        lost => (
            HealthState::Warn,
            "GPU records",
            format!("{pieces}, {} lost", counted(lost as usize, "record", "records")),
        ),
    }
}

/// What a kernel is called where there is little room: without its return type.
pub fn short_kernel(name: &str) -> &str {
    name.strip_prefix("void ").unwrap_or(name)
}
