//! Devices on the page's timeline: a group for each device of a process, with a track a stream, how busy the device was,
//! how much work was queued and how long launches took. What a selected range holds is answered from cells, as short work is drawn together.

use super::curves::{Curve, curve, level, usual_top, with_gaps};
use super::names::PageNames;
use super::tracks::{Group, Lanes, Marks, Track, pack as pack_blocks};
use super::waits::{Drawn, Waits, waits};
use super::{lod, pack};
use crate::streams::{counted_device, device_title, title};
use analysis::device::gpu::GpuMetrics;
use serde::Serialize;
use timeline::gpu::Stream;
use timeline::parallel::{self, Task};
use timeline::{NameIndex, ProcessIndex, Timeline, WorkKind};

/// Streams of a device that are drawn, busiest first.
const MOST_STREAMS: usize = 24;
/// Cells over the recording in which the page knows the busy time, and the time of each kernel.
const BUSY_CELLS: u64 = 8192;
const KERNEL_CELLS: u64 = 600;
/// Kernels that have cells of their own; the others are one.
const MOST_KERNELS: usize = 60;

#[derive(Serialize)]
pub struct Device {
    title: String,
    busy_cell_ns: u64,
    busy: String,
    kernel_cell_ns: u64,
    /// Page names, and for each its cells one after the other: how many began, and their time.
    kernels: Vec<u64>,
    counts: String,
    times: String,
}

/// Who asked for each box of a track that is one piece of work, and how busy those are that are several. `lag` is from the begin of the call to the start of the work,
/// plus one; 0 is not known. `track` is the page's track of the call, plus one.
#[derive(Serialize)]
pub struct Launched {
    lag: String,
    track: String,
    /// Thousandths of the box; 0 for a single piece.
    busy: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    waits: Option<Waits>,
}

/// A device of a process, with what takes a look at all of its work.
pub struct Prepared<'a> {
    process: ProcessIndex,
    title: String,
    streams: Vec<&'a Stream>,
    /// Those that are drawn, and their boxes.
    chosen: Vec<(&'a Stream, Vec<lod::Block>)>,
    left_out: Option<String>,
    spans: Vec<(u64, u64)>,
    cells: Option<Device>,
}

/// The devices of all processes. What takes long is left to [`Prepared::look`].
pub fn devices<'t>(timeline: &'t Timeline) -> Vec<Prepared<'t>> {
    let all: Vec<&'t Stream> = timeline.gpu.streams.iter().collect();
    let of_device = all.chunk_by(|a, b| (a.process, a.device) == (b.process, b.device));
    let prepared = |streams: &[&'t Stream]| {
        let (process, ordinal) = (streams[0].process, streams[0].device);
        let name = timeline.gpu.device(process, ordinal).map_or("", |device| &*device.name);
        let title = device_title(ordinal, name);
        let (chosen, left_out) = busiest(streams, &title);
        let chosen = chosen.into_iter().map(|stream| (stream, Vec::new())).collect();
        Prepared { process, title, streams: streams.to_vec(), chosen, left_out, spans: Vec::new(), cells: None }
    };
    of_device.map(prepared).collect()
}

impl Prepared<'_> {
    /// `scale`: boxes for each piece of work.
    pub fn look(&mut self, timeline: &Timeline, scale: f64) {
        let Prepared { title, streams, chosen, spans, cells: found, .. } = self;
        let size = streams.iter().map(|stream| stream.work.len()).sum();
        let mut tasks: Vec<Task> = Vec::new();
        for (stream, blocks) in chosen {
            let most = (stream.work.len() as f64 * scale) as usize;
            tasks.push(Box::new(move || *blocks = lod::work_blocks(timeline, stream, most.max(200)).0));
        }
        parallel::run(size, tasks, || {
            *spans = union(timeline, streams);
            *found = Some(cells(timeline, title.clone(), streams, spans));
        });
    }
}

/// The devices of a process.
pub fn add(
    timeline: &Timeline,
    metrics: Option<&GpuMetrics>,
    process: ProcessIndex,
    prepared: &mut [Prepared],
    lanes: &mut Lanes,
    names: &mut PageNames,
) {
    for device in prepared.iter_mut().filter(|device| device.process == process) {
        let program = &timeline.processes[process.0 as usize];
        let first = lanes.counters.len();
        lanes.counters.extend(device_curves(timeline, metrics, process, &device.streams, &device.spans));
        lanes.left_out.extend(device.left_out.take());
        let chosen: Vec<&Stream> = device.chosen.iter().map(|(stream, _)| *stream).collect();
        let drawn = Drawn { streams: &chosen, first: lanes.tracks.len() };
        let mut group = Group {
            title: format!("{} of {} (pid {})", device.title, program.program, program.pid),
            tracks: Vec::new(),
            counters: (first..lanes.counters.len()).collect(),
        };
        for (stream, blocks) in &device.chosen {
            group.tracks.push(lanes.tracks.len());
            let track = track(timeline, stream, blocks, &drawn, lanes, names);
            lanes.tracks.push(Track { device: Some(lanes.devices.len()), ..track });
        }
        lanes.groups.push(group);
        lanes.devices.extend(device.cells.take().map(|cells| {
            let kernels = cells.kernels.iter().map(|name| names.place(NameIndex(*name as u32))).collect();
            Device { kernels, ..cells }
        }));
    }
}

