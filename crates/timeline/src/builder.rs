//! Builds a [`Timeline`] event by event, for readers whose source is not a table and for tests. Events may come in any
//! order; `finish` makes a `Timeline` of them as of every other reader's.

use crate::finish::{Rows, finish};
use crate::gpu::{Device, Gather, Job};
use crate::names::Texts;
use crate::slices::{Detail, OPEN};
use crate::{
    Counter, EnginePhase, Loss, LossReason, Name, NameIndex, Process, ProcessIndex, SliceKind, StackIndex, Timeline,
    Track, TrackIndex, sort,
};
use std::collections::HashMap;
use std::ops::RangeInclusive;
use trace::tables::sample_state;

#[derive(Debug, Default)]
pub struct Builder {
    /// What is not events (information, notes, losses) is set here directly.
    pub timeline: Timeline,
    texts: Texts,
    slice_track: Vec<u32>,
    sample_track: Vec<u32>,
    frames: HashMap<(u32, NameIndex, u32), StackIndex>,
    counters: HashMap<(Option<ProcessIndex>, Option<i32>, String), usize>,
    pub(crate) work: Gather,
}

/// What a slice may have beside its time: see [`Detail`].
#[derive(Clone, Copy, Debug, Default)]
pub struct SliceExtra<'a> {
    pub id: u32,
    pub parent: u32,
    /// A JSON object.
    pub args: Option<&'a str>,
    /// It never ended; the duration lasts to the end of its process.
    pub open: bool,
}

/// See [`Builder::mark`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub slices: usize,
    pub work: usize,
    pub counters: usize,
    pub processes: usize,
    pub tracks: usize,
}

impl Builder {
    pub fn process(&mut self, process: Process) -> ProcessIndex {
        self.timeline.processes.push(process);
        ProcessIndex(self.timeline.processes.len() as u32 - 1)
    }

    /// Tracks keep the order in which they are added; the main thread of a process comes first by agreement.
    pub fn track(&mut self, process: ProcessIndex, tid: i32, name: &str) -> TrackIndex {
        self.timeline.tracks.push(Track { process, tid, name: self.texts.get(name), slices: 0..0, samples: 0..0 });
        TrackIndex(self.timeline.tracks.len() as u32 - 1)
    }

    pub fn name(&mut self, text: &str, file: &str, line: u32) -> NameIndex {
        let (text, file) = (self.texts.get(text), self.texts.get(file));
        self.timeline.names.intern(Name { text, file, line })
    }

    /// Steps of this name are those in which a serving engine does this, by its own marker.
    pub fn engine_step(&mut self, name: NameIndex, phase: EnginePhase) {
        self.timeline.names.set_phase(name, phase);
    }

    pub fn slice(
        &mut self,
        track: TrackIndex,
        kind: SliceKind,
        name: NameIndex,
        start: u64,
        dur: u64,
        more: SliceExtra<'_>,
    ) {
        let args = more.args.map_or(0, |args| self.texts.index(args) + 1);
        let detail = Detail { id: more.id, parent: more.parent, args };
        let kind = kind as u8 | if more.open { OPEN } else { 0 };
        self.timeline.slices.push(kind, name.0, start, dur, detail);
        self.slice_track.push(track.0);
    }

    /// The stack that calls `name` from `parent` (None: a root); `line` is the one being executed.
    pub fn frame(&mut self, parent: Option<StackIndex>, name: NameIndex, line: u32) -> StackIndex {
        let stacks = &mut self.timeline.stacks;
        let key = (parent.map_or(0, |parent| parent.0), name, line);
        *self.frames.entry(key).or_insert_with(|| stacks.push(parent, name, line))
    }

    pub fn sample(&mut self, track: TrackIndex, time: u64, stack: StackIndex, active: bool, gil: bool) {
        let bit = |set: bool, bit: i32| if set { bit as u8 } else { 0 };
        self.timeline.samples.time.push(time);
        self.timeline.samples.stack.push(stack.0);
        self.timeline.samples.state.push(bit(active, sample_state::ACTIVE) | bit(gil, sample_state::GIL));
        self.sample_track.push(track.0);
    }

    pub fn count(&mut self, process: Option<ProcessIndex>, tid: Option<i32>, name: &str, time: u64, value: i64) {
        let key = (process, tid, name.to_owned());
        let all = &mut self.timeline.counters;
        let place = *self.counters.entry(key).or_insert_with(|| {
            all.push(Counter { process, tid, name: name.into(), ..Counter::default() });
            all.len() - 1
        });
        all[place].time.push(time);
        all[place].value.push(value);
    }

