//! What a thread of the host was doing in any stretch of time, piece by piece: its recorded calls and pauses, then its samples,
//! then recorded function calls. Every nanosecond of the stretch is in exactly one piece.

use super::Cause;
use super::IdleInputs;
use super::blocks::{Blocks, Cursor};
use super::cores::{queued, without_core};
use super::innermost::{self, Part};
use super::looks::{self, Looks};
use super::near::Near;
use super::pace::{LONGEST_NS, between_launches};
use crate::frames::{WAITS, is};
use crate::host::blame::READ_LATE_NS;
use crate::stats::seek::seek;
use std::sync::OnceLock;
use timeline::cuda_calls::{OverheadOf, overhead_of};
use timeline::{NameIndex, SliceKind, TrackIndex};

/// Who has it: a recorded call, by the number of its name, or a frame of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Who {
    Nobody,
    /// A call that was made before the recording.
    Earlier,
    Api(u32),
    Function(u32),
    Frame(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub start: u64,
    pub end: u64,
    pub cause: Cause,
    pub who: Who,
}

/// All threads, for any number of askers at the same time.
pub struct Hosts<'c> {
    inputs: IdleInputs<'c>,
    parts: Option<usize>,
    /// By track. This and what follows is made when it is first asked for.
    by_track: Vec<OnceLock<Host>>,
    between: OnceLock<u64>,
    first: OnceLock<Vec<u64>>,
}

/// Asks about one moment after the other.
pub struct Asker<'h> {
    hosts: &'h Hosts<'h>,
    near: Vec<Near>,
}

/// One thread.
pub struct Host {
    /// CUDA calls, garbage collection and the profiler's own work, by time.
    exact: Blocks<Part>,
    free: Looks,
    /// Samples inside calls.
    pub in_calls: Looks,
    functions: Blocks<Part>,
    /// Of the exact ones, the profiler's own.
    profiler: Vec<Part>,
    /// Between two readings: the part of the running time in which it had no core.
    queued: Vec<(u64, u64, f64)>,
    period: u64,
}

impl<'c> Hosts<'c> {
    /// `parts`: in which each thread is looked at; None: as many as it is worth.
    pub fn new(inputs: IdleInputs<'c>, parts: Option<usize>) -> Hosts<'c> {
        let by_track = inputs.timeline.tracks.iter().map(|_| OnceLock::new()).collect();
        Hosts { inputs, parts, by_track, between: OnceLock::new(), first: OnceLock::new() }
    }

    /// The median time between two launches.
    pub fn between_launches(&self) -> u64 {
        *self.between.get_or_init(|| between_launches(self.inputs.timeline, self.parts))
    }

    /// By name: when a kernel first ran.
    pub fn first(&self) -> &[u64] {
        let work = &self.inputs.timeline.gpu.work;
        self.first.get_or_init(|| {
            let mut all = vec![u64::MAX; self.inputs.timeline.names.len()];
            for (name, start) in work.name.iter().zip(&work.start) {
                if let Some(first) = all.get_mut(*name as usize) {
                    *first = (*first).min(*start);
                }
            }
            all
        })
    }

    /// Whether a kernel runs for the first time.
    pub fn is_first(&self, work: usize) -> bool {
        let all = &self.inputs.timeline.gpu.work;
        self.first().get(all.name[work] as usize) == Some(&all.start[work])
    }

    pub fn of(&self, track: TrackIndex) -> &Host {
        self.by_track[track.0 as usize].get_or_init(|| Host::new(self.inputs, track, self.parts))
    }

    pub fn ask(&self) -> Asker<'_> {
        Asker { hosts: self, near: vec![Near::default(); self.by_track.len()] }
    }
}

impl<'h> Asker<'h> {
    /// A thread, and where its last answers were.
    pub fn of(&mut self, track: TrackIndex) -> (&'h Host, &mut Near) {
        (self.hosts.of(track), &mut self.near[track.0 as usize])
    }

    /// Adds the pieces of a stretch.
    pub fn split(&mut self, track: TrackIndex, start: u64, end: u64, pieces: &mut Vec<Piece>) {
        let (host, near) = self.of(track);
        host.split(near, start, end, pieces);
    }
}