/// Also what is said of the others.
fn busiest<'a>(streams: &[&'a Stream], title: &str) -> (Vec<&'a Stream>, Option<String>) {
    let mut chosen: Vec<&Stream> = streams.to_vec();
    chosen.sort_by_key(|stream| usize::MAX - stream.work.len());
    let more = chosen.len().saturating_sub(MOST_STREAMS);
    let words = || format!("{title} draws its {MOST_STREAMS} busiest streams; {more} more are in the exports");
    chosen.truncate(MOST_STREAMS);
    chosen.sort_by_key(|stream| (stream.context, stream.stream));
    (chosen, (more > 0).then(words))
}

fn track(
    timeline: &Timeline,
    stream: &Stream,
    blocks: &[lod::Block],
    drawn: &Drawn,
    lanes: &Lanes,
    names: &mut PageNames,
) -> Track {
    let work = &timeline.gpu.work;
    // Slices of a track lie together, and so do tracks: the call's track is found by its place.
    let track_of = |slice: usize| {
        let place = timeline.tracks.partition_point(|track| track.slices.end <= slice);
        lanes.shown.get(place).copied().flatten()
    };
    let caller = |block: &lod::Block| {
        let slice = work.launch(block.item).filter(|_| block.count == 1)?;
        // Work that seems to start before its call cannot point back to it.
        Some((block.start.checked_sub(timeline.slices.start[slice])?, track_of(slice)?))
    };
    let callers: Vec<Option<(u64, usize)>> = blocks.iter().map(caller).collect();
    Track {
        title: title(timeline, stream),
        slices: pack_blocks(timeline, blocks, names),
        marks: Marks::default(),
        device: None,
        launched: Some(Launched {
            lag: pack::plain(callers.iter().map(|caller| caller.map_or(0, |caller| caller.0.saturating_add(1)))),
            track: pack::plain(callers.iter().map(|caller| caller.map_or(0, |caller| caller.1 as u64 + 1))),
            busy: pack::plain(blocks.iter().map(fullness)),
            waits: waits(timeline, blocks, drawn, names),
        }),
    }
}

fn fullness(block: &lod::Block) -> u64 {
    let share = 1e3 * block.busy as f64 / block.dur.max(1) as f64;
    if block.count > 1 { share.clamp(1.0, 1e3) as u64 } else { 0 }
}

fn device_curves(
    timeline: &Timeline,
    metrics: Option<&GpuMetrics>,
    process: ProcessIndex,
    streams: &[&Stream],
    spans: &[(u64, u64)],
) -> Vec<Curve> {
    let cell = cell(timeline, CURVE_CELLS);
    let busy = busy(timeline, spans, cell);
    let at = |place: usize| timeline.start + place as u64 * cell;
    let last = (timeline.duration() - (busy.len() as u64 - 1) * cell).max(1);
    let long = |place: usize| if place + 1 == busy.len() { last } else { cell };
    let share = |(place, ns): (usize, &u64)| (at(place), 100.0 * *ns as f64 / long(place) as f64);
    let points: Vec<(u64, f64)> = busy.iter().enumerate().map(share).collect();
    let mut curves = vec![curve(timeline, "busy (by its work)", "%", &points).up_to(Some(100.0)).held()];
    let of_device = |c: &&timeline::Counter| {
        c.process == Some(process)
            && counted_device(c) == Some(streams[0].device as i32)
            && c.name.ends_with("memory_bytes")
    };
    let memory = timeline.counters.iter().filter(of_device);
    curves.extend(memory.map(|counter| curve(timeline, "device memory of the process", "bytes", &level(counter))));
    // The depth is of all work that was recorded: it stands with the first device that has any.
    let first = timeline.gpu.streams.first().is_some_and(|first| std::ptr::eq(first, streams[0]));
    let launch = metrics.and_then(|metrics| metrics.launch.as_ref()).filter(|_| first);
    curves.extend(launch.map(|launch| {
        // Drawn as held from each point on: a bucket stands at its begin.
        let points: Vec<(u64, f64)> = launch.depth.held(timeline.start).collect();
        curve(timeline, "queued (launched, not finished)", "pieces", &points).held()
    }));
    curves.extend(launch.and_then(|launch| launch.latency.as_ref()).map(|latency| {
        let points = with_gaps(timeline, latency);
        curve(timeline, "from launch to work (median)", "ns", &points).up_to(usual_top(&points)).held()
    }));
    curves
}

