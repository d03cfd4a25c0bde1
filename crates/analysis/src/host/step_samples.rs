//! The samples inside the steps, each with what its thread was doing: running Python, running native code, waiting, waiting
//! for the GIL, collecting garbage. Also how much of the steps no sample stands for.

use crate::frames::{Frames, WAITS, is};
use crate::host::full_queue::FullQueue;
use crate::stats::median;
use crate::steps::spans::Spans;
use crate::steps::windows::StepSpans;
use std::collections::HashMap;
use timeline::cuda_calls::{OverheadOf, overhead_of};
use timeline::gpu::detail;
use timeline::parallel::{self, Task};
use timeline::{NameIndex, ProcessIndex, SliceKind, Timeline, TrackIndex, WorkKind};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Doing {
    /// Running with the GIL, or in a process that was never seen with one.
    Python,
    /// Running without the GIL: native code that gave it back, or a system call.
    Native,
    Waiting,
    /// Waiting for a device, asleep or spinning.
    Gpu,
    Gil,
    Gc,
}

#[derive(Clone, Copy, Debug)]
pub struct StepSample {
    /// Index into the timeline's samples.
    pub sample: u32,
    /// Index into the windows.
    pub window: u32,
    pub doing: Doing,
    /// While it did not run: the sample, one higher, of the thread that held the GIL. 0: none did.
    pub holder: u32,
}

#[derive(Debug, Default)]
pub struct StepSamples {
    /// By window, then time.
    pub all: Vec<StepSample>,
    /// Time inside the steps that no sample stands for, beside garbage collection.
    pub unseen_ns: u64,
    /// Garbage collection on the steps' own tracks, exactly.
    pub gc: HashMap<TrackIndex, Vec<(u64, u64)>>,
    /// Recorded waits for a device on the steps' own tracks, exactly, with the calls that wait.
    pub gpu: HashMap<TrackIndex, Vec<(u64, u64, NameIndex)>>,
    /// Between two samples of a thread. 0: unknown.
    pub period_ns: u64,
    /// Waiting that looks like the GIL but may be a lock: the line was never seen running.
    pub maybe_gil: u64,
}

/// With fewer, no share can be told from any other: Wilson's interval of one in twenty reaches from 1 to 24 %.
pub const LEAST_SAMPLES: usize = 20;

/// Two samples further apart have a hole between them; less is jitter.
const HOLE: f64 = 2.5;

impl StepSamples {
    pub fn find(timeline: &Timeline, windows: &StepSpans, frames: &Frames, queue: &FullQueue) -> StepSamples {
        let mut seen = StepSamples { period_ns: period(timeline, windows), ..StepSamples::default() };
        let holders = Holders::new(timeline, windows, seen.period_ns / 2);
        let device = || {
            let mut device = DeviceWaits::new(timeline, frames, queue);
            move |index: usize| device.until(index)
        };
        for (track, _) in windows.tracks() {
            let (pauses, waits) = (pauses(timeline, track), stretches(timeline, track, device));
            seen.take(timeline, windows, frames, &holders, track, [&pauses, &waits]);
            let plain = |all: Vec<(u64, u64, NameIndex)>| all.into_iter().map(|(from, to, _)| (from, to)).collect();
            if !pauses.is_empty() {
                seen.gc.insert(track, plain(pauses));
            }
            if !waits.is_empty() {
                seen.gpu.insert(track, waits);
            }
        }
        seen
    }

    fn take(
        &mut self,
        timeline: &Timeline,
        windows: &StepSpans,
        frames: &Frames,
        holders: &Holders,
        track: TrackIndex,
        [pauses, waits]: [&[(u64, u64, NameIndex)]; 2],
    ) {
        let info = &timeline.tracks[track.0 as usize];
        let holders = holders.of(info.process);
        let times = &timeline.samples.time[info.samples.clone()];
        let (mut pause, mut wait) = (0, 0);
        let inside = |all: &[(u64, u64, NameIndex)], at: &mut usize, time: u64| {
            while all.get(*at).is_some_and(|(_, end, _)| *end <= time) {
                *at += 1;
            }
            all.get(*at).is_some_and(|(start, _, _)| *start <= time)
        };
        for index in info.samples.clone() {
            let sample = timeline.samples.get(index);
            let Some(window) = windows.at(track, sample.time) else { continue };
            let mut holder = 0;
            let doing = if inside(pauses, &mut pause, sample.time) {
                Doing::Gc
            } else if inside(waits, &mut wait, sample.time) || frames.on_top(sample.stack) & is::WAITS_FOR_GPU != 0 {
                Doing::Gpu
            } else if sample.gil || sample.active && holders.is_none() {
                Doing::Python
            } else if sample.active {
                Doing::Native
            } else {
                let top = frames.on_top(sample.stack);
                if top & WAITS == 0 || top & is::TAKES_GIL != 0 {
                    holder = holders.as_ref().and_then(|all| all.at(sample.time, track)).map_or(0, |place| place + 1);
                }
                // Whether the rest waits for the GIL is decided once all of it is known.
                if top & is::TAKES_GIL != 0 { Doing::Gil } else { Doing::Waiting }
            };
            self.all.push(StepSample { sample: index as u32, window: window as u32, doing, holder });
        }
        let known = Spans::union(pauses.iter().chain(waits).map(|(from, to, _)| (*from, *to)).collect());
        self.unseen_ns = self.unseen_ns.saturating_add(unseen(times, self.period_ns, windows, track, known.all()));
    }

