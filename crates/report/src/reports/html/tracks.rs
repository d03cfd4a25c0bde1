//! The lanes of the page's timeline: groups of processes and their devices, tracks with blocks and marks, counters as curves.

use super::curves::{Curve, buckets, curve, curves};
use super::names::PageNames;
use super::streams::{Device, Launched};
use super::{devices, lod, pack, streams};
use crate::lanes::is_mark;
use analysis::Metrics;
use diagnosis::Diagnosis;
use serde::Serialize;
use std::collections::BTreeMap;
use timeline::parallel::{self, Task};
use timeline::{NameIndex, ProcessIndex, Timeline, TrackIndex};

/// A page shows this many boxes, tracks and counters; the rest is said to be left out, and is in the exports.
const MOST_BLOCKS: usize = 120_000;
const MOST_BLOCKS_WITH_DEVICES: usize = 150_000;
const MOST_TRACKS: usize = 120;
const MOST_COUNTERS: usize = 80;
const MOST_MARKS: usize = 400;

#[derive(Serialize)]
pub struct Group {
    pub title: String,
    pub tracks: Vec<usize>,
    pub counters: Vec<usize>,
}

#[derive(Serialize)]
pub struct Track {
    pub title: String,
    pub slices: Blocks,
    pub marks: Marks,
    /// Of a stream: the page's device, and who launched its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launched: Option<Launched>,
}

#[derive(Serialize)]
pub struct Blocks {
    start: String,
    dur: String,
    depth: String,
    name: String,
    kind: String,
    count: String,
}

#[derive(Serialize, Default)]
pub struct Marks {
    time: String,
    name: String,
}

#[derive(Default)]
pub struct Lanes {
    pub groups: Vec<Group>,
    pub tracks: Vec<Track>,
    pub counters: Vec<Curve>,
    pub devices: Vec<Device>,
    /// Page's track of each of the timeline's; None when it is not shown.
    pub shown: Vec<Option<usize>>,
    /// One line each: what is not drawn.
    pub left_out: Vec<String>,
}

pub fn lanes(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis, names: &mut PageNames) -> Lanes {
    let chosen = busiest(timeline);
    let mut lanes = Lanes { shown: vec![None; timeline.tracks.len()], ..Lanes::default() };
    let slices: usize = chosen.iter().map(|index| timeline.tracks[index.0 as usize].slices.len()).sum();
    // Threads and streams share what the page can hold.
    let events = (slices + timeline.gpu.work.len()).max(1);
    let most = if timeline.gpu.is_empty() { MOST_BLOCKS } else { MOST_BLOCKS_WITH_DEVICES };
    let (mut drawings, mut devices) = draw(timeline, &chosen, most, events);
    if let Some(cpu) = &metrics.cpu {
        lanes.counters.push(curve(timeline, "CPU (100 % is one core)", "%", &buckets(timeline, cpu, 100.0)));
        let title = "all recorded processes".to_owned();
        lanes.groups.push(Group { title, tracks: Vec::new(), counters: vec![0] });
    }
    for (number, process) in timeline.processes.iter().enumerate() {
        let of = ProcessIndex(number as u32);
        let mut group = Group {
            title: format!("{} (pid {})", process.program, process.pid),
            tracks: Vec::new(),
            counters: Vec::new(),
        };
        for (title, unit, points) in curves(timeline, Some(of)) {
            group.counters.push(lanes.counters.len());
            lanes.counters.push(curve(timeline, title, unit, &points));
        }
        for index in chosen.iter().filter(|index| timeline.tracks[index.0 as usize].process == of) {
            lanes.shown[index.0 as usize] = Some(lanes.tracks.len());
            group.tracks.push(lanes.tracks.len());
            let drawing = drawings.remove(index).unwrap_or_default();
            lanes.tracks.push(one(timeline, &timeline.tracks[index.0 as usize], &drawing, names));
        }
        if !group.tracks.is_empty() || !group.counters.is_empty() {
            lanes.groups.push(group);
        }
        streams::add(timeline, diagnosis.gpu.as_ref(), of, &mut devices, &mut lanes, names);
        if lanes.counters.len() > MOST_COUNTERS {
            break;
        }
    }
    devices::add(timeline, &mut lanes);
    let machine = curves(timeline, None);
    if !machine.is_empty() {
        let first = lanes.counters.len();
        lanes.counters.extend(machine.into_iter().map(|(title, unit, points)| curve(timeline, title, unit, &points)));
        lanes.groups.push(Group {
            title: "the whole machine".into(),
            tracks: Vec::new(),
            counters: (first..lanes.counters.len()).collect(),
        });
    }
    let hidden = timeline.tracks.len() - chosen.len();
    if hidden > 0 {
        lanes
            .left_out
            .push(format!("the timeline draws the {} busiest threads; {hidden} more are in the exports", chosen.len()));
    }
    lanes
}

