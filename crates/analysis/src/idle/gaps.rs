//! The gaps of a device inside the steps, and whose they are: the thread that launched the work which ends a gap, or the step's
//! own thread where nothing follows in the step or the launching thread itself waits for something to do.

use super::bubbles::{Wait, wait_at};
use super::handed;
use super::host::{Hosts, Piece, Who};
use super::pace::{LONGEST_NS, QUEUED_NS};
use super::sums::{Map, Measure, Sums, Zone};
use super::{Cause, DeviceIdle};
use crate::gpu::windows_of;
use crate::rule::Case;
use crate::slow_steps::Groups;
use crate::steps::StepSource;
use crate::windows::Window;
use std::collections::HashMap;
use timeline::gpu::Stream;
use timeline::{TrackIndex, WorkKind};

struct Gap {
    start: u64,
    end: u64,
    zone: Zone,
    /// The device was busy until `start`, inside this step.
    begins_here: bool,
    /// The work that ends it, or comes next after the step.
    next: Option<u32>,
}

struct Device<'c, 'a, 'h> {
    case: &'c Case<'a>,
    hosts: &'h mut Hosts<'c, 'a>,
    /// The thread that launches most of the device's work.
    usual: Option<TrackIndex>,
    /// When each device was busy, and which of them is this one.
    others: (&'c [Vec<Busy>], usize),
    /// The start of its first work and the end of its last. Without steps, what is before or after that is between no two works.
    ends: (u64, u64),
    /// Of each stream: its works, and the first of them whose launch was recorded. Those before it were launched earlier.
    first: Vec<(std::ops::Range<usize>, usize)>,
    sums: Sums,
    pieces: Vec<Piece>,
    second: Vec<Piece>,
    /// The group of steps that the window belongs to.
    group: Option<usize>,
    /// When the median step began and ended.
    shown: Option<(u64, u64)>,
    groups: [Map<(Cause, Who), u64>; 2],
    median: Vec<Piece>,
}

/// `all` are the spans of all devices, `place` is that of this one.
pub fn attribute<'c, 'a>(
    case: &'c Case<'a>,
    streams: &[Stream],
    (all, place): (&'c [Vec<Busy>], usize),
    hosts: &mut Hosts<'c, 'a>,
) -> Option<DeviceIdle> {
    let spans = &all[place];
    let first = streams.first().filter(|_| !spans.is_empty())?;
    let windows = windows_of(case, first.process);
    let usual = usual_thread(case, streams);
    let members = Groups::new(&case.steps);
    let shown = members.median.and_then(|step| case.steps.steps.get(step as usize));
    let mut device = Device {
        case,
        hosts,
        usual,
        others: (all, place),
        ends: (spans[0].0, spans[spans.len() - 1].1),
        first: streams.iter().filter_map(|stream| Some((stream.work.clone(), first_linked(case, stream)?))).collect(),
        sums: Sums::default(),
        pieces: Vec::new(),
        second: Vec::new(),
        group: None,
        shown: shown.map(|step| (step.start, step.end)),
        groups: Default::default(),
        median: Vec::new(),
    };
    let (mut window_ns, mut idle_ns, mut next) = (0u64, 0u64, 0);
    let mut host = Vec::new();
    for window in &windows {
        next += spans[next..].partition_point(|span| span.1 <= window.start);
        device.group = members.of(window.step);
        let idle = device.window(window, &spans[next..]);
        window_ns = window_ns.saturating_add(window.end - window.start);
        idle_ns = idle_ns.saturating_add(idle);
        device.sums.close(window.end - window.start);
        // Steps of several threads that overlap are one window: the one that is shown may lie anywhere in it.
        if let Some(step) = shown.filter(|step| window.start <= step.start && step.end <= window.end) {
            handed::split(case, device.hosts, step.track, (step.start, step.end), &mut host);
        }
    }
    let Device { sums, groups, median, .. } = device;
    let causes = sums.causes(case, window_ns);
    let (process, ordinal) = (first.process, first.device);
    Some(DeviceIdle { process, ordinal, window_ns, busy_ns: window_ns - idle_ns, causes, sums, groups, median, host })
}

/// Start, end, and the work that began it.
pub type Busy = (u64, u64, u32);

/// When the device was busy, by time.
pub fn spans(case: &Case, streams: &[Stream]) -> Vec<Busy> {
    let work = &case.timeline.gpu.work;
    let busy = streams.iter().flat_map(|stream| stream.work.clone()).filter(|index| work.kind(*index).is_busy());
    let mut all: Vec<Busy> =
        busy.map(|index| (work.start[index], work.end(index), index as u32)).filter(|span| span.0 < span.1).collect();
    // Streams come one after the other and each in order: the sort finds those runs.
    all.sort();
    all.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    });
    all
}