    /// The recorded wait for a device in which a moment lies.
    pub fn device_wait(&self, track: TrackIndex, time: u64) -> Option<(u64, u64, NameIndex)> {
        let all = self.gpu.get(&track)?;
        let last = all[..all.partition_point(|(start, _, _)| *start <= time)].last()?;
        (time < last.1).then_some(*last)
    }
}

/// The time inside the steps of a track that lies in holes between its samples, less what is known there: pauses and waits.
fn unseen(times: &[u64], period: u64, windows: &StepSpans, track: TrackIndex, pauses: &[(u64, u64)]) -> u64 {
    let (half, hole) = (period / 2, (period as f64 * HOLE) as u64);
    let mut sum = 0;
    let mut pause = 0;
    let mut add = |start: u64, end: u64| {
        let mut inside = windows.overlap(track, start, end);
        while pauses.get(pause).is_some_and(|(_, end)| *end <= start) {
            pause += 1;
        }
        for (from, to) in pauses[pause..].iter().take_while(|(from, _)| *from < end) {
            inside -= windows.overlap(track, *from.max(&start), *to.min(&end)).min(inside);
        }
        sum = u64::saturating_add(sum, inside);
    };
    let (Some(first), Some(last)) = (times.first(), times.last()) else {
        add(0, u64::MAX);
        return sum;
    };
    add(0, first.saturating_sub(period));
    for pair in times.windows(2).filter(|pair| pair[1] - pair[0] > hole && period > 0) {
        add(pair[0] + half, pair[1] - half);
    }
    add(last.saturating_add(period), u64::MAX);
    sum
}

/// The usual time between samples of the threads that have steps: measured, else as set.
fn period(timeline: &Timeline, windows: &StepSpans) -> u64 {
    // So many gaps settle a median.
    const ENOUGH: usize = 10_000;
    let mut gaps: Vec<u64> = Vec::new();
    for (track, _) in windows.tracks() {
        let range = timeline.tracks[track.0 as usize].samples.clone();
        let times = &timeline.samples.time[range];
        gaps.extend(times.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap > 0).take(ENOUGH - gaps.len()));
        if gaps.len() >= ENOUGH {
            break;
        }
    }
    let set = timeline.info.settings.rate_hz.filter(|rate| *rate > 0.0).map_or(0, |rate| (1e9 / rate) as u64);
    median(gaps).unwrap_or(set)
}

/// Garbage collection on a track, as stretches that do not overlap.
fn pauses(timeline: &Timeline, track: TrackIndex) -> Vec<(u64, u64, NameIndex)> {
    let end = |index: usize| timeline.slices.get(index).end();
    stretches(timeline, track, || |index| (timeline.slices.kind(index) == SliceKind::Gc).then(|| end(index)))
}

/// Which CUDA calls wait for a device, and until when.
pub struct DeviceWaits<'a> {
    timeline: &'a Timeline,
    frames: &'a Frames,
    queue: &'a FullQueue<'a>,
}

impl<'a> DeviceWaits<'a> {
    pub fn new(timeline: &'a Timeline, frames: &'a Frames, queue: &'a FullQueue<'a>) -> DeviceWaits<'a> {
        DeviceWaits { timeline, frames, queue }
    }

    /// From the start of a slice. None: it is no call of CUDA's, or waits for nothing.
    pub fn until(&mut self, slice: usize) -> Option<u64> {
        let slices = &self.timeline.slices;
        match slices.kind(slice) {
            SliceKind::ApiCall => {}
            // CUPTI itself says that the queue was full.
            SliceKind::Overhead if overhead_of(slices.overhead(slice)) == OverheadOf::Queue => {
                return Some(slices.get(slice).end());
            }
            _ => return None,
        }
        let name = slices.name[slice];
        if self.frames.bits(NameIndex(name)) & is::WAITS_FOR_GPU != 0 {
            return Some(slices.get(slice).end());
        }
        let copied = self.timeline.call(slice).copies().then(|| copy_begins(self.timeline, slice)).flatten();
        copied.or_else(|| self.queue.waits(slice).then(|| slices.get(slice).end()))
    }
}

