//! What the reports say of devices, in the words that all of them share: shapes of launches, what a device is, and what
//! recording it cost. How far its times can be trusted is in the analysis' health.

use crate::units::{bytes, count, counted, duration, percent_of};
use analysis::device::gpu::{DeviceMetrics, GpuMetrics, KernelRow, LayerRow, OverheadBy};
use analysis::{IdleCause, Place, StepSource, device::kernel_name, phrase};
use diagnosis::Diagnosis;
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
    let Some(known) = timeline.gpu.device(device.process, device.ordinal) else { return Vec::new() };
    let mut facts = Vec::new();
    facts.extend(known.multiprocessors.map(|number| counted(number as u64, "multiprocessor")));
    facts.extend((!known.compute_capability.is_empty()).then(|| format!("compute {}", known.compute_capability)));
    facts.extend(known.memory_bytes.map(|size| format!("{} of memory", bytes(size))));
    facts.extend(known.bandwidth.map(|speed| format!("{:.0} GB/s at most", speed as f64 / 1e9)));
    facts
}

/// Why a device was idle, most time first.
pub fn causes<'a>(diagnosis: &'a Diagnosis, device: &DeviceMetrics) -> &'a [IdleCause] {
    let same = |one: &&analysis::DeviceIdle| (one.process, one.ordinal) == (device.process, device.ordinal);
    diagnosis.idle.iter().find(same).map_or(&[], |one| &one.causes)
}

/// What has most of a cause: a call, or a line.
pub fn top(cause: &IdleCause) -> String {
    cause.top.as_ref().map(called).unwrap_or_default()
}

/// A kernel, a call, or a line; empty where it has no place.
pub fn called(place: &Place) -> String {
    let named = place.kernel.as_deref().map(kernel_name::plain).or(place.api.as_deref());
    match named {
        Some(name) => name.to_owned(),
        None if place.function.is_some() || place.file.is_some() => phrase::place(place),
        None => String::new(),
    }
}

/// What stands before a device's busy share: where its work is not all in the recording, that is the least that it can be.
pub fn at_least(diagnosis: &Diagnosis, device: &DeviceMetrics) -> &'static str {
    let of = diagnosis.idle.iter().find(|one| (one.process, one.ordinal) == (device.process, device.ordinal));
    if of.is_some_and(|one| one.held() >= LACKS) { "≥ " } else { "" }
}

/// As `dropped-records` says it.
const LACKS: f64 = 0.05;

/// Of what the busy share is: the steps, or the recording.
pub fn window(source: StepSource) -> &'static str {
    if source == StepSource::Whole { "of the recording" } else { "of the steps" }
}

/// `2.5 % (recorded vs. unrecorded steps), 1.2 ms of collector time in 900 launches`; what is not measured is said to be so.
pub fn overhead(metrics: &GpuMetrics) -> String {
    let Some(overhead) = &metrics.overhead else { return "not measured".into() };
    let launches = counted(overhead.launches, "launch");
    let own = match overhead.own_ns {
        0 => None,
        own => Some(format!("{} of collector time in {launches}", duration(own))),
    };
    let percent = overhead.percent.zip(overhead.how.by()).map(|(percent, by)| match by {
        OverheadBy::Steps => format!("{percent:.2} % (recorded vs. unrecorded steps)"),
        OverheadBy::Windows => format!("{percent:.2} % (recorded vs. unrecorded windows)"),
        OverheadBy::OwnTime => format!("{percent:.2} % at least"),
    });
    let mut said: Vec<String> = percent.into_iter().chain(own).collect();
    if said.is_empty() {
        said.push("not measured".into());
    }
    let mut said = said.join(", ");
    if overhead.cupti_ns > 0 {
        said += &format!("; CUPTI reports {} of its own", duration(overhead.cupti_ns));
    }
    said
}

/// All time of kernels, of which a layer has a share.
pub fn kernel_ns(metrics: &GpuMetrics) -> u64 {
    metrics.kernels.iter().fold(0, |sum, kernel| sum.saturating_add(kernel.total_ns))
}

/// How a layer's kernels got its name: `launched inside`, or `120 launched inside, 75 by sequence` where in several ways.
pub fn how_named(layer: &LayerRow) -> String {
    let ways =
        [(layer.direct, "launched inside"), (layer.by_sequence, "by sequence"), (layer.by_capture, "as captured")];
    let used: Vec<(u64, &str)> = ways.into_iter().filter(|way| way.0 > 0).collect();
    match used[..] {
        [(_, way)] => way.to_owned(),
        _ => used.iter().map(|(number, way)| format!("{} {way}", count(*number))).collect::<Vec<_>>().join(", "),
    }
}

/// How much of the kernels' time no layer has; empty where layers have all of it.
pub fn in_no_layer(metrics: &GpuMetrics) -> String {
    let named = metrics.layers.iter().fold(0u64, |sum, layer| sum.saturating_add(layer.total_ns));
    let all = kernel_ns(metrics);
    if all > named { format!("{} of it in no known layer", percent_of(all - named, all)) } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes of a graph were not recorded: the device may have worked in the hole.
    #[test]
    fn what_is_busy_at_least_is_said_so() {
        let text = |hole: &str| {
            format!(
                "track main\n step r 0..10ms\n stream 7\n api cudaGraphLaunch 0..20us\n kernel a 30us..1ms\n kernel b {hole}..9ms\n api cudaStreamSynchronize 30us..9010us"
            )
        };
        let said = |text: &str| {
            let timeline = Timeline::from_text(text).unwrap();
            let diagnosis = diagnosis::diagnose(&timeline, &diagnosis::Options::default());
            at_least(&diagnosis, &diagnosis.gpu.as_ref().unwrap().devices[0])
        };
        assert_eq!((said(&text("6ms")), said(&text("1001us"))), ("≥ ", ""));
    }
}
