//! Calls that give work to a device and return late because its queue is full: that is waiting for the device, however the host looks
//! meanwhile. What is a long call for another reason (code that is loaded, a thread without a core) finds the queue short.

use crate::stats::median;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::OnceLock;
use timeline::cuda_calls::{OverheadOf, overhead_of};
use timeline::parallel::{self, Task};
use timeline::{ProcessIndex, SliceKind, Timeline, Track};

/// A call that waits takes far longer than others of its name that do not.
pub const TIMES: u64 = 10;
pub const LEAST_NS: u64 = 50_000;
/// CUDA's queues hold about a thousand launches.
pub const DEEP: usize = 500;

/// Made when it is first asked for a call that is long: few recordings have any.
pub struct FullQueue<'a> {
    timeline: &'a Timeline,
    made: OnceLock<Queues>,
}

/// Process and device.
type Key = (ProcessIndex, u32);

struct Queues {
    queues: Vec<Queue>,
    places: HashMap<Key, usize>,
    /// By track: the device of the last launch whose work was recorded.
    devices: Vec<Option<u32>>,
    /// By name: the least that is out of the usual. Empty where no queue was ever full.
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

impl Queue {
    /// Whether so many were ever launched and not done that a call may have waited. The lists must be sorted.
    fn is_deep(&self) -> bool {
        self.begins.iter().skip(DEEP - 1).zip(&self.ends).any(|(begin, end)| end > begin)
            || self.begins.len() >= self.ends.len() + DEEP
    }

    fn depth(&self, at: u64) -> usize {
        let launched = self.begins.partition_point(|begin| *begin <= at);
        launched.saturating_sub(self.ends.partition_point(|done| *done <= at))
    }
}

/// The depth at one time after the other: launches come in order, so nothing has to be searched.
#[derive(Default)]
struct Cursor {
    at: u64,
    launched: usize,
    done: usize,
}

impl Cursor {
    fn depth(&mut self, queue: &Queue, at: u64) -> usize {
        if at < self.at {
            *self = Cursor::default();
        }
        self.at = at;
        self.launched += queue.begins[self.launched..].iter().take_while(|begin| **begin <= at).count();
        self.done += queue.ends[self.done..].iter().take_while(|done| **done <= at).count();
        self.launched.saturating_sub(self.done)
    }
}

/// What a call gave to a device.
struct Given<'t> {
    call: usize,
    pieces: &'t [u32],
    /// The track of the call, and the device.
    place: usize,
    device: u32,
}

/// All of them, in the order of the calls' slices, and so by track.
fn given(timeline: &Timeline) -> impl Iterator<Item = Given<'_>> {
    given_in(timeline, 0..timeline.gpu.work.linked().len())
}

/// Those of a part of the linked work.
fn given_in(timeline: &Timeline, part: Range<usize>) -> impl Iterator<Item = Given<'_>> {
    let calls =
        timeline.gpu.work.by_launch_in(part).filter(|(call, _)| timeline.slices.kind(*call) == SliceKind::ApiCall);
    let mut place = 0;
    calls.filter_map(move |(call, pieces)| {
        place += timeline.tracks[place..].iter().take_while(|track| track.slices.end <= call).count();
        (place < timeline.tracks.len()).then_some(())?;
        Some(Given { call, pieces, place, device: device_of(timeline, pieces)? })
    })
}

