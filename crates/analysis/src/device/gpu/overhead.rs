//! What recording the devices cost. Best known where an overhead budget recorded windows: then it is how much longer the steps inside
//! them take than those outside, or what the collector found between its windows. Else what the collectors measured of themselves,
//! which is not all.

use super::{DeviceInputs, Overhead, OverheadBy, OverheadHow};
use crate::stats::percentile;
use crate::steps::{Step, Steps};
use std::collections::BTreeMap;
use timeline::cuda_calls::{OverheadOf, overhead_of};
use timeline::{CollectorCode, ProcessIndex, SliceKind, Timeline, WindowedRecording};

/// These run in the program's own threads; `gpu` reads what CUPTI left in a thread of its own.
const ON_ITS_THREADS: [CollectorCode; 2] = [CollectorCode::Launches, CollectorCode::Layers];
const BESIDE: CollectorCode = CollectorCode::Gpu;

/// With fewer of either, their medians differ by chance.
const ENOUGH_STEPS: usize = 16;

pub fn measure(inputs: &DeviceInputs) -> Option<Overhead> {
    let timeline = inputs.timeline;
    let inside = ON_ITS_THREADS.into_iter().map(|name| own(timeline, name)).fold(0, u64::saturating_add);
    let own_ns = inside.saturating_add(own(timeline, BESIDE));
    let (mut cupti_ns, mut said) = (0u64, false);
    for index in (0..timeline.slices.len()).filter(|index| timeline.slices.kind(*index) == SliceKind::Overhead) {
        if overhead_of(timeline.slices.overhead(index)) != OverheadOf::Profiler {
            continue;
        }
        said = true;
        cupti_ns = cupti_ns.saturating_add(timeline.slices.dur[index]);
    }
    let measured = match compared(timeline, inputs.steps) {
        Some(steps) => Some((steps.percent(), steps.how())),
        None => between_windows(timeline),
    };
    if own_ns == 0 && !said && measured.is_none() {
        return None;
    }
    let (percent, how) = match measured {
        Some((percent, how)) => (Some(percent), how),
        None if inside > 0 && timeline.duration() > 0 => {
            (Some(100.0 * (inside as f64 / timeline.duration() as f64)), OverheadHow::OwnTime)
        }
        None if !timeline.info.recorded_by.is_ours() => (None, OverheadHow::NotMeasured),
        None => (None, OverheadHow::OwnTimeUnknown),
    };
    Some(Overhead { own_ns, launches: launches(timeline), cupti_ns, percent, how })
}

/// Calls that gave a device something to do: a wait does not.
fn launches(timeline: &Timeline) -> u64 {
    let work = &timeline.gpu.work;
    let gave = |pieces: &[u32]| pieces.iter().any(|index| work.kind(*index as usize).is_busy());
    work.by_launch().filter(|(_, pieces)| gave(pieces)).count() as u64
}

/// What a collector says that it took itself, in all processes.
fn own(timeline: &Timeline, name: CollectorCode) -> u64 {
    let states = timeline.processes.iter().flat_map(|process| &process.collectors);
    states.filter(|state| state.name == name).fold(0u64, |sum, state| sum.saturating_add(state.own_ns))
}

/// By what part the program runs longer while a device is recorded, and how that is known.
pub(super) fn slowdown(timeline: &Timeline, steps: &Steps) -> Option<(f64, OverheadBy)> {
    let by_windows = || most_paid(timeline).map(|windows| (windows.cost, OverheadBy::Windows));
    compared(timeline, steps).map(|steps| (steps.each(), OverheadBy::Steps)).or_else(by_windows)
}

/// Steps with and without recording of the GPU.
struct Compared {
    with: usize,
    without: usize,
    /// Sum over those with it: by what part each is longer.
    longer: f64,
}

impl Compared {
    fn each(&self) -> f64 {
        self.longer / self.with as f64
    }

    /// Over all of them.
    fn percent(&self) -> f64 {
        100.0 * self.longer / (self.with + self.without) as f64
    }

    fn how(&self) -> OverheadHow {
        OverheadHow::Steps { with: self.with as u64, without: self.without as u64, longer: self.each() }
    }
}

/// Steps inside the windows in which the GPU was recorded against those that lie wholly outside: the average over both. A step without
/// GPU work is no unrecorded one: without windows there is nothing to compare. Each process is held against itself.
fn compared(timeline: &Timeline, steps: &Steps) -> Option<Compared> {
    let process = |step: &Step| timeline.tracks[step.track.0 as usize].process;
    let mut durations: BTreeMap<ProcessIndex, [Vec<u64>; 2]> = BTreeMap::new();
    for step in steps.apart.iter().filter(|step| !step.warmup) {
        durations.entry(process(step)).or_default()[1].push(step.dur());
    }
    for step in steps.measured() {
        if let Some([with, _]) = durations.get_mut(&process(step)) {
            with.push(step.dur());
        }
    }
    let mut sum = Compared { with: 0, without: 0, longer: 0.0 };
    for [inside, outside] in durations.values_mut() {
        if inside.len().min(outside.len()) < ENOUGH_STEPS {
            continue;
        }
        inside.sort_unstable();
        outside.sort_unstable();
        let (slow, fast) = (percentile(inside, 50), percentile(outside, 50));
        sum.longer += inside.len() as f64 * (slow as f64 / fast.max(1) as f64 - 1.0).max(0.0);
        (sum.with, sum.without) = (sum.with + inside.len(), sum.without + outside.len());
    }
    (sum.with > 0).then_some(sum)
}

/// What the collector found by holding its windows against each other; of several processes, the one that paid most.
fn between_windows(timeline: &Timeline) -> Option<(f64, OverheadHow)> {
    let most = most_paid(timeline)?;
    Some((100.0 * paid(&most), OverheadHow::Windows { recorded: most.recorded, cost: most.cost }))
}

fn paid(windows: &WindowedRecording) -> f64 {
    windows.recorded * windows.cost
}

fn most_paid(timeline: &Timeline) -> Option<WindowedRecording> {
    let states = timeline.processes.iter().flat_map(|process| &process.collectors);
    states.filter_map(|state| state.windows).max_by(|a, b| paid(a).total_cmp(&paid(b)))
}
