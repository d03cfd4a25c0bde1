//! `pin copies`: pageable copies as fast as the pinned ones of the same recording. Without such there is no number to take.

use super::{Counts, note};
use crate::answer::{Refusal, Unknown};
use crate::assume::Assume;
use crate::assumption::{Assumption, Direction};
use crate::graph::Graph;
use crate::plan::Plan;
use analysis::device::link::Link;
use timeline::WorkKind;
use timeline::gpu::{Piece, detail};

/// Powers of two between the sizes: the speed of a copy sixteen times as large or as small says nothing.
const NEAR: usize = 4;

/// A copy between host and device, and the kind of the host's memory.
fn side(piece: &Piece) -> Option<(usize, u8)> {
    let copy = piece.copy();
    match (piece.kind, copy.direction) {
        (WorkKind::Memcpy, detail::H2D) => Some((0, copy.source)),
        (WorkKind::Memcpy, detail::D2H) => Some((1, copy.target)),
        _ => None,
    }
}

/// Pinned copies of one direction and of nearly one size: bytes a nanosecond, what their calls took, and how soon they started.
#[derive(Default)]
struct Pinned {
    speeds: Vec<f64>,
    calls: Vec<i64>,
    latencies: Vec<i64>,
}

/// What large pinned copies reached of the link on an H200: 52 of 63 GB/s.
const SEEN: f64 = 0.83;

/// Without a pinned copy to compare with: what was seen of the link elsewhere; at best all of it, at worst nothing changes.
fn by_link(graph: &Graph, plan: &mut Plan, index: usize, piece: &Piece, gb_per_s: f64, assume: Assume) {
    let part = match assume {
        Assume::Best => 1.0,
        Assume::Usual => SEEN,
        Assume::Worst => return,
    };
    let least = (piece.bytes as f64 / (gb_per_s * part)).round() as i64;
    plan.dur[index] = plan.dur[index].min(least);
    let Some(place) = (graph.jobs[index].call as usize).checked_sub(1) else { return };
    let call = &graph.calls[place];
    plan.cost[place] = Some((call.end - call.begin).min(graph.floors.shortest(call.name)));
    plan.latency.insert(index as u32, graph.floors.soonest());
}

pub fn pin(graph: &Graph, plan: &mut Plan, assume: Assume) -> Result<Counts, Refusal> {
    let work = &graph.timeline.gpu.work;
    // By direction and power of two of the size: small copies never reach the speed of large ones.
    let mut pinned: [Vec<Pinned>; 2] = [(); 2].map(|()| (0..64).map(|_| Pinned::default()).collect());
    let mut pageable = Vec::new();
    for (index, job) in graph.jobs.iter().enumerate() {
        let piece = work.get(job.work as usize);
        let Some((direction, memory)) = side(&piece).filter(|_| piece.bytes > 0) else { continue };
        let size = piece.bytes.ilog2() as usize;
        match memory {
            detail::PAGEABLE => pageable.push((index, direction, piece)),
            detail::PINNED if piece.dur > 0 => {
                let bucket = &mut pinned[direction][size];
                bucket.speeds.push(piece.bytes as f64 / piece.dur as f64);
                if let Some(call) = (job.call as usize).checked_sub(1).map(|call| graph.calls[call]) {
                    bucket.calls.push(call.end - call.begin);
                    bucket.latencies.push((job.start - call.begin).max(0));
                }
            }
            _ => {}
        }
    }
    for bucket in pinned.iter_mut().flatten() {
        bucket.speeds.sort_by(f64::total_cmp);
        bucket.calls.sort_unstable();
        bucket.latencies.sort_unstable();
    }
    let (mut changed, mut left, mut linked, mut compared) = (Counts::new(), [0u64; 2], 0u64, false);
    let link = Link::of(graph.timeline);
    for (index, direction, piece) in pageable {
        let size = piece.bytes.ilog2() as usize;
        let buckets = pinned[direction].iter().enumerate().filter(|(_, bucket)| !bucket.speeds.is_empty());
        let near = buckets.filter(|(place, _)| place.abs_diff(size) <= NEAR);
        let Some((_, bucket)) = near.min_by_key(|(place, _)| place.abs_diff(size)) else {
            match &link {
                Ok(link) => by_link(graph, plan, index, &piece, link.gb_per_s, assume),
                Err(_) => {
                    left[direction] += 1;
                    continue;
                }
            }
            linked += 1;
            let call = (graph.jobs[index].call as usize).checked_sub(1);
            note(graph, &mut changed, call.map_or(0, |call| graph.calls[call].step), piece.name.0);
            continue;
        };
        compared = true;
        let at = |count: usize, percent: usize| count.saturating_sub(1) * percent / 100;
        let percent = [75, 50, 25][assume as usize];
        let speed = bucket.speeds[at(bucket.speeds.len(), percent)];
        // Pinning makes no copy slower.
        plan.dur[index] = plan.dur[index].min((piece.bytes as f64 / speed).round() as i64);
        let call = (graph.jobs[index].call as usize).checked_sub(1);
        if let Some(call) = call
            && assume != Assume::Worst
            && let Some(cost) = bucket.calls.get(at(bucket.calls.len(), 50))
        {
            let recorded = graph.calls[call].end - graph.calls[call].begin;
            plan.cost[call] = Some(recorded.min(*cost));
            // The host no longer moves the bytes before the device can: the shortest way of a copy in an idle stream.
            let soon = bucket.latencies.first().copied().unwrap_or(0);
            plan.latency.insert(index as u32, soon);
        }
        note(graph, &mut changed, call.map_or(0, |call| graph.calls[call].step), piece.name.0);
    }
    if compared {
        plan.notes.push(Assumption::CopiesAsPinned);
    }
    if let (true, Ok(link)) = (linked > 0, link) {
        plan.notes.push(Assumption::CopiesByLink { count: linked, link });
    }
    for (count, direction) in left.into_iter().zip(Direction::ALL).filter(|(count, _)| *count > 0) {
        if changed.is_empty() && left.iter().sum::<u64>() == count {
            return Err(Refusal::Unknown(Unknown::PinnedCopies(direction)));
        }
        plan.notes.push(Assumption::CopiesUnchanged { count, direction });
    }
    Ok(changed)
}