impl<'a> FullQueue<'a> {
    pub fn new(timeline: &'a Timeline) -> FullQueue<'a> {
        FullQueue { timeline, made: OnceLock::new() }
    }

    /// Whether a call waits until the device's queue has room: it takes long, what it launches begins after it, and hundreds are
    /// before that. Or CUPTI says so.
    pub fn waits(&self, call: usize) -> bool {
        let timeline = self.timeline;
        timeline.slices.dur[call] >= LEAST_NS
            && timeline.gpu.work.len() >= DEEP
            && self.made.get_or_init(|| Queues::new(timeline)).waits(timeline, call)
    }
}

/// What some of the calls gave, by process and device; the names of calls that launch, and the last device of each track.
#[derive(Default)]
struct Counted {
    queues: Vec<(Key, Queue)>,
    launch: BTreeSet<u32>,
    devices: Vec<(usize, u32)>,
}

impl Counted {
    fn new(timeline: &Timeline, part: Range<usize>) -> Counted {
        let (slices, work) = (&timeline.slices, &timeline.gpu.work);
        let (mut counted, mut places): (Counted, HashMap<Key, usize>) = Default::default();
        let Counted { queues, launch, devices } = &mut counted;
        let mut at = 0;
        for Given { call, pieces, place, device } in given_in(timeline, part) {
            launch.insert(slices.name[call]);
            let key = (timeline.tracks[place].process, device);
            if queues.get(at).is_none_or(|queue| queue.0 != key) {
                at = *places.entry(key).or_insert(queues.len());
            }
            if at == queues.len() {
                queues.push((key, Queue::default()));
            }
            let queue = &mut queues[at].1;
            queue.begins.push(slices.start[call]);
            queue.ends.extend(pieces.iter().map(|piece| work.end(*piece as usize)).max());
            queue.last = queue.last.max(slices.start[call]);
            match devices.last_mut() {
                Some(last) if last.0 == place => last.1 = device,
                _ => devices.push((place, device)),
            }
        }
        counted
    }
}

impl Queues {
    fn new(timeline: &Timeline) -> Queues {
        let (slices, work) = (&timeline.slices, &timeline.gpu.work);
        let parts: Vec<Range<usize>> = work.linked_parts().collect();
        let mut counted: Vec<Counted> = parts.iter().map(|_| Counted::default()).collect();
        let tasks = parts.into_iter().zip(&mut counted);
        let tasks = tasks.map(|(part, counted)| Box::new(move || *counted = Counted::new(timeline, part)) as Task);
        parallel::run(work.linked().len(), tasks.collect(), || ());
        let (mut queues, mut places): (Vec<Queue>, HashMap<Key, usize>) = Default::default();
        // The names of calls that launch.
        let mut launch = BTreeSet::new();
        let mut devices = vec![None; timeline.tracks.len()];
        for part in counted {
            launch.extend(part.launch);
            part.devices.into_iter().for_each(|(place, device)| devices[place] = Some(device));
            for (key, mut own) in part.queues {
                let at = *places.entry(key).or_insert(queues.len());
                queues.resize_with(queues.len().max(at + 1), Queue::default);
                let all = &mut queues[at];
                all.begins.append(&mut own.begins);
                all.ends.append(&mut own.ends);
                all.last = all.last.max(own.last);
            }
        }
        let of = |key: Key| places.get(&key).copied();
        for (track, device) in timeline.tracks.iter().zip(&devices) {
            let Some(at) = device.and_then(|device| of((track.process, device))) else { continue };
            let queue = &mut queues[at];
            let launches = |index: &usize| launch.contains(&slices.name[*index]);
            let later = calls(timeline, track).filter(|index| slices.start[*index] > queue.last).filter(launches);
            let later: Vec<u64> = later.map(|index| slices.start[index]).collect();
            queue.begins.extend(later);
        }
        for stream in &timeline.gpu.streams {
            let Some(at) = of((stream.process, stream.device)) else { continue };
            let queue = &mut queues[at];
            // Where no launch of a stream was recorded, nothing says that its work was launched before the recording.
            let Some(linked) = stream.work.clone().position(|index| work.launch(index).is_some()) else { continue };
            for index in stream.work.clone().take(linked) {
                queue.begins.push(0);
                queue.ends.push(work.end(index));
            }
        }
        for queue in &mut queues {
            queue.begins.sort_unstable();
            queue.ends.sort_unstable();
        }
        let mut made = Queues { queues, places, devices, long: Vec::new() };
        if made.queues.iter().any(Queue::is_deep) {
            made.long = made.long(timeline);
        }
        made
    }

    fn of(&self, timeline: &Timeline, place: usize, device: u32) -> Option<usize> {
        self.places.get(&(timeline.tracks.get(place)?.process, device)).copied()
    }

    /// By name: many times what its median call takes while the queue is short. In steady state most calls wait, and the median
    /// of all is one of those.
    fn long(&self, timeline: &Timeline) -> Vec<u64> {
        let slices = &timeline.slices;
        let mut times: Vec<Vec<u64>> = vec![Vec::new(); timeline.names.len()];
        for Given { call, .. } in given(timeline) {
            if let Some(times) = times.get_mut(slices.name[call] as usize) {
                times.push(slices.dur[call]);
            }
        }
        let mut medians: Vec<Option<u64>> = times.into_iter().map(median).collect();
        let slow = |name: u32| medians[name as usize].is_some_and(|median| median.saturating_mul(TIMES) > LEAST_NS);
        let mut short: Vec<Vec<u64>> = vec![Vec::new(); medians.len()];
        let mut last = ((usize::MAX, 0), None);
        let mut cursors: Vec<Cursor> = self.queues.iter().map(|_| Cursor::default()).collect();
        for Given { call, place, device, .. } in given(timeline).filter(|given| slow(slices.name[given.call])) {
            if (place, device) != last.0 {
                last = ((place, device), self.of(timeline, place, device));
            }
            let Some(at) = last.1 else { continue };
            if cursors[at].depth(&self.queues[at], slices.start[call]) < DEEP {
                short[slices.name[call] as usize].push(slices.dur[call]);
            }
        }
        for (all, times) in medians.iter_mut().zip(short) {
            *all = median(times).into_iter().chain(*all).min();
        }
        let long = |median: u64| median.saturating_mul(TIMES).max(LEAST_NS);
        medians.into_iter().map(|median| median.map_or(u64::MAX, long)).collect()
    }