    pub fn device(&mut self, device: Device) {
        self.timeline.gpu.devices.push(device);
    }

    /// Work of a device. Which call asked for it follows from its correlation.
    pub fn work(&mut self, job: Job) {
        self.work.push(job);
    }

    pub fn loss(&mut self, process: Option<ProcessIndex>, collector: &str, reason: LossReason, count: u64) {
        let time = self.timeline.start;
        self.timeline.losses.push(Loss { time, process, collector: collector.into(), reason, count });
    }

    /// Puts the tracks into this order, before [`Builder::finish`].
    pub(crate) fn order_tracks(&mut self, order: &[u32]) {
        let mut place = vec![0u32; order.len()];
        order.iter().zip(0..).for_each(|(old, new)| place[*old as usize] = new);
        self.timeline.tracks = order.iter().map(|old| self.timeline.tracks[*old as usize].clone()).collect();
        self.slice_track.iter_mut().chain(&mut self.sample_track).for_each(|track| *track = place[*track as usize]);
    }

    /// How much there is now: what comes after can be told apart.
    pub(crate) fn mark(&self) -> Mark {
        let timeline = &self.timeline;
        Mark {
            slices: timeline.slices.len(),
            work: self.work.len(),
            counters: timeline.counters.len(),
            processes: timeline.processes.len(),
            tracks: timeline.tracks.len(),
        }
    }

    /// Every moment since the mark, to be moved; durations stay.
    pub(crate) fn moments_since(&mut self, mark: Mark) -> impl Iterator<Item = &mut u64> {
        let counted = self.timeline.counters[mark.counters..].iter_mut().flat_map(|counter| &mut counter.time);
        self.timeline.slices.start[mark.slices..].iter_mut().chain(self.work.starts(mark.work)).chain(counted)
    }

    /// Lets go of slices, work and counts since the mark that begin outside of this time, and says how many those were.
    pub(crate) fn keep_since(&mut self, mark: Mark, time: &RangeInclusive<u64>) -> u64 {
        let slices = &mut self.timeline.slices;
        let inside = |start: &[u64], from: usize| -> Vec<u32> {
            (0..start.len()).filter(|at| *at < from || time.contains(&start[*at])).map(|at| at as u32).collect()
        };
        let kept = inside(&slices.start, mark.slices);
        let mut gone = slices.len() - kept.len();
        slices.reorder(&kept);
        sort::gather(&mut self.slice_track, &kept);
        gone += self.work.keep(|starts| inside(starts, mark.work));
        for counter in &mut self.timeline.counters[mark.counters..] {
            let kept = inside(&counter.time, 0);
            gone += counter.time.len() - kept.len();
            sort::gather(&mut counter.time, &kept);
            sort::gather(&mut counter.value, &kept);
        }
        gone as u64
    }

    pub fn finish(self) -> Timeline {
        finish(self.into_rows())
    }

    /// For a reader that knows more of its rows than the builder does.
    pub(crate) fn into_rows(self) -> Rows {
        Rows {
            timeline: self.timeline,
            texts: self.texts,
            slice_track: self.slice_track,
            sample_track: self.sample_track,
            work: self.work,
            ..Rows::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_by_track_and_time_with_the_parent_first() {
        let mut builder = Builder::default();
        let process = builder.process(Process { pid: 7, ..Process::default() });
        let (a, b) = (builder.track(process, 7, "main"), builder.track(process, 8, "worker"));
        let name = builder.name("f", "a.py", 3);
        builder.slice(b, SliceKind::Call, name, 5, 1, SliceExtra::default());
        builder.slice(a, SliceKind::Call, name, 2, 1, SliceExtra::default());
        builder.slice(a, SliceKind::Scope, name, 2, 9, SliceExtra { id: 1, args: Some("{}"), ..SliceExtra::default() });
        let stack = builder.frame(None, name, 4);
        assert_eq!(builder.frame(None, name, 4), stack);
        builder.sample(b, 20, stack, true, false);
        let timeline = builder.finish();
        assert_eq!(timeline.tracks.iter().map(|track| track.slices.clone()).collect::<Vec<_>>(), [0..2, 2..3]);
        assert_eq!((timeline.slices.kind(0), timeline.slices.args(0)), (SliceKind::Scope, Some("{}")));
        assert_eq!((timeline.start, timeline.end), (2, 20));
        assert!(timeline.samples.get(0).active && !timeline.samples.get(0).gil);
    }
}
