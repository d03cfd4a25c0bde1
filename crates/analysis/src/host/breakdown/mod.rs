//! Where the time of the steps goes: every nanosecond of them in exactly one part. Samples say it by function and line;
//! recorded calls do where there are no samples; what neither saw is a part of its own.

mod by_calls;
mod device_waits;
pub mod handed;
mod part;
mod phases;

pub use by_calls::{stretches as call_stretches, times as call_times};
pub use part::Key;
pub use part::{Part, PartKind};
pub use phases::Phase;

use crate::frames::{Frames, NativeFunction, native_function};
use crate::host::full_queue::FullQueue;
use crate::host::step_samples::{Doing, LEAST_SAMPLES, StepSamples};
use crate::steps::windows::StepSpans;
use crate::steps::{StepSource, Steps};
use part::apportion;
use std::collections::{BTreeMap, HashMap};
use timeline::{NameIndex, StackIndex, Timeline};

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Breakdown {
    /// Largest first. Their times add up to `total_ns` and `step_ns` exactly.
    pub parts: Vec<Part>,
    /// The named stretches of a step, in the order in which they begin. Empty where steps overlap on a thread.
    pub phases: Vec<Phase>,
    /// All steps together; where steps overlap on a thread, the time in which any was open.
    pub total_ns: u64,
    /// The mean of a step.
    pub step_ns: u64,
    /// Samples inside the steps.
    pub samples: u64,
    /// Recorded calls say it, for there are too few samples.
    pub by_calls: bool,
    /// Steps were open at the same time on one thread, so a share is of the time in which any was.
    pub overlapping: bool,
}

impl Breakdown {
    /// `descheduled` is how long the steps' threads waited for a core inside the steps, where that is known.
    pub fn new(
        timeline: &Timeline,
        steps: &Steps,
        windows: &StepSpans,
        frames: &Frames,
        seen: &StepSamples,
        queue: &FullQueue,
        descheduled: Option<f64>,
    ) -> Breakdown {
        let total = windows.total();
        let paused = seen.gc.iter().flat_map(|(track, all)| all.iter().map(|pause| (*track, pause.0, pause.1)));
        let gc = sum(paused.map(|(track, start, end)| windows.overlap(track, start, end)));
        let few = seen.all.len() < LEAST_SAMPLES;
        let calls = if few {
            by_calls::times(timeline, windows, frames, queue, steps.source != StepSource::Whole)
        } else {
            Vec::new()
        };
        let by_calls = calls.iter().any(|(key, _)| !matches!(key.kind, PartKind::Gc | PartKind::Gpu));
        // Of a handful, where more were to be taken, no share is known.
        let sampled = timeline.info.settings.rate_hz.is_some_and(|rate| rate > 0.0);
        let handful = few && sampled && timeline.gpu.is_empty();
        let mut times = match by_calls {
            true => calls,
            false => {
                let waits = device_waits::times(timeline, windows, frames, seen);
                let known = sum(waits.iter().map(|(_, ns)| *ns)).saturating_add(gc).saturating_add(seen.unseen_ns);
                let mut times = match handful {
                    true => Vec::new(),
                    false => by_samples(timeline, windows, frames, seen, total.saturating_sub(known)),
                };
                times.extend(waits);
                times
            }
        };
        // Calls have the pauses in their place already.
        if gc > 0 && !times.iter().any(|(key, _)| key.kind == PartKind::Gc) {
            times.push((Key::of(PartKind::Gc), gc));
        }
        // Only lengths that no clock can count add up to more than there is.
        if times.iter().map(|(_, ns)| u128::from(*ns)).sum::<u128>() > u128::from(total) {
            let fitting = apportion(total, &times.iter().map(|(_, ns)| *ns).collect::<Vec<_>>());
            times.iter_mut().zip(fitting).for_each(|((_, ns), fits)| *ns = fits);
        }
        let known = sum(times.iter().map(|(_, ns)| *ns));
        times.push((Key::of(PartKind::Unknown), total.saturating_sub(known)));
        deschedule(&mut times, descheduled.unwrap_or(0.0));
        times.retain(|(_, ns)| *ns > 0);
        times.sort_by_key(|(key, ns)| (u64::MAX - ns, *key));
        let step_ns = total.checked_div(steps.count() as u64).unwrap_or(0);
        let means = apportion(step_ns, &times.iter().map(|(_, ns)| *ns).collect::<Vec<_>>());
        let mut native = if by_calls { HashMap::new() } else { native_functions(timeline, frames, seen) };
        let part = |((key, ns), mean): (&(Key, u64), u64)| Part {
            native: native.remove(key),
            ..key.part(timeline, *ns, mean, total)
        };
        let parts = times.iter().zip(means).map(part).collect();
        let phases = match steps.source {
            StepSource::Step | StepSource::Scope | StepSource::Nvtx | StepSource::Sequence if !windows.overlapping => {
                phases::phases(timeline, steps, windows)
            }
            _ => Vec::new(),
        };
        let samples = seen.all.len() as u64;
        Breakdown { parts, phases, total_ns: total, step_ns, samples, by_calls, overlapping: windows.overlapping }
    }

    /// The share of all parts of a kind, 0 to 1.
    pub fn share(&self, kind: PartKind) -> f64 {
        self.parts.iter().filter(|part| part.kind == kind).map(|part| part.share).sum()
    }

