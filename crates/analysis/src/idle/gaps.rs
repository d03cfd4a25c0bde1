//! The gaps of a device inside the steps, and whose they are: the thread that launched the work which ends a gap, or the step's
//! own thread where nothing follows in the step or the launching thread itself waits for something to do.

use super::Cause;
use super::IdleInputs;
use super::bubbles::{Wait, wait_at};
use super::busy::{Busy, FirstLinked, track_of};
use super::found::Found;
use super::host::{Asker, Hosts, Piece, Who};
use super::pace::{LONGEST_NS, QUEUED_NS, launch_ns};
use super::parts::{Inside, Part};
use super::sums::{Measure, Zone};
use crate::steps::StepSource;
use crate::steps::groups::Groups;
use crate::steps::windows::Window;
use std::ops::Range;
use timeline::{ProcessIndex, TrackIndex, WorkKind};

struct Gap {
    start: u64,
    end: u64,
    zone: Zone,
    /// The device was busy until `start`, inside this step.
    begins_here: bool,
    /// The work that ends it, or comes next after the step.
    next: Option<u32>,
}

/// What is known of a device before its gaps are looked at.
pub struct Device<'d> {
    pub process: ProcessIndex,
    pub ordinal: u32,
    pub inputs: IdleInputs<'d>,
    pub hosts: &'d Hosts<'d>,
    /// The thread that launches most of the device's work.
    pub usual: Option<TrackIndex>,
    /// When each device was busy, and which of them is this one.
    pub others: (&'d [Vec<Busy>], usize),
    /// What comes before was launched before the recording.
    pub first: FirstLinked,
    pub windows: Vec<Window>,
    pub inside: Inside,
    pub members: &'d Groups,
    /// When the median step began and ended.
    pub shown: Option<(u64, u64)>,
}

impl Device<'_> {
    /// By time; never empty.
    pub fn spans(&self) -> &[Busy] {
        &self.others.0[self.others.1]
    }
}

/// Goes through some of the gaps of a device, by time.
struct Walk<'d> {
    device: &'d Device<'d>,
    inputs: IdleInputs<'d>,
    hosts: Asker<'d>,
    /// Gaps up to this are those of launching.
    launch_ns: u64,
    /// The start of its first work and the end of its last. Without steps, what is before or after that is between no two works.
    ends: (u64, u64),
    found: Found,
    pieces: Vec<Piece>,
    second: Vec<Piece>,
    /// The group of steps that the window belongs to.
    group: Option<usize>,
    /// The thread of the last launch: that of the next, as a rule.
    launcher: TrackIndex,
}

/// What a part of a device's gaps is. However the gaps are cut into parts, joined they say the same.
pub fn attribute(device: &Device, part: &Part) -> Found {
    let spans = device.spans();
    let mut walk = Walk {
        device,
        inputs: device.inputs,
        hosts: device.hosts.ask(),
        launch_ns: launch_ns(device.hosts.between_launches()),
        ends: (spans[0].0, spans[spans.len() - 1].1),
        found: Found::default(),
        pieces: Vec::new(),
        second: Vec::new(),
        group: None,
        launcher: TrackIndex(0),
    };
    for (place, gaps) in device.inside.windows(part) {
        walk.group = device.members.of(device.windows[place].step);
        walk.window(place, gaps);
        let now = walk.found.sums.take_now();
        walk.found.each.push((place, now));
    }
    walk.found
}

