//! `graph steps`: launches that follow each other on a thread with no wait, allocation or copy that a graph cannot hold between
//! them become one launch of a graph. What that costs is what this recording's graph launches cost for each node, or lies between nothing and one of its
//! launches; never more than the launches that it replaces.

use super::{Counts, note};
use crate::answer::Refusal;
use crate::assume::Assume;
use crate::graph::{Call, Graph};
use crate::plan::{Cut, Plan};
use analysis::stats::median;
use analysis::steps::spans::Spans;
use timeline::cuda_calls::ApiClass;
use timeline::gpu::detail;
use timeline::{NameIndex, WorkKind};

pub fn graph(graph: &Graph, plan: &mut Plan, assume: Assume) -> Result<Counts, Refusal> {
    let of_graph = |call: &Call| graph.timeline.names.call(NameIndex(call.name)).launches_graph();
    let mut kernels = vec![false; graph.calls.len()];
    for job in graph.jobs.iter().filter(|job| job.call != 0) {
        let piece = graph.timeline.gpu.work.get(job.work as usize);
        kernels[job.call as usize - 1] |= piece.kind == WorkKind::Kernel && piece.graph == 0;
    }
    let graphs = graph.calls.iter().filter(|call| of_graph(call));
    // A launch of a thousand nodes takes longer than one of ten.
    let recorded = median(graphs.filter(|call| call.jobs > 0).map(|call| took(call) / i64::from(call.jobs)).collect());
    let plain = |index: &usize| kernels[*index] && !of_graph(&graph.calls[*index]);
    let one = median((0..graph.calls.len()).filter(plain).map(|index| took(&graph.calls[index])).collect());
    let Some(one) = one else { return Ok(Counts::new()) };
    let cost = |stretch: &[usize]| {
        let replaced = stretch.iter().map(|index| took(&graph.calls[*index])).sum::<i64>();
        let least = match (recorded, assume) {
            (Some(node), Assume::Best | Assume::Usual) => node * stretch.len() as i64,
            (Some(node), Assume::Worst) => one.max(node * stretch.len() as i64),
            (None, Assume::Best) => 0,
            (None, Assume::Usual) => one / 2,
            (None, Assume::Worst) => one,
        };
        least.min(replaced)
    };
    let at = |time: i64| u64::try_from(time).unwrap_or(0).saturating_add(graph.timeline.start);
    let mut between: Vec<Vec<(u64, u64)>> = vec![Vec::new(); graph.tracks.len()];
    let mut changed = Counts::new();
    // Calls lie by thread and begin.
    let stays: Vec<bool> = (0..graph.calls.len()).map(|index| !plain(&index) && stays(graph, index)).collect();
    let same = |a: &usize, b: &usize| {
        let (first, second) = (graph.calls[*a], graph.calls[*b]);
        first.track == second.track && first.step == second.step && !stays[*a] && !stays[*b]
    };
    let all: Vec<usize> = (0..graph.calls.len()).collect();
    for stretch in all.chunk_by(same).filter(|stretch| graph.calls[stretch[0]].step != 0) {
        // What comes before the first launch and after the last is no part of the graph.
        let first = stretch.iter().position(plain).unwrap_or(0);
        let last = stretch.iter().rposition(plain).map_or(0, |last| last + 1);
        let stretch = &stretch[first..last.max(first)];
        if stretch.len() < 2 {
            continue;
        }
        let cost = cost(stretch);
        for (place, index) in stretch.iter().enumerate() {
            let call = graph.calls[*index];
            plan.cost[*index] = Some(if place == 0 { cost } else { 0 });
            note(graph, &mut changed, call.step, call.name);
            if place > 0 && assume != Assume::Worst {
                between[call.track as usize].push((at(graph.calls[stretch[place - 1]].end), at(call.begin)));
            }
        }
    }
    plan.cuts.push(Cut { spans: between.into_iter().map(Spans::union).collect(), factor: 0.0 });
    Ok(changed)
}

/// A call that no graph can hold: it waits, takes memory, loads code, or copies from memory that may change.
fn stays(graph: &Graph, index: usize) -> bool {
    let call = &graph.calls[index];
    // A launch that waits for room is a launch.
    let waits = call.wait != 0 && !call.room;
    let api = graph.timeline.names.call(NameIndex(call.name));
    match api.class() {
        ApiClass::Launch => api.launches_graph() || waits,
        ApiClass::Copy => waits || api.is_blocking_copy() || pageable(graph, call),
        ApiClass::Sync | ApiClass::Allocator | ApiClass::Compile | ApiClass::Communication => true,
    }
}

fn pageable(graph: &Graph, call: &Call) -> bool {
    let work = &graph.timeline.gpu.work;
    let copies = work.of_launch(call.slice as usize).iter().map(|index| work.get(*index as usize).copy());
    copies.into_iter().any(|copy| copy.source == detail::PAGEABLE || copy.target == detail::PAGEABLE)
}

fn took(call: &Call) -> i64 {
    call.end - call.begin
}
