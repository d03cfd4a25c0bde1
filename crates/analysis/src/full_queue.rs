//! Calls that give work to a device and return late because its queue is full: that is waiting for the device, however the host looks
//! meanwhile. What is a long call for another reason (code that is loaded, a thread without a core) finds the queue short.

use crate::idle::{OverheadOf, overhead_of};
use std::collections::HashMap;
use timeline::{NameIndex, ProcessIndex, SliceKind, Timeline, Track};

/// A call that waits takes far longer than others of its name.
const TIMES: u64 = 10;
pub const LEAST_NS: u64 = 50_000;
/// CUDA's queues hold about a thousand launches.
pub const DEEP: usize = 500;

pub struct FullQueue {
    /// By process.
    queues: HashMap<ProcessIndex, Queue>,
    /// By name: the least that is out of the usual.
    long: Vec<u64>,
}

/// What is launched and not done, at any time. Counted in calls (a graph is one), but for work from before the recording.
#[derive(Default)]
struct Queue {
    begins: Vec<u64>,
    ends: Vec<u64>,
    /// The last launch whose work was recorded. What is launched later was still queued when the recording ended.
    last: u64,
}

impl FullQueue {
    pub fn new(timeline: &Timeline) -> FullQueue {
        let (slices, work) = (&timeline.slices, &timeline.gpu.work);
        let mut queues: HashMap<ProcessIndex, Queue> = HashMap::new();
        let mut times: Vec<Vec<u64>> = vec![Vec::new(); timeline.names.len()];
        let calls = |track: &Track| track.slices.clone().filter(|index| slices.kind(*index) == SliceKind::ApiCall);
        for track in &timeline.tracks {
            for index in calls(track) {
                let done = work.of_launch(index).iter().map(|piece| work.end(*piece as usize)).max();
                let (Some(done), Some(times)) = (done, times.get_mut(slices.name[index] as usize)) else { continue };
                let queue = queues.entry(track.process).or_default();
                queue.begins.push(slices.start[index]);
                queue.ends.push(done);
                queue.last = queue.last.max(slices.start[index]);
                times.push(slices.dur[index]);
            }
        }
        for track in &timeline.tracks {
            let Some(queue) = queues.get_mut(&track.process) else { continue };
            let launches = |index: &usize| times.get(slices.name[*index] as usize).is_some_and(|all| !all.is_empty());
            let later = calls(track).filter(|index| slices.start[*index] > queue.last).filter(launches);
            let later: Vec<u64> = later.map(|index| slices.start[index]).collect();
            queue.begins.extend(later);
        }
        for stream in &timeline.gpu.streams {
            let Some(queue) = queues.get_mut(&stream.process) else { continue };
            let earlier = stream.work.clone().take_while(|index| work.launch(*index).is_none());
            for index in earlier {
                queue.begins.push(0);
                queue.ends.push(work.end(index));
            }
        }
        for queue in queues.values_mut() {
            queue.begins.sort_unstable();
            queue.ends.sort_unstable();
        }
        let long = |mut times: Vec<u64>| {
            times.sort_unstable();
            times.get(times.len() / 2).map_or(u64::MAX, |median| median.saturating_mul(TIMES).max(LEAST_NS))
        };
        FullQueue { queues, long: times.into_iter().map(long).collect() }
    }

    /// Whether a call waits for room: it takes long, what it launches begins after it, and hundreds are before that. Or CUPTI says so.
    pub fn waits(&self, timeline: &Timeline, call: usize) -> bool {
        let (slices, work) = (&timeline.slices, &timeline.gpu.work);
        if said(timeline, call) {
            return true;
        }
        if slices.dur[call] < self.long.get(slices.name[call] as usize).copied().unwrap_or(u64::MAX) {
            return false;
        }
        let track = timeline.tracks.partition_point(|track| track.slices.end <= call);
        let queue = timeline.tracks.get(track).and_then(|track| self.queues.get(&track.process));
        let Some(queue) = queue else { return false };
        let (start, end) = (slices.start[call], slices.get(call).end());
        let queued = match work.of_launch(call).first() {
            Some(piece) => work.start[*piece as usize] >= end,
            None => start > queue.last,
        };
        let launched = queue.begins.partition_point(|begin| *begin <= start);
        queued && launched.saturating_sub(queue.ends.partition_point(|done| *done <= start)) >= DEEP
    }
}

/// Whether CUPTI recorded inside a call that the queue was full.
fn said(timeline: &Timeline, call: usize) -> bool {
    let slices = &timeline.slices;
    let end = slices.get(call).end();
    let inside = (call + 1..slices.len()).take(MOST_INSIDE).take_while(|index| {
        (slices.start[call]..end).contains(&slices.start[*index]) && slices.kind(*index) == SliceKind::Overhead
    });
    let text = |index: usize| timeline.names.text(NameIndex(slices.name[index]));
    inside.into_iter().any(|index| overhead_of(text(index)) == OverheadOf::Queue)
}

/// A call has a record or two of this kind.
const MOST_INSIDE: usize = 8;