/// The tracks with most events, in the timeline's order.
fn busiest(timeline: &Timeline) -> Vec<TrackIndex> {
    let mut all: Vec<TrackIndex> = (0..timeline.tracks.len() as u32).map(TrackIndex).collect();
    let events = |index: &TrackIndex| {
        let track = &timeline.tracks[index.0 as usize];
        track.slices.len() + track.samples.len()
    };
    all.retain(|index| events(index) > 0);
    all.sort_by_key(|index| usize::MAX - events(index));
    all.truncate(MOST_TRACKS);
    all.sort();
    all
}

/// What a thread's track shows: boxes, and the slices that are marks.
#[derive(Default)]
struct Drawing {
    blocks: Vec<lod::Block>,
    marks: Vec<usize>,
}

impl Drawing {
    fn new(timeline: &Timeline, track: &timeline::Track, most: usize) -> Drawing {
        let marks: Vec<_> = track.slices.clone().filter(|index| is_mark(&timeline.slices.get(*index))).collect();
        let every = marks.len().div_ceil(MOST_MARKS).max(1);
        Drawing { blocks: lod::blocks(timeline, track, most), marks: marks.into_iter().step_by(every).collect() }
    }
}

/// All that takes a look at every event, at the same time.
fn draw<'t>(
    timeline: &'t Timeline,
    chosen: &[TrackIndex],
    most: usize,
    events: usize,
) -> (BTreeMap<TrackIndex, Drawing>, Vec<streams::Prepared<'t>>) {
    let mut drawings: BTreeMap<_, _> = chosen.iter().map(|index| (*index, Drawing::default())).collect();
    let mut devices = streams::devices(timeline);
    let scale = most as f64 / events as f64;
    let mut tasks: Vec<Task> = Vec::new();
    for device in &mut devices {
        tasks.push(Box::new(move || device.look(timeline, scale)));
    }
    for (index, drawing) in &mut drawings {
        let track = &timeline.tracks[index.0 as usize];
        // Each track gets its share of the boxes, and never fewer than a screenful.
        let share = most * track.slices.len() / events;
        tasks.push(Box::new(move || *drawing = Drawing::new(timeline, track, share.max(200))));
    }
    parallel::run(events, tasks, || ());
    (drawings, devices)
}

fn one(timeline: &Timeline, track: &timeline::Track, drawing: &Drawing, names: &mut PageNames) -> Track {
    let since = |time: u64| time.saturating_sub(timeline.start);
    let marks: Vec<_> = drawing.marks.iter().map(|index| timeline.slices.get(*index)).collect();
    let title =
        if track.name.is_empty() { format!("thread {}", track.tid) } else { format!("{} ({})", track.name, track.tid) };
    Track {
        title,
        slices: pack(timeline, &drawing.blocks, names),
        marks: Marks {
            time: pack::delta(marks.iter().map(|mark| since(mark.start) as i64)),
            name: pack::plain(marks.iter().map(|mark| names.place(mark.name))),
        },
        device: None,
        launched: None,
    }
}

pub fn pack(timeline: &Timeline, blocks: &[lod::Block], names: &mut PageNames) -> Blocks {
    Blocks {
        start: pack::delta(blocks.iter().map(|block| block.start.saturating_sub(timeline.start) as i64)),
        dur: pack::plain(blocks.iter().map(|block| block.dur)),
        depth: pack::plain(blocks.iter().map(|block| u64::from(block.depth))),
        name: pack::plain(blocks.iter().map(|block| names.place(NameIndex(block.name)))),
        kind: pack::plain(blocks.iter().map(|block| u64::from(block.kind))),
        count: pack::plain(blocks.iter().map(|block| block.count)),
    }
}
