//! How far the host runs ahead of the devices: from launch call to kernel, and how much work was launched and not finished.

use super::{LaunchMetrics, percentile};
use crate::curve;
use timeline::{Timeline, WorkKind};

pub fn measure(timeline: &Timeline) -> Option<LaunchMetrics> {
    let work = &timeline.gpu.work;
    let (mut latencies, mut calls) = (Vec::new(), Vec::new());
    let (mut launched, mut finished) = (Vec::with_capacity(work.len()), Vec::with_capacity(work.len()));
    let mut last = None;
    for index in (0..work.len()).filter(|index| work.kind(*index).is_busy()) {
        let Some(launch) = work.launch(index) else { continue };
        let begin = timeline.slices.start[launch];
        launched.push(begin);
        finished.push(work.end(index));
        // Of a graph only the first node follows its launch.
        if work.kind(index) == WorkKind::Kernel && last != Some(launch) {
            latencies.push(work.start[index].saturating_sub(begin));
            calls.push(timeline.slices.dur[launch]);
            last = Some(launch);
        }
    }
    if launched.is_empty() {
        return None;
    }
    latencies.sort_unstable();
    calls.sort_unstable();
    // Streams come one after the other and each in order: a stable sort finds those runs.
    launched.sort();
    finished.sort();
    let (depth, max_depth) = curve::level(timeline, &launched, &finished)?;
    Some(LaunchMetrics {
        latency_p50_ns: percentile(&latencies, 50),
        latency_p95_ns: percentile(&latencies, 95),
        call_p50_ns: percentile(&calls, 50),
        depth,
        max_depth,
    })
}