/// Points of the busy curve: as many as a wide screen shows.
const CURVE_CELLS: u64 = 1000;

fn cell(timeline: &Timeline, count: u64) -> u64 {
    (timeline.duration() / count + 1).max(1)
}

/// When any work ran on the device.
fn union(timeline: &Timeline, streams: &[&Stream]) -> Vec<(u64, u64)> {
    let work = &timeline.gpu.work;
    let busy = streams.iter().flat_map(|stream| stream.work.clone()).filter(|index| work.kind(*index).is_busy());
    let joined = |next: &(u64, u64), last: &mut (u64, u64)| {
        let joins = last.0 <= next.0 && next.0 <= last.1;
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    };
    // What joins is not kept: of one stream, that is all there is to do.
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for span in busy.map(|index| (work.start[index], work.end(index))) {
        if !spans.last_mut().is_some_and(|last| joined(&span, last)) {
            spans.push(span);
        }
    }
    // Streams are sorted runs: the stable sort finds and merges them.
    spans.sort();
    spans.dedup_by(|next, last| joined(next, last));
    spans
}

/// Nanoseconds of each cell in which any work ran.
fn busy(timeline: &Timeline, spans: &[(u64, u64)], cell: u64) -> Vec<u64> {
    let mut cells = vec![0; (timeline.duration() / cell + 1) as usize];
    for (start, end) in spans {
        share(timeline, cell, *start, *end, |place, inside| cells[place] += inside);
    }
    cells
}

/// How much of a span lies in each cell. What lies outside of the recording is left out.
fn share(timeline: &Timeline, cell: u64, start: u64, end: u64, mut each: impl FnMut(usize, u64)) {
    let (mut from, to) = (start.saturating_sub(timeline.start), end.min(timeline.end).saturating_sub(timeline.start));
    while from < to {
        let place = from / cell;
        let next = to.min((place + 1).saturating_mul(cell));
        each(place as usize, next - from);
        from = next;
    }
}

/// With the names of the kernels as the timeline has them.
fn cells(timeline: &Timeline, title: String, streams: &[&Stream], spans: &[(u64, u64)]) -> Device {
    let (busy_cell, kernel_cell) = (cell(timeline, BUSY_CELLS), cell(timeline, KERNEL_CELLS));
    let work = &timeline.gpu.work;
    let kernels =
        || streams.iter().flat_map(|stream| stream.work.clone()).filter(|index| work.kind(*index) == WorkKind::Kernel);
    // By the number of the name, so that no kernel needs a hash.
    let mut totals: Vec<Option<u64>> = vec![None; timeline.names.len()];
    for index in kernels() {
        let total = &mut totals[work.name[index] as usize];
        *total = Some(total.unwrap_or(0).saturating_add(work.dur[index]));
    }
    let totals = (0..).zip(totals);
    let mut top: Vec<(u32, u64)> = totals.filter_map(|(name, total)| Some((name, total?))).collect();
    top.sort_unstable_by_key(|(name, total)| (u64::MAX - total, *name));
    top.truncate(MOST_KERNELS);
    let mut places = vec![top.len(); timeline.names.len()];
    top.iter().enumerate().for_each(|(place, (name, _))| places[*name as usize] = place);
    let width = (timeline.duration() / kernel_cell + 1) as usize;
    let mut counts = vec![0u64; width * (top.len() + 1)];
    let mut times = counts.clone();
    for index in kernels() {
        let row = places[work.name[index] as usize] * width;
        let began = (work.start[index].saturating_sub(timeline.start) / kernel_cell) as usize;
        counts[row + began.min(width - 1)] += 1;
        share(timeline, kernel_cell, work.start[index], work.end(index), |place, ns| {
            times[row + place] = times[row + place].saturating_add(ns);
        });
    }
    Device {
        title,
        busy_cell_ns: busy_cell,
        busy: pack::plain(busy(timeline, spans, busy_cell)),
        kernel_cell_ns: kernel_cell,
        kernels: top.iter().map(|(name, _)| u64::from(*name)).collect(),
        counts: pack::plain(counts),
        times: pack::plain(times),
    }
}
