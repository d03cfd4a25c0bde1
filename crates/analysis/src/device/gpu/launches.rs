//! How far the host runs ahead of the devices: from launch call to kernel, and how much work was launched and not finished.

use super::LaunchMetrics;
use crate::stats::curve::{self, Curve};
use crate::stats::times::Times;
use timeline::{Timeline, WorkKind, parallel};

/// From call to kernel, over the recording and in all, and the calls themselves.
pub struct Latencies {
    curve: Curve,
    p50_ns: u64,
    p95_ns: u64,
    call_p50_ns: u64,
}

/// None: no kernel has a launch.
pub fn latencies(timeline: &Timeline) -> Option<Latencies> {
    let (work, slices) = (&timeline.gpu.work, &timeline.slices);
    let mut calls = Times::default();
    let launched = work.by_launch().filter_map(|(launch, pieces)| {
        let (mut first, mut kernels) = (u64::MAX, false);
        // Of a graph only what starts first follows its launch: the rest waits for other nodes, in whatever stream.
        for index in pieces.iter().map(|index| *index as usize).filter(|index| work.kind(*index).is_busy()) {
            kernels |= work.kind(index) == WorkKind::Kernel;
            first = first.min(work.start[index]);
        }
        let began = slices.start[launch];
        kernels.then(|| {
            calls.push(slices.dur[launch]);
            (began, first.saturating_sub(began))
        })
    });
    let (curve, mut all) = curve::medians(timeline, launched)?;
    let (p50_ns, p95_ns) = (all.percentile(50), all.percentile(95));
    Some(Latencies { curve, p50_ns, p95_ns, call_p50_ns: calls.percentile(50) })
}

/// What is launched and not finished, as a curve, and at most. None: no work has a launch.
pub fn depth(timeline: &Timeline) -> Option<(Curve, u64)> {
    let work = &timeline.gpu.work;
    let busy = |index: usize| work.launch(index).filter(|_| work.kind(index).is_busy());
    let begin = |index: usize| busy(index).map(|launch| timeline.slices.start[launch]);
    let end = |index: usize| busy(index).map(|_| work.end(index));
    let all = || std::iter::once(0..work.len());
    let (mut launched, mut finished) = (Vec::new(), Vec::new());
    // What one thread launches on one stream is in order as it is. Of several, each is: a stable sort finds those runs.
    let begun = Box::new(|| {
        launched = parallel::collect(all(), begin);
        launched.sort();
    });
    parallel::run(work.len(), vec![begun], || {
        finished = parallel::collect(all(), end);
        finished.sort();
    });
    (!launched.is_empty()).then_some(())?;
    curve::level(timeline, launched.into_iter(), finished.into_iter())
}

pub fn join(latencies: Option<Latencies>, depth: Option<(Curve, u64)>) -> Option<LaunchMetrics> {
    let (depth, max_depth) = depth?;
    let (latency, times) = match latencies {
        Some(known) => (Some(known.curve), [known.p50_ns, known.p95_ns, known.call_p50_ns]),
        None => (None, [0; 3]),
    };
    let [latency_p50_ns, latency_p95_ns, call_p50_ns] = times;
    Some(LaunchMetrics { latency_p50_ns, latency_p95_ns, call_p50_ns, latency, depth, max_depth })
}