/// A copy that is over when its call returns was waited for, and so was all that the device had to do before it: until when. The
/// copy itself is the call's own work, and so is bringing the bytes of a copy to the device to where it can reach them.
fn copy_begins(timeline: &Timeline, call: usize) -> Option<u64> {
    let (work, slice) = (&timeline.gpu.work, timeline.slices.get(call));
    let pieces = work.of_launch(call).iter().map(|index| work.get(*index as usize));
    let over = pieces.filter(|piece| piece.kind == WorkKind::Memcpy && piece.end() <= slice.end());
    let begins = over.filter_map(|piece| match piece.copy().direction {
        detail::D2H => Some(piece.start),
        detail::H2D => {
            let begins = piece.start.saturating_sub(piece.bytes / STAGED_BYTES_PER_NS);
            (begins.saturating_sub(slice.start) >= STAGED_NS).then_some(begins)
        }
        _ => None,
    });
    begins.max()
}

/// No processor copies memory slower than a gigabyte a second, and no copy call takes longer to begin than this.
const STAGED_BYTES_PER_NS: u64 = 1;
const STAGED_NS: u64 = 100_000;

/// `until` makes something that says of a slice where its stretch ends. None: it has none.
fn stretches<U: FnMut(usize) -> Option<u64>>(
    timeline: &Timeline,
    track: TrackIndex,
    until: impl Fn() -> U + Sync,
) -> Vec<(u64, u64, NameIndex)> {
    let slices = timeline.tracks[track.0 as usize].slices.clone();
    // More parts than there are cores, the same on every machine, and none that is not worth a thread.
    let each = slices.len().div_ceil(64).max(50_000);
    let parts = slices.clone().step_by(each).map(|from| from..slices.end.min(from + each));
    let mut found: Vec<Vec<(usize, u64)>> = vec![Vec::new(); parts.len()];
    let tasks = parts.zip(&mut found).map(|(part, found)| {
        let until = &until;
        let job = move || {
            let mut until = until();
            found.extend(part.filter_map(|index| Some((index, until(index)?))));
        };
        Box::new(job) as Task
    });
    parallel::run(slices.len(), tasks.collect(), || ());
    let mut all: Vec<(u64, u64, NameIndex)> = Vec::new();
    for (index, end) in found.into_iter().flatten() {
        let slice = timeline.slices.get(index);
        match all.last_mut() {
            Some(last) if slice.start < last.1 => last.1 = last.1.max(end),
            _ if end >= slice.start => all.push((slice.start, end, slice.name)),
            _ => {}
        }
    }
    all
}

/// Who held the GIL when, per process that has steps.
struct Holders {
    by_process: HashMap<ProcessIndex, Vec<(u64, u32, TrackIndex)>>,
    tolerance: u64,
}

struct HoldersOf<'a> {
    all: &'a [(u64, u32, TrackIndex)],
    tolerance: u64,
}

impl Holders {
    fn new(timeline: &Timeline, windows: &StepSpans, tolerance: u64) -> Holders {
        let process = |track: TrackIndex| timeline.tracks[track.0 as usize].process;
        let mut by_process: HashMap<ProcessIndex, Vec<_>> =
            windows.tracks().map(|(track, _)| (process(track), Vec::new())).collect();
        for (number, track) in timeline.tracks.iter().enumerate() {
            let Some(all) = by_process.get_mut(&track.process) else { continue };
            let held = track.samples.clone().filter(|index| timeline.samples.get(*index).gil);
            all.extend(held.map(|index| (timeline.samples.time[index], index as u32, TrackIndex(number as u32))));
        }
        by_process.values_mut().for_each(|all| all.sort_unstable());
        Holders { by_process, tolerance }
    }

    /// None: no thread of the process was ever seen with the GIL.
    fn of(&self, process: ProcessIndex) -> Option<HoldersOf<'_>> {
        let all = self.by_process.get(&process).filter(|all| !all.is_empty())?;
        Some(HoldersOf { all, tolerance: self.tolerance })
    }
}

impl HoldersOf<'_> {
    /// The sample of another thread that held the GIL at that look.
    fn at(&self, time: u64, track: TrackIndex) -> Option<u32> {
        let place = self.all.partition_point(|holder| holder.0 < time);
        let around = [place.checked_sub(1), Some(place)];
        let near = around.into_iter().flatten().filter_map(|place| self.all.get(place));
        let nearest = near.min_by_key(|holder| holder.0.abs_diff(time))?;
        (nearest.0.abs_diff(time) <= self.tolerance && nearest.2 != track).then_some(nearest.1)
    }
}
