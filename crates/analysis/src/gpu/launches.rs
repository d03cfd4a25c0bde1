//! How far the host runs ahead of the devices: from launch call to kernel, and how much work was launched and not finished.

use super::LaunchMetrics;
use super::times::Times;
use crate::curve::{self, Curve};
use timeline::{Timeline, WorkKind};

/// From call to kernel, and the calls themselves.
#[derive(Default)]
pub struct Latencies {
    pub p50_ns: u64,
    pub p95_ns: u64,
    pub call_p50_ns: u64,
}

pub fn latencies(timeline: &Timeline) -> Latencies {
    let work = &timeline.gpu.work;
    let (mut latencies, mut calls) = (Times::default(), Times::default());
    let mut last = None;
    for index in (0..work.len()).filter(|index| work.kind(*index) == WorkKind::Kernel) {
        // Of a graph only the first node follows its launch.
        if let Some(launch) = work.launch(index).filter(|launch| last != Some(*launch)) {
            latencies.push(work.start[index].saturating_sub(timeline.slices.start[launch]));
            calls.push(timeline.slices.dur[launch]);
            last = Some(launch);
        }
    }
    Latencies { p50_ns: latencies.percentile(50), p95_ns: latencies.percentile(95), call_p50_ns: calls.percentile(50) }
}

/// What is launched and not finished, as a curve, and at most. None: no work has a launch.
pub fn depth(timeline: &Timeline) -> Option<(Curve, u64)> {
    let work = &timeline.gpu.work;
    let linked = || (0..work.len()).filter(|index| work.kind(*index).is_busy() && work.launch(*index).is_some());
    let begin = |index: usize| work.launch(index).map_or(0, |launch| timeline.slices.start[launch]);
    linked().next()?;
    // What one thread launches on one stream is in order as it is. Of several, each is: a stable sort finds those runs.
    if linked().map(begin).is_sorted() && linked().map(|index| work.end(index)).is_sorted() {
        return curve::level(timeline, linked().map(begin), linked().map(|index| work.end(index)));
    }
    let mut launched: Vec<u64> = linked().map(begin).collect();
    let mut finished: Vec<u64> = linked().map(|index| work.end(index)).collect();
    launched.sort();
    finished.sort();
    curve::level(timeline, launched.into_iter(), finished.into_iter())
}

pub fn join(latencies: &Latencies, depth: Option<(Curve, u64)>) -> Option<LaunchMetrics> {
    let (depth, max_depth) = depth?;
    let Latencies { p50_ns, p95_ns, call_p50_ns } = *latencies;
    Some(LaunchMetrics { latency_p50_ns: p50_ns, latency_p95_ns: p95_ns, call_p50_ns, depth, max_depth })
}