    fn waits(&self, timeline: &Timeline, call: usize) -> bool {
        let (slices, work) = (&timeline.slices, &timeline.gpu.work);
        if said(timeline, call) {
            return true;
        }
        if slices.dur[call] < self.long.get(slices.name[call] as usize).copied().unwrap_or(u64::MAX) {
            return false;
        }
        let place = timeline.tracks.partition_point(|track| track.slices.end <= call);
        let pieces = work.of_launch(call);
        let device = device_of(timeline, pieces).or_else(|| *self.devices.get(place)?);
        let Some(at) = device.and_then(|device| self.of(timeline, place, device)) else { return false };
        let queue = &self.queues[at];
        let (start, end) = (slices.start[call], slices.get(call).end());
        let queued = match pieces.first() {
            Some(piece) => work.start[*piece as usize] >= end,
            None => start > queue.last,
        };
        queued && queue.depth(start) >= DEEP
    }
}

fn calls(timeline: &Timeline, track: &Track) -> impl Iterator<Item = usize> {
    track.slices.clone().filter(|index| timeline.slices.kind(*index) == SliceKind::ApiCall)
}

/// The device of what a call launched.
fn device_of(timeline: &Timeline, pieces: &[u32]) -> Option<u32> {
    let piece = *pieces.first()? as usize;
    let stream = timeline.gpu.streams.partition_point(|stream| stream.work.end <= piece);
    timeline.gpu.streams.get(stream).map(|stream| stream.device)
}

/// Whether CUPTI recorded inside a call that the queue was full.
fn said(timeline: &Timeline, call: usize) -> bool {
    let slices = &timeline.slices;
    let end = slices.get(call).end();
    let inside = (call + 1..slices.len()).take(MOST_INSIDE).take_while(|index| {
        (slices.start[call]..end).contains(&slices.start[*index]) && slices.kind(*index) == SliceKind::Overhead
    });
    inside.into_iter().any(|index| overhead_of(slices.overhead(index)) == OverheadOf::Queue)
}

/// A call has a record or two of this kind.
const MOST_INSIDE: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(text: &str) -> usize {
        let timeline = Timeline::from_text(text).unwrap();
        let queue = FullQueue::new(&timeline);
        (0..timeline.slices.len()).filter(|index| queue.waits(*index)).count()
    }

    #[test]
    fn in_steady_state_nearly_all_wait() {
        let mut text = String::from("track main\n stream 7\n");
        for number in 0..4_000u64 {
            let (from, to) = match number.checked_sub(1000) {
                None => (number * 5, number * 5 + 4),
                Some(waits) => (waits * 200 + 5_001, waits * 200 + 5_200),
            };
            let start = 10 + number * 200;
            text += &format!("api cudaLaunchKernel {from}us..{to}us\n kernel k {}us..{}us\n", start + 5, start + 200);
        }
        assert_eq!(waiting(&text), 3_000);
    }

    /// Launches of 4 µs, and a long one after `ahead` whose work comes last.
    fn long_after(ahead: u64, devices: u64) -> String {
        let mut text = String::from("track main\n");
        for number in 0..=ahead {
            let (from, start) = (number * 5, 10_000 + number * 200);
            let to = if number == ahead { from + 500 } else { from + 4 };
            text += &format!(
                "stream 7 device {}\n api cudaLaunchKernel {from}us..{to}us\n kernel k {}us..{}us\n",
                number % devices,
                start + 5,
                start + 200
            );
        }
        text
    }

    #[test]
    fn each_device_has_its_queue() {
        assert_eq!((waiting(&long_after(700, 1)), waiting(&long_after(700, 2))), (1, 0));
    }

    #[test]
    fn work_without_a_launch_is_not_queued_from_the_start() {
        let text = |first: &str| {
            let unlinked =
                |number: u64| format!("kernel u {}us..{}us corr 0\n", 4_000 + number * 5, 4_004 + number * 5);
            let others: String = (0..600).map(unlinked).collect();
            let own = long_after(100, 1);
            own.replacen("track main\n", &format!("track main\n stream {first}\n{others}"), 1)
        };
        // What is before linked work in its own stream was launched before the recording.
        assert_eq!((waiting(&text("9")), waiting(&text("7"))), (0, 1));
    }
}