impl Host {
    fn new(inputs: IdleInputs, track: TrackIndex, parts: Option<usize>) -> Host {
        let (slices, work) = (&inputs.timeline.slices, &inputs.timeline.gpu.work);
        let range = inputs.timeline.tracks[track.0 as usize].slices.clone();
        let part = |index: usize, cause: Cause, who: Who| {
            let (start, slice) = (slices.start[index], index as u32);
            Part { start, end: start.saturating_add(slices.dur[index]), cause, who, slice }
        };
        let stretches = parts.unwrap_or_else(|| innermost::worth(range.len()));
        let in_exact = [SliceKind::ApiCall, SliceKind::Gc, SliceKind::Overhead];
        let exact = innermost::find(slices, range.clone(), stretches, &in_exact, |index| match slices.kind(index) {
            SliceKind::ApiCall => {
                let name = slices.name[index];
                let cause = match Cause::from(inputs.timeline.call(index).class()) {
                    // What takes so long and launches nothing is no launching: the driver makes a context, or asks the device.
                    Cause::Launch if slices.dur[index] >= LONGEST_NS && work.of_launch(index).is_empty() => {
                        Cause::Native
                    }
                    cause => cause,
                };
                Some(part(index, cause, Who::Api(name)))
            }
            SliceKind::Gc => Some(part(index, Cause::Gc, Who::Nobody)),
            // In a full queue the launch around it waits: what that is called is said of the launch.
            SliceKind::Overhead => match overhead_of(slices.overhead(index)) {
                OverheadOf::Profiler => Some(part(index, Cause::Overhead, Who::Api(slices.name[index]))),
                OverheadOf::Loading => Some(part(index, Cause::Compile, Who::Api(slices.name[index]))),
                OverheadOf::Queue => None,
            },
            _ => None,
        });
        let in_functions = [SliceKind::Call, SliceKind::CCall];
        let functions = innermost::find(slices, range, stretches, &in_functions, |index| {
            let kind = slices.kind(index);
            let bits = inputs.frames.bits(NameIndex(slices.name[index]));
            let cause = match kind {
                SliceKind::Call | SliceKind::CCall if bits & is::COMPILES != 0 => Cause::Compile,
                SliceKind::Call | SliceKind::CCall if bits & is::COMMUNICATES != 0 => Cause::Communication,
                SliceKind::Call | SliceKind::CCall if bits & is::WAITS_FOR_GPU != 0 => Cause::Sync,
                SliceKind::Call | SliceKind::CCall if bits & WAITS != 0 => Cause::Waiting,
                SliceKind::Call => Cause::Python,
                SliceKind::CCall => Cause::Native,
                _ => return None,
            };
            Some(part(index, cause, Who::Function(slices.name[index])))
        });
        let mut near = Cursor::default();
        let in_call = |time: u64| {
            exact.seek(&mut near, |part| part.start <= time);
            exact.before(near).next().is_some_and(|part| time < part.end && part.cause != Cause::Gc)
        };
        let (free, in_calls) = looks::of_thread(inputs, track, in_call);
        let queued = queued(inputs, track);
        let profiler = exact.iter().filter(|part| part.cause == Cause::Overhead).copied().collect();
        Host { free, in_calls, exact, functions, profiler, queued, period: inputs.samples.period_ns }
    }

    fn split(&self, near: &mut Near, start: u64, end: u64, pieces: &mut Vec<Piece>) {
        let mut at = start;
        self.exact.seek(&mut near.exact, |part| part.end <= start);
        for part in self.exact.from(near.exact).take_while(|part| part.start < end) {
            if at < part.start {
                self.by_looks(near, at, part.start, pieces);
            }
            let from = at.max(part.start);
            at = end.min(part.end);
            pieces.push(Piece { start: from, end: at, cause: part.cause, who: part.who });
        }
        if at < end {
            self.by_looks(near, at, end, pieces);
        }
    }

    /// Adds a stretch with one cause, less what the profiler took of it.
    pub fn but_for_the_profiler(&self, near: &mut Near, whole: Piece, pieces: &mut Vec<Piece>) {
        let mut at = whole.start;
        seek(&self.profiler, &mut near.profiler, |part| part.end <= whole.start);
        for part in self.profiler[near.profiler..].iter().take_while(|part| part.start < whole.end) {
            if at < part.start {
                pieces.push(Piece { start: at, end: part.start, ..whole });
            }
            let start = at.max(part.start);
            at = whole.end.min(part.end);
            pieces.push(Piece { start, end: at, cause: part.cause, who: part.who });
        }
        if at < whole.end {
            pieces.push(Piece { start: at, ..whole });
        }
    }

    fn by_looks(&self, near: &mut Near, start: u64, end: u64, pieces: &mut Vec<Piece>) {
        let Near { left: [left, rest], queued, .. } = near;
        let mut say = |start: u64, end: u64, cause: Cause, who: Who| {
            let runs = matches!(cause, Cause::Python | Cause::Native);
            let without = if runs { without_core(&self.queued, queued, start, end) } else { 0 };
            if without > 0 {
                pieces.push(Piece { start, end: start + without, cause: Cause::Descheduled, who });
            }
            if start + without < end {
                pieces.push(Piece { start: start + without, end, cause, who });
            }
        };
        let frame = |look: &looks::Look| if look.frame.0 == 0 { Who::Nobody } else { Who::Frame(look.frame.0) };
        self.free.split(
            &mut near.free,
            (start, end),
            self.period,
            |from, to, look| say(from, to, look.cause, frame(look)),
            |from, to| left.push((from, to)),
        );
        // A sample in a call close by shows the line, and between its calls a thread runs.
        for stretch in left.drain(..) {
            self.in_calls.split(
                &mut near.in_calls,
                stretch,
                self.period,
                |from, to, look| say(from, to, look.cause, frame(look)),
                |from, to| rest.push((from, to)),
            );
        }
        for (from, to) in rest.drain(..) {
            let mut at = from;
            self.functions.seek(&mut near.functions, |part| part.end <= from);
            for part in self.functions.from(near.functions).take_while(|part| part.start < to) {
                if at < part.start {
                    say(at, part.start, Cause::Unknown, Who::Nobody);
                }
                let begin = at.max(part.start);
                at = to.min(part.end);
                say(begin, at, part.cause, part.who);
            }
            if at < to {
                say(at, to, Cause::Unknown, Who::Nobody);
            }
        }
    }

    /// Who made a call: the line that a sample well inside it shows, else the recorded function around it.
    pub fn who_calls(&self, start: u64, end: u64) -> Who {
        let sure = end.saturating_sub(READ_LATE_NS);
        if let Some(look) = self.in_calls.inside(start, sure).filter(|look| look.frame.0 != 0) {
            return Who::Frame(look.frame.0);
        }
        let mut place = Cursor::default();
        self.functions.seek(&mut place, |part| part.start <= start);
        self.functions.before(place).next().filter(|part| start < part.end).map_or(Who::Nobody, |part| part.who)
    }

    /// The calls that began up to a moment, the last first.
    pub fn calls_before(&self, near: &mut Near, time: u64) -> impl Iterator<Item = &Part> {
        self.exact.seek(&mut near.called, |part| part.start <= time);
        self.exact.before(near.called)
    }
}
