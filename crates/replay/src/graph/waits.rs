//! Who waits for what beyond thread and stream order: calls that end when work ends or a full queue has room, streams that wait for an event, nodes of
//! a graph for nodes before them. Where the recording does not name it, it is the work that ended last before.

use super::{Graph, What};
use analysis::host::full_queue::FullQueue;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use timeline::{NameIndex, Timeline, WorkKind};

/// Looked into for a wait that does not say for what: enough for any program that is not damaged.
const MOST_STREAMS: usize = 64;
/// Launches of several threads reach a stream in another order than they began, by a few.
const LOOK_BACK: usize = 16;

/// What a call does to the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Does {
    Wait,
    /// A wait for an event: it need not be for the latest work.
    WaitEvent,
    Copy,
    /// Makes a stream wait; the host goes on.
    StreamWait,
    Other,
}

pub fn does(timeline: &Timeline, name: u32) -> Does {
    let call = timeline.names.call(NameIndex(name));
    match call {
        _ if call.waits_for_event() => Does::WaitEvent,
        _ if call.waits() => Does::Wait,
        _ if call.makes_stream_wait() => Does::StreamWait,
        _ if call.copies() => Does::Copy,
        _ => Does::Other,
    }
}

pub fn find(graph: &mut Graph, streams: &[Range<u32>], queue: &FullQueue) {
    let names = graph.timeline.names.len() as u32;
    let kinds: Vec<Does> = (0..names).map(|name| does(graph.timeline, name)).collect();
    let mut stream_of = vec![0u32; graph.jobs.len()];
    for (number, stream) in streams.iter().enumerate() {
        stream.clone().for_each(|job| stream_of[job as usize] = number as u32);
    }
    let busiest: Vec<usize> = {
        let mut all: Vec<usize> = (0..streams.len()).filter(|stream| !streams[*stream].is_empty()).collect();
        all.sort_by_key(|stream| Reverse(streams[*stream].len()));
        all.truncate(MOST_STREAMS);
        all
    };
    let mut by_work: Vec<(u32, u32)> = graph.jobs.iter().zip(0..).map(|(job, index)| (job.work, index)).collect();
    by_work.sort_unstable();
    let job_of = |work: usize| by_work.binary_search_by_key(&(work as u32), |one| one.0).ok().map(|at| by_work[at].1);
    // The latest job of each stream so far, and the last stream wait of each thread that no job has followed.
    let mut latest: Vec<Option<u32>> = vec![None; streams.len()];
    let mut told: Vec<Option<i64>> = vec![None; graph.tracks.len()];
    for place in 0..graph.events.len() {
        let (_, what, index) = graph.events[place];
        match what {
            What::CallBegin if kinds[graph.calls[index as usize].name as usize] == Does::StreamWait => {
                let call = graph.calls[index as usize];
                told[call.track as usize] = Some(call.begin);
            }
            What::CallEnd => {
                let call = graph.calls[index as usize];
                let wait = match kinds[call.name as usize] {
                    Does::Wait => graph
                        .timeline
                        .waited_for(call.slice as usize)
                        .and_then(job_of)
                        .or_else(|| ended_last(graph, streams, &busiest, &latest, call.begin, call.end, u32::MAX)),
                    Does::WaitEvent => ended_last(graph, streams, &busiest, &latest, call.begin, call.end, u32::MAX)
                        .filter(|job| graph.jobs[*job as usize].end > call.begin),
                    Does::Copy => own(graph, index, job_of),
                    Does::StreamWait | Does::Other => None,
                };
                let room = wait.is_none() && queue.waits(call.slice as usize);
                let ended = || ended_last(graph, streams, &busiest, &latest, call.begin, call.end, u32::MAX);
                let wait = if room { ended().filter(|job| graph.jobs[*job as usize].end > call.begin) } else { wait };
                let call = &mut graph.calls[index as usize];
                (call.wait, call.room) = (wait.map_or(0, |job| job + 1), room);
            }
            What::Job => {
                let (job, stream) = (graph.jobs[index as usize], stream_of[index as usize]);
                if let Some(call) = (job.call as usize).checked_sub(1).map(|call| graph.calls[call])
                    && let Some(at) = told[call.track as usize].filter(|at| *at < call.begin)
                {
                    let dep = ended_last(graph, streams, &busiest, &latest, at, job.start, stream);
                    graph.jobs[index as usize].after = dep.map_or(0, |job| job + 1);
                    told[call.track as usize] = None;
                }
                latest[stream as usize] = Some(index);
            }
            _ => {}
        }
    }
    graphs(graph);
}

/// The job that ended last of those launched before `launched` and ended by `until`, outside one stream.
fn ended_last(
    graph: &Graph,
    streams: &[Range<u32>],
    busiest: &[usize],
    latest: &[Option<u32>],
    launched: i64,
    until: i64,
    outside: u32,
) -> Option<u32> {
    let fits = |job: &u32| {
        let job = &graph.jobs[*job as usize];
        let begin = (job.call as usize).checked_sub(1).map_or(job.start, |call| graph.calls[call].begin);
        job.end <= until && begin < launched
    };
    let others = busiest.iter().filter(|stream| **stream as u32 != outside);
    let last = |stream: &usize| {
        let to = latest[*stream]? + 1;
        (streams[*stream].start..to).rev().take(LOOK_BACK).find(fits)
    };
    others.filter_map(last).max_by_key(|job| graph.jobs[*job as usize].end)
}

/// A copy whose call returns after it has ended waits for it.
fn own(graph: &Graph, call: u32, job_of: impl Fn(usize) -> Option<u32>) -> Option<u32> {
    let call = graph.calls[call as usize];
    let launched = graph.timeline.gpu.work.of_launch(call.slice as usize).iter();
    let jobs = launched.filter_map(|work| job_of(*work as usize));
    jobs.filter(|job| graph.jobs[*job as usize].end <= call.end).max_by_key(|job| graph.jobs[*job as usize].end)
}

/// Nodes of one launch of a graph come after the node that ended last before them, in whatever stream.
fn graphs(graph: &mut Graph) {
    let work = &graph.timeline.gpu.work;
    let of_graph = |job: &super::Job| {
        job.call != 0 && work.kind(job.work as usize) != WorkKind::Sync && graph.calls[job.call as usize - 1].jobs > 1
    };
    let mut nodes: Vec<(u32, i64, u32)> = Vec::new();
    for (index, job) in graph.jobs.iter().enumerate().filter(|(_, job)| of_graph(job)) {
        nodes.push((job.call, job.start, index as u32));
    }
    nodes.sort_unstable();
    for nodes in nodes.chunk_by(|a, b| a.0 == b.0) {
        let (mut open, mut last): (BinaryHeap<Reverse<(i64, u32)>>, u32) = (BinaryHeap::new(), 0);
        for (_, start, index) in nodes {
            while let Some(Reverse((_, ended))) = open.peek().copied().filter(|node| node.0.0 <= *start) {
                last = ended + 1;
                open.pop();
            }
            let job = &mut graph.jobs[*index as usize];
            if last != 0 && last != job.before {
                job.after = last;
            }
            open.push(Reverse((job.end, *index)));
        }
    }
}
