//! Tells waiting for the GIL from other waiting. A thread without the GIL that sleeps in the middle of plain Python looks
//! the same from outside whether it waits for the GIL, a lock or a socket, so each line has to show more than that.

use crate::frames::{DEEP, Frames, WAITS, is};
use crate::host::series::{Nature, Readings};
use crate::host::step_samples::{Doing, StepSample, StepSamples};
use crate::steps::windows::StepSpans;
use std::collections::HashMap;
use timeline::{NameIndex, StackIndex, Timeline, counters};

/// A thread that waits for the GIL wakes up and asks again after so long (`sys.getswitchinterval()`), so a wait of one
/// second is at least 200 voluntary switches.
const SWITCH_INTERVAL_NS: f64 = 5e6;
/// Threads are looked at one after the other, so the GIL may have changed hands in between in so many of the looks.
const LOOSE: f64 = 0.1;

/// A line that blocks in fewer samples than this says little.
const ENOUGH_HELD: u64 = 10;

/// What was seen of a line of the steps' threads, in samples.
#[derive(Clone, Copy, Default)]
struct Line {
    runs: u64,
    holds: u64,
    /// Waiting while no other thread held the GIL, and while one did.
    free: u64,
    held: u64,
    /// Of those: the holder was inside the same function.
    same: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Gil,
    Maybe,
    Other,
}

/// Decides for every sample that waits. `seen` comes with `Waiting` for all that native frames did not settle.
pub fn settle(timeline: &Timeline, windows: &StepSpans, frames: &Frames, readings: &Readings, seen: &mut StepSamples) {
    let open = |one: &StepSample, stack: StackIndex| {
        one.doing == Doing::Waiting && stack.0 != 0 && frames.on_top(stack) & (is::NATIVE | WAITS) == 0
    };
    let mut lines: HashMap<(NameIndex, u32), Line> = HashMap::new();
    let mut all = Line::default();
    let mut known: HashMap<(StackIndex, NameIndex), bool> = HashMap::new();
    let mut inside = |stack: StackIndex, name: NameIndex| {
        let look = || timeline.stacks.walk(stack).take(DEEP).any(|(_, other)| other.name == name);
        *known.entry((stack, name)).or_insert_with(look)
    };
    for one in &seen.all {
        let sample = timeline.samples.get(one.sample as usize);
        let frame = timeline.stacks.frame(frames.python(sample.stack));
        let mut add = Line::default();
        if open(one, sample.stack) {
            let holder = one.holder.checked_sub(1).map(|place| timeline.samples.get(place as usize).stack);
            add.free = u64::from(holder.is_none());
            add.held = u64::from(holder.is_some());
            add.same = u64::from(holder.is_some_and(|stack| inside(stack, frame.name)));
        } else if matches!(one.doing, Doing::Python | Doing::Native) {
            add.runs = 1;
            add.holds = u64::from(sample.gil);
        }
        lines.entry((frame.name, frame.line)).or_default().join(&add);
        all.join(&add);
    }
    if all.held == 0 {
        return;
    }
    let threads = holding_threads(timeline).max(2);
    // Where CUDA's calls are recorded, a line of Python that waits outside of them does not wait for the device.
    let calls = calls_recorded(timeline, windows);
    let verdicts: HashMap<_, _> = lines.iter().map(|(key, line)| (*key, line.judge(&all, threads, calls))).collect();
    let waits: Vec<(usize, Verdict)> = (0..seen.all.len())
        .filter_map(|place| {
            let one = &seen.all[place];
            let stack = timeline.samples.get(one.sample as usize).stack;
            let frame = timeline.stacks.frame(frames.python(stack));
            let verdict = verdicts.get(&(frame.name, frame.line)).copied()?;
            (one.holder != 0 && open(one, stack)).then_some((place, verdict))
        })
        .collect();
    let said = waits.iter().filter(|(_, verdict)| *verdict == Verdict::Gil).count();
    if !switches_allow(windows, readings, said as f64 * seen.period_ns as f64) {
        return;
    }
    for (place, verdict) in waits {
        match verdict {
            Verdict::Gil => seen.all[place].doing = Doing::Gil,
            Verdict::Maybe => seen.maybe_gil += 1,
            Verdict::Other => {}
        }
    }
}

impl Line {
    fn join(&mut self, other: &Line) {
        self.runs += other.runs;
        self.holds += other.holds;
        self.free += other.free;
        self.held += other.held;
        self.same += other.same;
    }

    fn judge(&self, all: &Line, threads: u64, calls: bool) -> Verdict {
        let of = |part: u64, whole: u64| if whole > 0 { part as f64 / whole as f64 } else { 0.0 };
        // The GIL is only waited for while it is held. A line that waits as often while it is free waits for something else.
        if of(self.free, self.free + self.held) >= (of(all.free, all.free + all.held) / 2.0).max(LOOSE) {
            return Verdict::Other;
        }
        // Plain Python that takes turns with other threads runs in its turn. A line that hardly does is a call that blocks.
        if self.runs * 2 * threads < self.held {
            // What it may block in is the device, a lock or a socket. Locks and sockets have frames of their own.
            return if calls && self.held >= ENOUGH_HELD { Verdict::Gil } else { Verdict::Maybe };
        }
        // When the holder is in the same function it may hold a lock that this line wants. Threads that lose the GIL lose it
        // where they run; threads that want a lock all stand at one line.
        let stands = of(self.held, all.held) > 1.5 * of(self.holds, all.holds);
        if 2 * self.same > self.held && stands { Verdict::Maybe } else { Verdict::Gil }
    }
}

/// Whether the threads went to sleep often enough to have waited for the GIL that long. Half is allowed for readings that
/// begin and end between steps. Without readings there is nothing against it.
fn switches_allow(windows: &StepSpans, readings: &Readings, waited: f64) -> bool {
    let counts = windows.tracks().filter_map(|(track, _)| {
        let counter = readings.thread(track, counters::VOLUNTARY_SWITCHES)?;
        readings.inside(counter, windows, track, &Nature::Count).map(|growth| growth.tally.part)
    });
    let counts: Vec<f64> = counts.collect();
    counts.is_empty() || counts.iter().sum::<f64>() * SWITCH_INTERVAL_NS >= waited / 2.0
}

/// Whether the calls of the steps' threads to CUDA were recorded.
fn calls_recorded(timeline: &Timeline, windows: &StepSpans) -> bool {
    let slices = |track: timeline::TrackIndex| timeline.tracks[track.0 as usize].slices.clone();
    let call = |index: usize| timeline.slices.kind(index) == timeline::SliceKind::ApiCall;
    windows.tracks().all(|(track, _)| slices(track).any(call))
}

/// How many threads were seen with the GIL.
fn holding_threads(timeline: &Timeline) -> u64 {
    let holds = |range: std::ops::Range<usize>| range.into_iter().any(|index| timeline.samples.get(index).gil);
    timeline.tracks.iter().filter(|track| holds(track.samples.clone())).count() as u64
}