fn usual_thread(case: &Case, streams: &[Stream]) -> Option<TrackIndex> {
    let mut counts: HashMap<TrackIndex, u64> = HashMap::new();
    // A few thousand launches show who launches.
    const ENOUGH: usize = 4096;
    let each = streams.iter().map(|stream| stream.work.len()).sum::<usize>().div_ceil(ENOUGH).max(1);
    for index in streams.iter().flat_map(|stream| stream.work.clone()).step_by(each) {
        if let Some(launch) = case.timeline.gpu.work.launch(index) {
            *counts.entry(track_of(case, launch)).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(track, count)| (*count, std::cmp::Reverse(*track))).map(|(track, _)| track)
}

/// None: no launch of the stream's work was recorded, so that a missing one says nothing.
fn first_linked(case: &Case, stream: &Stream) -> Option<usize> {
    stream.work.clone().find(|index| case.timeline.gpu.work.launch(*index).is_some())
}

fn track_of(case: &Case, slice: usize) -> TrackIndex {
    TrackIndex(case.timeline.tracks.partition_point(|track| track.slices.end <= slice) as u32)
}

impl Device<'_, '_, '_> {
    /// Returns the idle time of the window. `spans` begin with the first that ends in it or later.
    fn window(&mut self, window: &Window, spans: &[Busy]) -> u64 {
        let whole = self.case.steps.source == StepSource::Whole;
        let (mut at, mut any, mut idle) = (window.start, false, 0);
        let inside = spans.iter().take_while(|span| span.0 < window.end);
        let (first, last) = inside.fold((window.end, window.start), |(first, last), span| {
            (first.min(span.0.max(window.start)), last.max(span.1.min(window.end)))
        });
        self.sums.zones.push([window.start, first, last.max(first), window.end]);
        let mut place = 0;
        while let Some((start, end, next)) = spans.get(place).filter(|span| span.0 < window.end) {
            if at < *start {
                let zone = if any || whole && self.ends.0 <= at { Zone::Middle } else { Zone::Lead };
                self.gap(window, &Gap { start: at, end: *start, zone, begins_here: any, next: Some(*next) });
                idle += start - at;
            }
            any = true;
            at = at.max(*end).min(window.end);
            place += 1;
        }
        if at < window.end {
            let over = if whole { self.ends.1 <= at } else { any };
            let zone = match over {
                true => Zone::Tail,
                false if whole && at < self.ends.0 => Zone::Lead,
                false => Zone::Middle,
            };
            let next = spans.get(place).map(|span| span.2);
            self.gap(window, &Gap { start: at, end: window.end, zone, begins_here: any, next });
            idle += window.end - at;
        }
        idle
    }

    fn gap(&mut self, window: &Window, gap: &Gap) {
        let case = self.case;
        let work = &case.timeline.gpu.work;
        let step = case.steps.steps.get(window.step as usize).map(|step| step.track);
        let launch = gap.next.and_then(|next| work.launch(next as usize));
        let launcher = launch.map(|launch| track_of(case, launch)).or(self.usual);
        // After a step's last work it is the step's own thread that has not finished.
        // What was launched before the recording does not wait for what the host does now.
        let unlinked = gap.next.filter(|_| launch.is_none() && gap.zone != Zone::Tail);
        let earlier = unlinked.is_some_and(|next| self.is_earlier(next as usize));
        let track = if gap.zone == Zone::Tail { step.or(launcher) } else { launcher.or(step) };
        let Some(track) = track.filter(|_| !earlier) else {
            let cause = if earlier && gap.end - gap.start < QUEUED_NS { Cause::Launch } else { Cause::Unknown };
            let others = earlier && cause == Cause::Unknown && self.others_work(gap.start, gap.end);
            let who = if earlier && !others { Who::Earlier } else { Who::Nobody };
            self.sums.add(gap.zone, cause, who, gap.end - gap.start);
            if who == Who::Earlier && cause == Cause::Unknown {
                self.sums.hold(gap.start, gap.end);
            }
            self.pieces.clear();
            self.pieces.push(Piece { start: gap.start, end: gap.end, cause, who });
            self.keep();
            return;
        };
        let launch = launch.filter(|_| launcher == Some(track));
        self.pieces.clear();
        let asked = launch.map_or(gap.end, |launch| case.timeline.slices.start[launch].clamp(gap.start, gap.end));
        if gap.start < asked {
            self.hosts.of(track).split(gap.start, asked, &mut self.pieces);
            if let Some(step) = step.filter(|step| *step != track) {
                self.ask_the_step(step);
            }
        }
        if let (true, Some(launch), Some(next)) = (asked < gap.end, launch, gap.next) {
            self.on_its_way(track, (asked, gap.end), launch, next as usize);
        }
        self.keep();
        let mut runs = 0;
        let mut launching = 0;
        for piece in &self.pieces {
            let ns = piece.end - piece.start;
            self.sums.add(gap.zone, piece.cause, piece.who, ns);
            match piece.cause {
                Cause::Python | Cause::Native => runs += ns,
                Cause::Launch => launching += ns,
                Cause::Unknown if matches!(piece.who, Who::Api(_)) => self.sums.hold(piece.start, piece.end),
                Cause::Copy => self.sums.save(Measure::CopyWait, ns, (piece.start, piece.end, track)),
                Cause::Compile if matches!(piece.who, Who::Api(_)) => {
                    self.sums.save(Measure::Loading, ns, (piece.start, piece.end, track));
                    if case.chosen().is_some_and(|chosen| chosen.has(piece.start)) {
                        self.sums.stretches[Measure::Loading as usize].push((track, piece.start, piece.end));
                    }
                }
                _ => {}
            }
        }
        self.saves(window, gap, track, launch, runs, launching);
    }

    fn is_earlier(&self, work: usize) -> bool {
        let stream = self.first.partition_point(|(works, _)| works.end <= work);
        self.first.get(stream).is_some_and(|(works, first)| works.contains(&work) && work < *first)
    }

    /// Whether other devices are at work in most of a stretch or at its end: the work that ends it may wait for theirs.
    fn others_work(&self, start: u64, end: u64) -> bool {
        let (mut ns, mut last) = (0, 0);
        for (_, spans) in self.others.0.iter().enumerate().filter(|(place, _)| *place != self.others.1) {
            let first = spans.partition_point(|span| span.1 <= start);
            for span in spans[first..].iter().take_while(|span| span.0 < end) {
                (ns, last) = (ns + span.1.min(end) - span.0.max(start), last.max(span.1));
            }
        }
        ns > 0 && (ns >= (end - start) / 2 || last.saturating_add(QUEUED_NS) >= end)
    }

    /// Keeps the pieces of a gap for those who compare steps.
    fn keep(&mut self) {
        if let Some(group) = self.group {
            for piece in &self.pieces {
                *self.groups[group].entry((piece.cause, piece.who)).or_default() += piece.end - piece.start;
            }
        }
        if let Some((start, end)) = self.shown {
            let inside = self.pieces.iter().filter(|piece| piece.start < end && start < piece.end);
            let cut = |piece: &Piece| Piece { start: piece.start.max(start), end: piece.end.min(end), ..*piece };
            self.median.extend(inside.map(cut));
        }
    }

    /// The launching thread has nothing to do: what keeps it so is what the step's own thread does.
    fn ask_the_step(&mut self, step: TrackIndex) {
        if !self.pieces.iter().any(|piece| matches!(piece.cause, Cause::Waiting | Cause::NoRequest)) {
            return;
        }
        let pieces = std::mem::take(&mut self.pieces);
        for piece in pieces {
            if !matches!(piece.cause, Cause::Waiting | Cause::NoRequest) {
                self.pieces.push(piece);
                continue;
            }
            self.second.clear();
            self.hosts.of(step).split(piece.start, piece.end, &mut self.second);
            let known = |second: &Piece| match second.cause {
                Cause::Unknown => Piece { start: second.start, end: second.end, ..piece },
                _ => *second,
            };
            self.pieces.extend(self.second.iter().map(known));
        }
    }

    /// From the begin of the call that asked for the work to its start.
    fn on_its_way(&mut self, track: TrackIndex, (start, end): (u64, u64), launch: usize, next: usize) {
        let (slices, work) = (&self.case.timeline.slices, &self.case.timeline.gpu.work);
        let returned = slices.start[launch].saturating_add(slices.dur[launch]).clamp(start, end);
        let who = Who::Api(slices.name[launch]);
        let cause = match work.kind(next) {
            WorkKind::Memcpy => Cause::Copy,
            // A launch that takes far longer than any, for a kernel that runs for the first time: its code is loaded.
            WorkKind::Kernel if returned - start >= LONGEST_NS && self.hosts.is_first(next) => Cause::Compile,
            _ => Cause::Launch,
        };
        let in_call = Piece { start, end: returned, cause, who };
        // No launch takes so long, and no device from one work to the next: something that was not recorded holds the work back.
        // It is known which call launched it, and no more: also a collective waits for its peers while it runs, not before.
        let usual =
            if slices.start[launch].saturating_add(slices.dur[launch]) <= start { QUEUED_NS } else { LONGEST_NS };
        let cause = if end - returned < usual { Cause::Launch } else { Cause::Unknown };
        let others = cause == Cause::Unknown && self.others_work(returned, end);
        let after = Piece { start: returned, end, cause, who: if others { Who::Nobody } else { who } };
        self.sums.others += if others { end - returned } else { 0 };
        let host = self.hosts.of(track);
        for whole in [in_call, after].into_iter().filter(|piece| piece.start < piece.end) {
            host.but_for_the_profiler(whole, &mut self.pieces);
        }
    }

    /// What a change could save of a gap between two works of a step.
    fn saves(
        &mut self,
        window: &Window,
        gap: &Gap,
        track: TrackIndex,
        launch: Option<usize>,
        runs: u64,
        launching: u64,
    ) {
        let (length, at) = (gap.end - gap.start, (gap.start, gap.end, track));
        match gap.zone {
            Zone::Lead => {
                self.blame(Measure::Lead, track, u64::MAX);
                return self.sums.save(Measure::Lead, runs, at);
            }
            Zone::Tail => {
                self.blame(Measure::Tail, track, u64::MAX);
                return self.sums.save(Measure::Tail, runs, at);
            }
            Zone::Middle => {}
        }
        let slices = &self.case.timeline.slices;
        let returned = launch.map(|launch| slices.start[launch].saturating_add(slices.dur[launch]));
        if returned.is_some_and(|returned| returned <= gap.start) {
            if length >= LONGEST_NS {
                return;
            }
            self.sums.queued(length);
            return self.sums.save(Measure::QueuedGap, length, at);
        }
        self.sums.late += u64::from(launch.is_some());
        let kernel = gap.next.is_some_and(|next| self.case.timeline.gpu.work.kind(next as usize) == WorkKind::Kernel);
        self.sums.late_kernels += u64::from(launch.is_some() && kernel);
        let (mut saved, mut result) = (0, false);
        let host = self.hosts.of(track);
        if let Some((wait, part, copy)) =
            wait_at(self.case, host, gap.start).filter(|_| gap.begins_here && launch.is_some())
        {
            let slice = part.slice as usize;
            let begin = slices.start[slice].max(window.start);
            let end = slices.start[slice].saturating_add(slices.dur[slice]);
            saved = length.min(end.saturating_sub(begin));
            let who = host.who_calls(begin, end);
            self.sums.wait(wait, slices.name[slice], who, saved);
            self.sums.save(wait.measure(), saved, (begin, gap.end, track));
            if self.case.chosen().is_some_and(|chosen| chosen.has(gap.start)) {
                self.sums.calls[wait.measure() as usize].push(slice as u32);
                let copies = copy.map(|copy| self.case.timeline.gpu.work.of_launch(copy as usize)).unwrap_or_default();
                self.sums.work[wait.measure() as usize].extend_from_slice(copies);
                // What the host does with a large result goes to the device with it.
                if wait == Wait::Result {
                    result = true;
                }
            }
        }
        if result {
            self.blame(Measure::ResultToHost, track, u64::MAX);
        }
        let left = length - saved;
        match length < self.hosts.launch_ns {
            true => self.sums.save(Measure::LaunchGap, left.min(runs + launching), at),
            false => {
                self.blame(Measure::HostGap, track, left);
                self.sums.save(Measure::HostGap, left.min(runs), at);
            }
        }
    }

    /// Keeps what the host runs in a gap of a step that is replayed, the last of it and no more than `most`: what came before
    /// is put on a wait.
    fn blame(&mut self, measure: Measure, track: TrackIndex, mut most: u64) {
        let runs = |piece: &&Piece| matches!(piece.cause, Cause::Python | Cause::Native);
        let chosen = |piece: &&Piece| self.case.chosen().is_some_and(|chosen| chosen.has(piece.start));
        for piece in self.pieces.iter().rev().filter(runs).filter(chosen) {
            let start = piece.start.max(piece.end.saturating_sub(most));
            most -= piece.end - start;
            if start < piece.end {
                self.sums.stretches[measure as usize].push((track, start, piece.end));
            }
        }
    }
}
