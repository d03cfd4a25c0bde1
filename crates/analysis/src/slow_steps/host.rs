//! What the steps' own threads did in a group of steps, by kind, function and line. Every nanosecond is in one item: pauses and
//! waits for a device as recorded, the rest by samples (the line of the program's own code that they name), or by recorded calls.

use crate::StepAnalysis;
use crate::host::breakdown::{Key, PartKind, call_times};
use crate::host::run_queue;
use crate::host::step_samples::Doing;
use crate::steps::windows::StepSpans;
use std::collections::HashMap;
use timeline::NameIndex;

/// Samples that stand for less of the time leave the rest unknown; above that, they stand for all of it.
const SEEN: f64 = 0.75;
/// Fewer samples of a group say nothing of where its time went.
const FEWEST: u64 = 10;

/// Both groups by the same means: where one has too few samples, neither goes by samples.
pub fn accounts(case: &StepAnalysis, groups: &[StepSpans; 2]) -> [HashMap<Key, u64>; 2] {
    let counts = groups.each_ref().map(|windows| counts(case, windows));
    let enough = counts.iter().all(|counts| counts.values().sum::<u64>() >= FEWEST);
    let [usual, slow] = counts.map(|counts| if enough { counts } else { HashMap::new() });
    [account(case, &groups[0], usual), account(case, &groups[1], slow)]
}

fn account(case: &StepAnalysis, windows: &StepSpans, counts: HashMap<Key, u64>) -> HashMap<Key, u64> {
    let mut times: HashMap<Key, u64> = HashMap::new();
    if case.breakdown.by_calls {
        times.extend(call_times(case.timeline, windows, &case.frames, &case.full_queue, true));
    } else {
        exact(case, windows, &mut times);
        sampled(case, windows, counts, &mut times);
    }
    let known = times.values().fold(0u64, |sum, ns| sum.saturating_add(*ns));
    if windows.total() > known {
        *times.entry(Key::of(PartKind::Unknown)).or_default() += windows.total() - known;
    }
    without_core(case, windows, &mut times);
    times
}

/// Pauses and waits for a device.
fn exact(case: &StepAnalysis, windows: &StepSpans, times: &mut HashMap<Key, u64>) {
    for (track, pauses) in &case.samples.gc {
        let sum: u64 = pauses.iter().map(|(start, end)| windows.overlap(*track, *start, *end)).sum();
        *times.entry(Key::of(PartKind::Gc)).or_default() += sum;
    }
    for (track, waits) in &case.samples.gpu {
        for (start, end, name) in waits {
            let inside = windows.overlap(*track, *start, *end);
            if inside > 0 {
                *times.entry(Key { kind: PartKind::Gpu, name: *name, line: 0 }).or_default() += inside;
            }
        }
    }
}

/// Samples inside the windows that no pause and no recorded wait explains.
fn counts(case: &StepAnalysis, windows: &StepSpans) -> HashMap<Key, u64> {
    let mut counts: HashMap<Key, u64> = HashMap::new();
    for one in &case.samples.all {
        let (sample, track) = (case.sample(one), case.track(one));
        let kind = match one.doing {
            Doing::Python => PartKind::Python,
            Doing::Native => PartKind::Native,
            Doing::Waiting => PartKind::Waiting,
            Doing::Gil => PartKind::Gil,
            Doing::Gpu => PartKind::Gpu,
            Doing::Gc => continue,
        };
        let explained = kind == PartKind::Gpu && case.samples.device_wait(track, sample.time).is_some();
        if explained || windows.at(track, sample.time).is_none() {
            continue;
        }
        let frame = case.blame().frame(case, one);
        let line = case.timeline.stacks.frame(frame);
        let name = if frame.0 == 0 { NameIndex(u32::MAX) } else { line.name };
        *counts.entry(Key { kind, name, line: line.line }).or_default() += 1;
    }
    counts
}

fn sampled(case: &StepAnalysis, windows: &StepSpans, counts: HashMap<Key, u64>, times: &mut HashMap<Key, u64>) {
    let count = counts.values().sum::<u64>() as f64;
    let known = times.values().fold(0u64, |sum, ns| sum.saturating_add(*ns));
    let left = windows.total().saturating_sub(known) as f64;
    let stand_for = count * case.samples.period_ns as f64;
    let each = if stand_for >= SEEN * left { left / count.max(1.0) } else { case.samples.period_ns as f64 };
    for (key, count) in counts {
        *times.entry(key).or_default() += (count as f64 * each) as u64;
    }
}

/// A sample cannot tell a thread that runs from one that is ready but has no core; the kernel's counter can.
fn without_core(case: &StepAnalysis, windows: &StepSpans, times: &mut HashMap<Key, u64>) {
    let Some(growth) = run_queue(case.timeline, windows, &case.readings) else { return };
    let runs = |key: &Key| matches!(key.kind, PartKind::Python | PartKind::Native);
    let running: u64 = times.iter().filter(|(key, _)| runs(key)).map(|(_, ns)| *ns).sum();
    let taken = (growth.tally.part.max(0.0) as u64).min(running);
    if taken == 0 {
        return;
    }
    for (_, ns) in times.iter_mut().filter(|(key, _)| runs(key)) {
        *ns = (u128::from(*ns) * u128::from(running - taken) / u128::from(running)) as u64;
    }
    *times.entry(Key::of(PartKind::Descheduled)).or_default() += taken;
}
