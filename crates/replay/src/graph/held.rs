//! Holes that the recording itself explains: the device shows nothing at all, and work that is launched does not begin, while a graph
//! is launched and not done (nodes of it were not recorded), or the work is the first of its stream or was itself launched before the
//! recording (its stream had work from before). A replay keeps such a hole as long as it was, and says how much it kept. Any other hole is not explained.

use super::Graph;
use analysis::steps::spans::Spans;
use std::ops::Range;
use timeline::NameIndex;

/// No launch and no event takes this long.
const LEAST_NS: i64 = 100_000;

/// Sets the hole of each job. `devices` has the device of each stream.
pub fn find(graph: &mut Graph, streams: &[Range<u32>], devices: &[u32]) {
    let mut order: Vec<(i64, u32, u32)> = Vec::with_capacity(graph.jobs.len());
    for (stream, device) in streams.iter().zip(devices) {
        order.extend(stream.clone().map(|job| (graph.jobs[job as usize].start, *device, job)));
    }
    order.sort_unstable();
    let graphs = running_graphs(graph);
    let mut until = vec![i64::MIN; devices.iter().max().map_or(0, |most| *most as usize + 1)];
    for (start, device, index) in order {
        let job = &mut graph.jobs[index as usize];
        let busy = &mut until[device as usize];
        let launched = (job.call as usize).checked_sub(1).map(|call| graph.calls[call].end);
        if let Some(launched) = launched.or_else(|| (job.earlier && job.before != 0).then_some(i64::MIN)) {
            let from = (*busy).max(launched);
            let in_graph = || {
                let place = graphs.partition_point(|one| one.1 < start);
                graphs.get(place).is_some_and(|one| one.0 <= from)
            };
            if start - from >= LEAST_NS && (job.before == 0 || job.earlier || in_graph()) {
                job.held = start - from;
            }
        }
        *busy = (*busy).max(job.end);
    }
}

/// When any graph was launched and not done, by time.
fn running_graphs(graph: &Graph) -> Vec<(i64, i64)> {
    let is_graph = |name: u32| graph.timeline.names.call(NameIndex(name)).launches_graph();
    let mut done: Vec<i64> = vec![i64::MIN; graph.calls.len()];
    for job in &graph.jobs {
        if let Some(call) = (job.call as usize).checked_sub(1).filter(|call| is_graph(graph.calls[*call].name)) {
            done[call] = done[call].max(job.end);
        }
    }
    let all = graph.calls.iter().zip(&done).filter(|(call, done)| **done > call.end);
    union(all.map(|(call, done)| (call.end, *done))).all().iter().map(|(from, to)| (back(*from), back(*to))).collect()
}

/// Spans are of times that are never negative; those of a graph may be.
fn union(all: impl Iterator<Item = (i64, i64)>) -> Spans {
    Spans::union(all.map(|(from, to)| (moved(from), moved(to))).collect())
}

fn moved(time: i64) -> u64 {
    (i128::from(time) - i128::from(i64::MIN)) as u64
}

fn back(time: u64) -> i64 {
    (i128::from(time) + i128::from(i64::MIN)) as i64
}

/// The part of the measured steps that is such holes, 0 to 1.
pub fn share(graphs: &[Graph]) -> f64 {
    let (mut held, mut all) = (0u128, 0u128);
    for graph in graphs {
        let holes = union(graph.jobs.iter().filter(|job| job.held > 0).map(|job| (job.start - job.held, job.start)));
        for step in graph.steps.iter().filter(|step| step.measured && step.end > step.start) {
            all += u128::from(step.end.abs_diff(step.start));
            held += u128::from(holes.overlap(moved(step.start), moved(step.end)));
        }
    }
    held as f64 / all.max(1) as f64
}