impl Walk<'_> {
    /// Of a window, the gaps in front of these spans of the device; one more than there are in it is the gap after the last.
    fn window(&mut self, place: usize, gaps: Range<usize>) {
        let device = self.device;
        let (window, spans, inside) = (&device.windows[place], device.spans(), device.inside.spans(place));
        let whole = self.inputs.steps.source == StepSource::Whole;
        let (mut at, mut any) = match gaps.start > inside.start {
            true => (spans[gaps.start - 1].1.min(window.end), true),
            false => (window.start, false),
        };
        for (start, end, next) in &spans[gaps.start..gaps.end.min(inside.end)] {
            if at < *start {
                let zone = if any || whole && self.ends.0 <= at { Zone::Middle } else { Zone::Lead };
                self.gap(window, &Gap { start: at, end: *start, zone, begins_here: any, next: Some(*next) });
            }
            any = true;
            at = at.max(*end).min(window.end);
        }
        if inside.end < gaps.end && at < window.end {
            let over = if whole { self.ends.1 <= at } else { any };
            let zone = match over {
                true => Zone::Tail,
                false if whole && at < self.ends.0 => Zone::Lead,
                false => Zone::Middle,
            };
            let next = spans.get(inside.end).map(|span| span.2);
            self.gap(window, &Gap { start: at, end: window.end, zone, begins_here: any, next });
        }
    }

    fn track_of(&mut self, launch: usize) -> TrackIndex {
        let last = self.inputs.timeline.tracks.get(self.launcher.0 as usize);
        if !last.is_some_and(|track| track.slices.contains(&launch)) {
            self.launcher = track_of(self.inputs, launch);
        }
        self.launcher
    }

    fn gap(&mut self, window: &Window, gap: &Gap) {
        let inputs = self.inputs;
        let work = &inputs.timeline.gpu.work;
        self.found.idle_ns = self.found.idle_ns.saturating_add(gap.end - gap.start);
        let step = inputs.steps.steps.get(window.step as usize).map(|step| step.track);
        let launch = gap.next.and_then(|next| work.launch(next as usize));
        let launcher = launch.map(|launch| self.track_of(launch)).or(self.device.usual);
        // After a step's last work it is the step's own thread that has not finished.
        // What was launched before the recording does not wait for what the host does now.
        let unlinked = gap.next.filter(|_| launch.is_none() && gap.zone != Zone::Tail);
        let earlier = unlinked.is_some_and(|next| self.is_earlier(next as usize));
        let track = if gap.zone == Zone::Tail { step.or(launcher) } else { launcher.or(step) };
        let Some(track) = track.filter(|_| !earlier) else {
            let cause = if earlier && gap.end - gap.start < QUEUED_NS { Cause::Launch } else { Cause::Unknown };
            let others = earlier && cause == Cause::Unknown && self.others_work(gap.start, gap.end);
            let who = if earlier && !others { Who::Earlier } else { Who::Nobody };
            self.found.sums.add(gap.zone, cause, who, gap.end - gap.start);
            if who == Who::Earlier && cause == Cause::Unknown {
                self.found.sums.hold(gap.start, gap.end);
            }
            self.pieces.clear();
            self.pieces.push(Piece { start: gap.start, end: gap.end, cause, who });
            self.keep();
            return;
        };
        let launch = launch.filter(|_| launcher == Some(track));
        self.pieces.clear();
        let asked = launch.map_or(gap.end, |launch| inputs.timeline.slices.start[launch].clamp(gap.start, gap.end));
        if gap.start < asked {
            self.hosts.split(track, gap.start, asked, &mut self.pieces);
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
            self.found.sums.add(gap.zone, piece.cause, piece.who, ns);
            match piece.cause {
                Cause::Python | Cause::Native => runs += ns,
                Cause::Launch => launching += ns,
                Cause::Unknown if matches!(piece.who, Who::Api(_)) => self.found.sums.hold(piece.start, piece.end),
                Cause::Copy => self.found.sums.save(Measure::CopyWait, ns, (piece.start, piece.end, track)),
                Cause::Compile if matches!(piece.who, Who::Api(_)) => {
                    self.found.sums.save(Measure::Loading, ns, (piece.start, piece.end, track));
                    if inputs.is_replayed(piece.start) {
                        self.found.sums.stretches[Measure::Loading as usize].push((track, piece.start, piece.end));
                    }
                }
                _ => {}
            }
        }
        self.saves(window, gap, track, launch, runs, launching);
    }

    fn is_earlier(&self, work: usize) -> bool {
        let stream = self.device.first.partition_point(|(works, _)| works.end <= work);
        self.device.first.get(stream).is_some_and(|(works, first)| works.contains(&work) && work < *first)
    }

    /// Whether other devices are at work in most of a stretch or at its end: the work that ends it may wait for theirs.
    fn others_work(&self, start: u64, end: u64) -> bool {
        let (mut ns, mut last) = (0, 0);
        for (_, spans) in self.device.others.0.iter().enumerate().filter(|(place, _)| *place != self.device.others.1) {
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
                *self.found.groups[group].entry((piece.cause, piece.who)).or_default() += piece.end - piece.start;
            }
        }
        // Pieces are by time, and few lie in that step.
        let reach = |(start, end): &(u64, u64)| {
            self.pieces.first().is_some_and(|piece| piece.start < *end)
                && self.pieces.last().is_some_and(|piece| *start < piece.end)
        };
        if let Some((start, end)) = self.device.shown.filter(reach) {
            let inside = self.pieces.iter().filter(|piece| piece.start < end && start < piece.end);
            let cut = |piece: &Piece| Piece { start: piece.start.max(start), end: piece.end.min(end), ..*piece };
            self.found.median.extend(inside.map(cut));
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
            self.hosts.split(step, piece.start, piece.end, &mut self.second);
            let known = |second: &Piece| match second.cause {
                Cause::Unknown => Piece { start: second.start, end: second.end, ..piece },
                _ => *second,
            };
            self.pieces.extend(self.second.iter().map(known));
        }
    }

    /// From the begin of the call that asked for the work to its start.
    fn on_its_way(&mut self, track: TrackIndex, (start, end): (u64, u64), launch: usize, next: usize) {
        let (slices, work) = (&self.inputs.timeline.slices, &self.inputs.timeline.gpu.work);
        let returned = slices.start[launch].saturating_add(slices.dur[launch]).clamp(start, end);
        let who = Who::Api(slices.name[launch]);
        let cause = match work.kind(next) {
            WorkKind::Memcpy => Cause::Copy,
            // A launch that takes far longer than any, for a kernel that runs for the first time: its code is loaded.
            WorkKind::Kernel if returned - start >= LONGEST_NS && self.device.hosts.is_first(next) => Cause::Compile,
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
        self.found.sums.others += if others { end - returned } else { 0 };
        let (host, near) = self.hosts.of(track);
        for whole in [in_call, after].into_iter().filter(|piece| piece.start < piece.end) {
            host.but_for_the_profiler(near, whole, &mut self.pieces);
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
                return self.found.sums.save(Measure::Lead, runs, at);
            }
            Zone::Tail => {
                self.blame(Measure::Tail, track, u64::MAX);
                return self.found.sums.save(Measure::Tail, runs, at);
            }
            Zone::Middle => {}
        }
        let slices = &self.inputs.timeline.slices;
        let returned = launch.map(|launch| slices.start[launch].saturating_add(slices.dur[launch]));
        if returned.is_some_and(|returned| returned <= gap.start) {
            if length >= LONGEST_NS {
                return;
            }
            self.found.sums.queued(length);
            return self.found.sums.save(Measure::QueuedGap, length, at);
        }
        self.found.sums.late += u64::from(launch.is_some());
        let kernel = gap.next.is_some_and(|next| self.inputs.timeline.gpu.work.kind(next as usize) == WorkKind::Kernel);
        self.found.sums.late_kernels += u64::from(launch.is_some() && kernel);
        let (mut saved, mut result) = (0, false);
        let (host, near) = self.hosts.of(track);
        let after_wait = gap.begins_here && launch.is_some();
        if let Some((wait, part, copy)) = after_wait.then(|| wait_at(self.inputs, host, near, gap.start)).flatten() {
            let slice = part.slice as usize;
            let begin = slices.start[slice].max(window.start);
            let end = slices.start[slice].saturating_add(slices.dur[slice]);
            saved = length.min(end.saturating_sub(begin));
            let who = host.who_calls(begin, end);
            self.found.sums.wait(wait, slices.name[slice], who, saved);
            self.found.sums.save(wait.measure(), saved, (begin, gap.end, track));
            if self.inputs.is_replayed(gap.start) {
                self.found.sums.calls[wait.measure() as usize].push(slice as u32);
                let copies =
                    copy.map(|copy| self.inputs.timeline.gpu.work.of_launch(copy as usize)).unwrap_or_default();
                self.found.sums.work[wait.measure() as usize].extend_from_slice(copies);
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
        match length < self.launch_ns {
            true => self.found.sums.save(Measure::LaunchGap, left.min(runs + launching), at),
            false => {
                self.blame(Measure::HostGap, track, left);
                self.found.sums.save(Measure::HostGap, left.min(runs), at);
            }
        }
    }

    /// Keeps what the host runs in a gap of a step that is replayed, the last of it and no more than `most`: what came before
    /// is put on a wait.
    fn blame(&mut self, measure: Measure, track: TrackIndex, mut most: u64) {
        let runs = |piece: &&Piece| matches!(piece.cause, Cause::Python | Cause::Native);
        let chosen = |piece: &&Piece| self.inputs.is_replayed(piece.start);
        for piece in self.pieces.iter().rev().filter(runs).filter(chosen) {
            let start = piece.start.max(piece.end.saturating_sub(most));
            most -= piece.end - start;
            if start < piece.end {
                self.found.sums.stretches[measure as usize].push((track, start, piece.end));
            }
        }
    }
}