    /// One part a function and kind, largest first; the line is that of its largest part. By calls the line is where a function
    /// is defined: two of one name in a file (`forward` of each layer) are two.
    pub fn functions(&self) -> Vec<Part> {
        let mut all: Vec<Part> = Vec::new();
        let mut places: HashMap<(&str, &str, u32, PartKind), usize> = HashMap::new();
        for part in &self.parts {
            let defined = if self.by_calls { part.line } else { 0 };
            let place = *places.entry((&part.label, &part.file, defined, part.kind)).or_insert(all.len());
            if place == all.len() {
                all.push(part.clone());
            } else {
                all[place].total_ns += part.total_ns;
                all[place].ns += part.ns;
                all[place].share += part.share;
            }
        }
        all.sort_by_key(|part| u64::MAX - part.total_ns);
        all
    }

    /// What the line of one of [`Breakdown::functions`] has by itself, 0 to 1.
    pub fn hottest_line(&self, function: &Part) -> f64 {
        let same = |part: &&Part| {
            (&part.label, &part.file, part.line, part.kind)
                == (&function.label, &function.file, function.line, function.kind)
        };
        self.parts.iter().find(same).map_or(function.share, |part| part.share)
    }

    /// Every kind that has time, with its mean a step and its share.
    pub fn kinds(&self) -> Vec<(PartKind, u64, f64)> {
        let sum = |kind| {
            let ns = self.parts.iter().filter(|part| part.kind == kind).map(|part| part.ns).sum();
            (kind, ns, self.share(kind))
        };
        PartKind::ALL.into_iter().map(sum).filter(|(_, _, share)| *share > 0.0).collect()
    }
}

/// Times that a damaged trace makes absurd do not overflow.
fn sum(times: impl Iterator<Item = u64>) -> u64 {
    times.fold(0, u64::saturating_add)
}

/// Splits the time that samples stand for by what they saw. Native functions count for the line of Python that called them.
fn by_samples(
    timeline: &Timeline,
    windows: &StepSpans,
    frames: &Frames,
    seen: &StepSamples,
    time: u64,
) -> Vec<(Key, u64)> {
    let mut counts: HashMap<Key, u64> = HashMap::new();
    for one in seen.all.iter().filter(|one| one.doing != Doing::Gc) {
        let sample = timeline.samples.get(one.sample as usize);
        let track = windows.all()[one.window as usize].track;
        if one.doing == Doing::Gpu && seen.device_wait(track, sample.time).is_some() {
            continue;
        }
        let stack = frames.python(sample.stack);
        let frame = timeline.stacks.frame(stack);
        let name = if stack.0 == 0 { NameIndex(0) } else { frame.name };
        *counts.entry(Key { kind: kind(one.doing), name, line: frame.line }).or_default() += 1;
    }
    // In order: of equal ones, the first get what does not divide, and that must not change from one look to the next.
    let (keys, weights): (Vec<Key>, Vec<u64>) = BTreeMap::from_iter(counts).into_iter().unzip();
    keys.into_iter().zip(apportion(time, &weights)).collect()
}

fn kind(doing: Doing) -> PartKind {
    match doing {
        Doing::Python => PartKind::Python,
        Doing::Native => PartKind::Native,
        Doing::Waiting => PartKind::Waiting,
        Doing::Gpu => PartKind::Gpu,
        Doing::Gil => PartKind::Gil,
        Doing::Gc => PartKind::Gc,
    }
}

/// For each line that runs, the native function that most of its samples are in.
fn native_functions(timeline: &Timeline, frames: &Frames, seen: &StepSamples) -> HashMap<Key, NativeFunction> {
    let mut stacks: HashMap<Key, Vec<StackIndex>> = HashMap::new();
    for one in seen.all.iter().filter(|one| matches!(one.doing, Doing::Python | Doing::Native)) {
        let stack = timeline.samples.get(one.sample as usize).stack;
        let frame = timeline.stacks.frame(frames.python(stack));
        stacks.entry(Key { kind: kind(one.doing), name: frame.name, line: frame.line }).or_default().push(stack);
    }
    let function =
        |(key, all): (Key, Vec<StackIndex>)| Some((key, native_function(timeline, frames, all.into_iter())?));
    stacks.into_iter().filter_map(function).collect()
}

/// Takes the time that a thread was ready but had no core out of the time that it seemed to run: a sample cannot tell.
fn deschedule(times: &mut Vec<(Key, u64)>, descheduled: f64) {
    let runs = |key: &Key| matches!(key.kind, PartKind::Python | PartKind::Native);
    let running = sum(times.iter().filter(|(key, _)| runs(key)).map(|(_, ns)| *ns));
    // Pauses are measured by the clock, waits for a core in them included: those stay where they are.
    let measured = |key: &Key| matches!(key.kind, PartKind::Gc | PartKind::Gpu);
    let paused = sum(times.iter().filter(|(key, _)| measured(key)).map(|(_, ns)| *ns));
    let outside = running as f64 / (running as f64 + paused as f64).max(1.0);
    let taken = ((descheduled.max(0.0) * outside) as u64).min(running);
    if taken == 0 {
        return;
    }
    let mut left = 0;
    for (_, ns) in times.iter_mut().filter(|(key, _)| runs(key)) {
        *ns = (u128::from(*ns) * u128::from(running - taken) / u128::from(running)) as u64;
        left += *ns;
    }
    times.push((Key::of(PartKind::Descheduled), running - left));
}
