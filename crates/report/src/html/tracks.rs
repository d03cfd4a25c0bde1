//! The lanes of the page's timeline: groups of processes, tracks with blocks and marks, counters as curves.

use super::names::PageNames;
use super::{lod, pack};
use serde::Serialize;
use timeline::{Counter, NameIndex, ProcessIndex, SliceKind, Timeline, TrackIndex};

/// A page shows this many boxes, tracks and counters; the rest is said to be left out, and is in the exports.
const MOST_BLOCKS: usize = 120_000;
const MOST_TRACKS: usize = 120;
const MOST_COUNTERS: usize = 80;
const MOST_MARKS: usize = 400;
const MOST_POINTS: usize = 1500;

#[derive(Serialize)]
pub struct Group {
    title: String,
    tracks: Vec<usize>,
    counters: Vec<usize>,
}

#[derive(Serialize)]
pub struct Track {
    pub title: String,
    slices: Blocks,
    marks: Marks,
}

#[derive(Serialize)]
struct Blocks {
    start: String,
    dur: String,
    depth: String,
    name: String,
    kind: String,
    count: String,
}

#[derive(Serialize)]
struct Marks {
    time: String,
    name: String,
}

#[derive(Serialize)]
pub struct Curve {
    title: String,
    unit: &'static str,
    time: String,
    value: String,
}

pub struct Lanes {
    pub groups: Vec<Group>,
    pub tracks: Vec<Track>,
    pub counters: Vec<Curve>,
    /// Page's track of each of the timeline's; None when it is not shown.
    pub shown: Vec<Option<usize>>,
    /// One line each: what is not drawn.
    pub left_out: Vec<String>,
}

pub fn lanes(timeline: &Timeline, cpu: Option<&analysis::Curve>, names: &mut PageNames) -> Lanes {
    let chosen = busiest(timeline);
    let mut lanes = Lanes {
        groups: Vec::new(),
        tracks: Vec::new(),
        counters: Vec::new(),
        shown: vec![None; timeline.tracks.len()],
        left_out: Vec::new(),
    };
    let slices: usize = chosen.iter().map(|index| timeline.tracks[index.0 as usize].slices.len()).sum();
    if let Some(cpu) = cpu {
        lanes.counters.push(curve(timeline, "CPU (100 % is one core)", "%", &percent(timeline, cpu)));
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
            let track = &timeline.tracks[index.0 as usize];
            // Each track gets its share of the boxes, and never fewer than a screenful.
            let share = MOST_BLOCKS * track.slices.len() / slices.max(1);
            lanes.shown[index.0 as usize] = Some(lanes.tracks.len());
            group.tracks.push(lanes.tracks.len());
            lanes.tracks.push(one(timeline, track, share.max(200), names));
        }
        if !group.tracks.is_empty() || !group.counters.is_empty() {
            lanes.groups.push(group);
        }
        if lanes.counters.len() > MOST_COUNTERS {
            break;
        }
    }
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

fn one(timeline: &Timeline, track: &timeline::Track, most: usize, names: &mut PageNames) -> Track {
    let blocks = lod::blocks(timeline, track, most);
    let since = |time: u64| time.saturating_sub(timeline.start);
    let marks: Vec<_> = track.slices.clone().filter(|index| timeline.slices.kind(*index) == SliceKind::Mark).collect();
    let every = marks.len().div_ceil(MOST_MARKS).max(1);
    let marks: Vec<_> = marks.into_iter().step_by(every).map(|index| timeline.slices.get(index)).collect();
    let title =
        if track.name.is_empty() { format!("thread {}", track.tid) } else { format!("{} ({})", track.name, track.tid) };
    Track {
        title,
        slices: Blocks {
            start: pack::delta(blocks.iter().map(|block| since(block.start) as i64)),
            dur: pack::plain(blocks.iter().map(|block| block.dur)),
            depth: pack::plain(blocks.iter().map(|block| u64::from(block.depth))),
            name: pack::plain(blocks.iter().map(|block| names.place(NameIndex(block.name)))),
            kind: pack::plain(blocks.iter().map(|block| block.kind as u64)),
            count: pack::plain(blocks.iter().map(|block| block.count)),
        },
        marks: Marks {
            time: pack::delta(marks.iter().map(|mark| since(mark.start) as i64)),
            name: pack::plain(marks.iter().map(|mark| names.place(mark.name))),
        },
    }
}

type Points = Vec<(u64, f64)>;

/// The curves that people look at, of one process or of the machine.
fn curves(timeline: &Timeline, process: Option<ProcessIndex>) -> Vec<(&'static str, &'static str, Points)> {
    let of = |name: &'static str| {
        timeline.counters.iter().filter(move |c| c.process == process && &*c.name == name && c.tid.is_none())
    };
    let level = |counter: &Counter| {
        counter.time.iter().copied().zip(counter.value.iter().map(|v| *v as f64)).collect::<Points>()
    };
    let mut curves: Vec<(&'static str, &'static str, Points)> = Vec::new();
    for (name, title, unit) in [
        ("rss_bytes", "memory (RSS)", "bytes"),
        ("pss_bytes", "memory (PSS)", "bytes"),
        ("swap_bytes", "swapped out", "bytes"),
    ] {
        curves.extend(
            of(name)
                .map(|counter| (title, unit, level(counter)))
                .filter(|(_, _, points)| points.iter().any(|p| p.1 > 0.0)),
        );
    }
    for (name, title) in [
        ("major_faults", "major faults a second"),
        ("psi_memory_some_us", "memory pressure, µs a second"),
        ("psi_cpu_some_us", "CPU pressure, µs a second"),
    ] {
        curves.extend(
            of(name)
                .map(|counter| (title, "", rate(counter)))
                .filter(|(_, _, points)| points.iter().any(|p| p.1 > 0.0)),
        );
    }
    curves
}

/// Cores in use, in percent of one; each bucket stands at its middle.
fn percent(timeline: &Timeline, cpu: &analysis::Curve) -> Points {
    let at = |bucket: usize| timeline.start + bucket as u64 * cpu.bucket_ns + cpu.bucket_ns / 2;
    let known = cpu.buckets.iter().enumerate().filter_map(|(bucket, value)| Some((bucket, (*value)?)));
    known.map(|(bucket, value)| (at(bucket), value * 100.0)).collect()
}

/// A cumulative count as a rate a second.
fn rate(counter: &Counter) -> Points {
    let pairs = counter.time.windows(2).zip(counter.value.windows(2));
    pairs
        .filter(|(time, _)| time[1] > time[0])
        .map(|(time, value)| (time[1], (value[1] - value[0]).max(0) as f64 * 1e9 / (time[1] - time[0]) as f64))
        .collect()
}

/// At most a screenful of points: the largest of each group, so that no peak is lost.
fn curve(timeline: &Timeline, title: &str, unit: &'static str, points: &[(u64, f64)]) -> Curve {
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    let kept: Vec<(u64, f64)> =
        points.chunks(every).filter_map(|chunk| chunk.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1))).collect();
    Curve {
        title: title.to_owned(),
        unit,
        time: pack::delta(kept.iter().map(|(time, _)| time.saturating_sub(timeline.start) as i64)),
        value: pack::delta(kept.iter().map(|(_, value)| *value as i64)),
    }
}
