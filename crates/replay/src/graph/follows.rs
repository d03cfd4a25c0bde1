//! Work that started long after everything that is known to hold it back, and directly after work of another stream, or while
//! the last of that was still running: it waited for that one, by an event that was not recorded or for room on the device.

use super::{Graph, Job};
use std::ops::Range;

/// Directly after: an event takes some microseconds from one stream to another. After a long wait a little more tells as much.
const DIRECTLY_NS: i64 = 10_000;
const OF_THE_WAIT: i64 = 20;
/// Looked into for what was running: enough for any program that is not damaged.
const MOST_STREAMS: usize = 64;

/// Whether anything was found.
pub fn find(graph: &mut Graph, streams: &[Range<u32>]) -> bool {
    let mut busy: Vec<(usize, &Range<u32>)> =
        streams.iter().enumerate().filter(|(_, stream)| !stream.is_empty()).collect();
    if busy.len() < 2 {
        return false;
    }
    busy.sort_by_key(|(_, stream)| std::cmp::Reverse(stream.len()));
    busy.truncate(MOST_STREAMS);
    let mut stream_of = vec![0usize; graph.jobs.len()];
    for (number, stream) in streams.iter().enumerate() {
        stream.clone().for_each(|job| stream_of[job as usize] = number);
    }
    let mut ends: Vec<(i64, u32)> = graph.jobs.iter().zip(0..).map(|(job, index)| (job.end, index)).collect();
    ends.sort_unstable();
    let mut found = Vec::new();
    for (index, job) in graph.jobs.iter().enumerate() {
        let Some(ready) = ready(graph, index).filter(|ready| *ready < job.start) else { continue };
        let near = DIRECTLY_NS.max((job.start - ready) / OF_THE_WAIT);
        let until = ends.partition_point(|end| end.0 <= job.start);
        let before = ends[..until].iter().rev().take_while(|end| end.0 > ready && end.0 + near >= job.start);
        let ended = before.map(|end| end.1).find(|other| stream_of[*other as usize] != stream_of[index]);
        let others = || busy.iter().filter(|(number, _)| *number != stream_of[index]);
        let running = || others().find_map(|(_, stream)| running(graph, (*stream).clone(), job, ready, near));
        found.extend(ended.or_else(running).map(|other| (index, other)));
    }
    for (index, other) in &found {
        graph.jobs[*index].after = other + 1;
    }
    !found.is_empty()
}

/// Work of a stream that ran for all the time of the wait and was in its last quarter when it ended.
fn running(graph: &Graph, stream: Range<u32>, job: &Job, ready: i64, near: i64) -> Option<u32> {
    let jobs = &graph.jobs[stream.start as usize..stream.end as usize];
    let place = jobs.partition_point(|other| other.start <= job.start).checked_sub(1)?;
    let other = &jobs[place];
    let last = job.start - other.start >= (other.end - other.start) / 4 * 3;
    (other.end > job.start && other.start <= ready + near && last).then_some(stream.start + place as u32)
}

/// Until when its launch, its stream and a recorded event explain that it has not started. None: its launch is not known.
fn ready(graph: &Graph, index: usize) -> Option<i64> {
    let job = &graph.jobs[index];
    let call = &graph.calls[(job.call as usize).checked_sub(1)?];
    let latency = graph.floors.latency(call.name);
    let launched = latency.anchor(call.begin, call.end) + latency.usual.most;
    let gap = graph.floors.gap(graph, job).most;
    let others = [job.before, job.after].into_iter().filter_map(|other| (other as usize).checked_sub(1));
    Some(others.map(|other| graph.jobs[other].end + gap).fold(launched, i64::max))
}
