//! The median step as lanes of one picture: what its thread does, its launch calls, what the device computes and copies, and
//! why it is idle. Recorded, not averaged: this one step happened.

use crate::StepAnalysis;
use crate::idle::{self, Cause, Piece, Who, by_line};
use crate::place::Place;
use crate::steps::groups::Groups;
use crate::steps::spans::Spans;
use std::collections::HashMap;
use timeline::{ProcessIndex, TrackIndex, WorkKind};

#[derive(Clone, PartialEq, Debug)]
pub struct Waterfall {
    /// Its place in [`crate::steps::Steps::steps`].
    pub step: u32,
    pub track: TrackIndex,
    pub start: u64,
    pub end: u64,
    pub lanes: Vec<Lane>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Lane {
    pub kind: LaneKind,
    /// None: the step's thread.
    pub device: Option<(ProcessIndex, u32)>,
    /// By start, none overlaps another.
    pub stretches: Vec<Stretch>,
    /// What the lane has of each class, most first.
    pub totals: Vec<Total>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneKind {
    /// What the step's thread does.
    Host,
    /// Its calls that give work to devices.
    Launch,
    Kernels,
    Copies,
    Idle,
}

impl LaneKind {
    pub fn name(self) -> &'static str {
        match self {
            LaneKind::Host => "host",
            LaneKind::Launch => "launch",
            LaneKind::Kernels => "gpu",
            LaneKind::Copies => "copies",
            LaneKind::Idle => "idle",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    Kernels,
    Copies,
    Of(Cause),
}

impl Class {
    pub fn code(self) -> &'static str {
        match self {
            Class::Kernels => "kernels",
            Class::Copies => "copies",
            Class::Of(cause) => cause.code(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    pub start: u64,
    pub end: u64,
    pub class: Class,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Total {
    pub class: Class,
    pub ns: u64,
    /// The line or the call that has most of it.
    pub top: Option<Place>,
}

/// A picture shows no more; what is more becomes cells of one length, each of what most of it is.
const MOST: usize = 4000;
/// Devices of one step.
const MOST_DEVICES: usize = 8;

/// None: there are no steps, or the median one takes no time.
pub fn measure(case: &StepAnalysis) -> Option<Waterfall> {
    let step = case.steps.steps.get(Groups::new(&case.steps).median? as usize).filter(|step| step.dur() > 0)?;
    let (start, end, track) = (step.start, step.end, step.track);
    let own = case.timeline.tracks[track.0 as usize].process;
    let mut devices: Vec<&idle::DeviceIdle> = case.idle().iter().filter(|device| device.process == own).collect();
    if devices.is_empty() {
        devices = case.idle().iter().collect();
    }
    let recorded = devices.iter().find(|device| !device.host.is_empty());
    let host = recorded.map_or_else(|| case.host_pieces(track, start, end), |device| device.host.clone());
    let launches: Vec<Piece> = host.iter().filter(|piece| piece.cause == Cause::Launch).copied().collect();
    let mut lanes =
        vec![of_pieces(case, LaneKind::Host, None, &host), of_pieces(case, LaneKind::Launch, None, &launches)];
    for device in devices.into_iter().take(MOST_DEVICES) {
        let key = (device.process, device.ordinal);
        let [kernels, copies] = work(case, key, start, end);
        lanes.push(of_spans(LaneKind::Kernels, key, Class::Kernels, &kernels));
        lanes.push(of_spans(LaneKind::Copies, key, Class::Copies, &copies));
        lanes.push(of_pieces(case, LaneKind::Idle, Some(key), &device.median));
    }
    // A step that launches and copies nothing has no lane for it.
    lanes.retain(|lane| lane.kind == LaneKind::Host || !lane.stretches.is_empty());
    lanes.iter_mut().for_each(|lane| fit(lane, start, end));
    Some(Waterfall { step: step.index, track, start, end, lanes })
}

fn of_pieces(case: &StepAnalysis, kind: LaneKind, device: Option<(ProcessIndex, u32)>, pieces: &[Piece]) -> Lane {
    let mut by: HashMap<Cause, HashMap<Who, u64>> = HashMap::new();
    let mut stretches: Vec<Stretch> = Vec::new();
    for piece in pieces {
        *by.entry(piece.cause).or_default().entry(piece.who).or_default() += piece.end - piece.start;
        let class = Class::Of(piece.cause);
        match stretches.last_mut() {
            Some(last) if last.class == class && last.end == piece.start => last.end = piece.end,
            _ => stretches.push(Stretch { start: piece.start, end: piece.end, class }),
        }
    }
    let total = |(cause, who): (Cause, HashMap<Who, u64>)| {
        let mut tops: Vec<(Who, u64)> = who.into_iter().collect();
        tops.sort_by_key(|(who, ns)| (u64::MAX - ns, *who));
        let ns = tops.iter().map(|(_, ns)| ns).sum();
        Total {
            class: Class::Of(cause),
            ns,
            top: by_line(case.timeline, &tops).into_iter().next().map(|(place, _)| place),
        }
    };
    let mut totals: Vec<Total> = by.into_iter().map(total).collect();
    totals.sort_by_key(|total| (u64::MAX - total.ns, total.class.code()));
    Lane { kind, device, stretches, totals }
}

fn of_spans(kind: LaneKind, device: (ProcessIndex, u32), class: Class, spans: &Spans) -> Lane {
    let stretches: Vec<Stretch> =
        spans.all().iter().map(|(start, end)| Stretch { start: *start, end: *end, class }).collect();
    let ns = stretches.iter().map(|one| one.end - one.start).sum();
    let totals = if ns > 0 { vec![Total { class, ns, top: None }] } else { Vec::new() };
    Lane { kind, device: Some(device), stretches, totals }
}

/// Kernels and copies of a device in the step.
fn work(case: &StepAnalysis, device: (ProcessIndex, u32), start: u64, end: u64) -> [Spans; 2] {
    let gpu = &case.timeline.gpu;
    let (mut kernels, mut copies) = (Vec::new(), Vec::new());
    for stream in gpu.streams.iter().filter(|stream| (stream.process, stream.device) == device) {
        let starts = &gpu.work.start[stream.work.clone()];
        let from = starts.partition_point(|at| *at < start).saturating_sub(1);
        for index in stream.work.start + from..stream.work.start + starts.partition_point(|at| *at < end) {
            let span = (gpu.work.start[index].max(start), gpu.work.end(index).min(end));
            match gpu.work.kind(index) {
                _ if span.0 >= span.1 => {}
                WorkKind::Kernel => kernels.push(span),
                kind if kind.is_busy() => copies.push(span),
                _ => {}
            }
        }
    }
    [Spans::union(kernels), Spans::union(copies)]
}

/// Makes a lane of too many stretches one of cells.
fn fit(lane: &mut Lane, start: u64, end: u64) {
    if lane.stretches.len() <= MOST {
        return;
    }
    let length = (end - start).div_ceil(MOST as u64).max(1);
    let mut cells: Vec<HashMap<Class, u64>> = vec![HashMap::new(); MOST];
    for one in &lane.stretches {
        let mut at = one.start;
        while at < one.end {
            let cell = ((at - start) / length) as usize;
            let until = one.end.min(start + (cell as u64 + 1) * length);
            *cells[cell.min(MOST - 1)].entry(one.class).or_default() += until - at;
            at = until;
        }
    }
    lane.stretches.clear();
    for (place, cell) in cells.into_iter().enumerate() {
        let Some((class, ns)) = cell.into_iter().max_by_key(|(class, ns)| (*ns, class.code())) else { continue };
        let from = start + place as u64 * length;
        // Half a cell or less is drawn as long as it is.
        lane.stretches.push(Stretch {
            start: from,
            end: (from + if 2 * ns > length { length } else { ns }).min(end),
            class,
        });
    }
}
