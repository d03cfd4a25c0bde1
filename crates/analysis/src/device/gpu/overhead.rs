//! What recording the devices cost. Best known where an overhead budget recorded windows: then it is how much longer the steps inside
//! them take than those outside, or what the collector found between its windows. Else what the collectors measured of themselves,
//! which is not all.

use super::{DeviceInputs, Overhead, OverheadBy};
use crate::phrase;
use crate::stats::percentile;
use crate::steps::Step;
use std::collections::BTreeMap;
use timeline::cuda_calls::{OverheadOf, overhead_of};
use timeline::{ProcessIndex, SliceKind, Timeline, WindowedRecording};

/// These run in the program's own threads; `gpu` reads what CUPTI left in a thread of its own.
const ON_ITS_THREADS: [&str; 2] = ["launches", "layers"];
const BESIDE: &str = "gpu";

/// With fewer of either, their medians differ by chance.
const ENOUGH_STEPS: usize = 16;

pub fn measure(inputs: &DeviceInputs) -> Option<Overhead> {
    let timeline = inputs.timeline;
    let own = |name: &str| {
        let states = timeline.processes.iter().flat_map(|process| &process.collectors);
        states.filter(|state| state.name == name).fold(0u64, |sum, state| sum.saturating_add(state.own_ns))
    };
    let inside = ON_ITS_THREADS.into_iter().map(own).fold(0, u64::saturating_add);
    let own_ns = inside.saturating_add(own(BESIDE));
    let (mut cupti_ns, mut said) = (0u64, false);
    for index in (0..timeline.slices.len()).filter(|index| timeline.slices.kind(*index) == SliceKind::Overhead) {
        if overhead_of(timeline.slices.overhead(index)) != OverheadOf::Profiler {
            continue;
        }
        said = true;
        cupti_ns = cupti_ns.saturating_add(timeline.slices.dur[index]);
    }
    let measured = compared(inputs)
        .map(|(percent, how)| (percent, how, OverheadBy::Steps))
        .or_else(|| between_windows(timeline).map(|(percent, how)| (percent, how, OverheadBy::Windows)));
    if own_ns == 0 && !said && measured.is_none() {
        return None;
    }
    let (percent, how, by) = match measured {
        Some((percent, how, by)) => (Some(percent), how, Some(by)),
        None if inside > 0 && timeline.duration() > 0 => {
            let share = inside as f64 / timeline.duration() as f64;
            let how = "collectors' own time on the program's threads; CUPTI's cost per launch comes on top (compare with a run without inferscope)";
            (Some(100.0 * share), how.into(), Some(OverheadBy::OwnTime))
        }
        None if !timeline.info.recorder.is_empty() => (None, "not measured".into(), None),
        None => (None, "collectors' time on the program's threads not measured".into(), None),
    };
    Some(Overhead { own_ns, launches: launches(timeline), cupti_ns, percent, how, by })
}

/// Calls that gave a device something to do: a wait does not.
fn launches(timeline: &Timeline) -> u64 {
    let work = &timeline.gpu.work;
    let gave = |pieces: &[u32]| pieces.iter().any(|index| work.kind(*index as usize).is_busy());
    work.by_launch().filter(|(_, pieces)| gave(pieces)).count() as u64
}

/// Steps inside the windows in which the GPU was recorded against those that lie wholly outside: the average over both. A step without
/// GPU work is no unrecorded one: without windows there is nothing to compare. Each process is held against itself.
fn compared(inputs: &DeviceInputs) -> Option<(f64, String)> {
    let process = |step: &Step| inputs.timeline.tracks[step.track.0 as usize].process;
    let mut durations: BTreeMap<ProcessIndex, [Vec<u64>; 2]> = BTreeMap::new();
    for step in inputs.steps.apart.iter().filter(|step| !step.warmup) {
        durations.entry(process(step)).or_default()[1].push(step.dur());
    }
    for step in inputs.steps.measured() {
        if let Some([with, _]) = durations.get_mut(&process(step)) {
            with.push(step.dur());
        }
    }
    let (mut with, mut without, mut longer) = (0, 0, 0.0);
    for [inside, outside] in durations.values_mut() {
        if inside.len().min(outside.len()) < ENOUGH_STEPS {
            continue;
        }
        inside.sort_unstable();
        outside.sort_unstable();
        let (slow, fast) = (percentile(inside, 50), percentile(outside, 50));
        longer += inside.len() as f64 * (slow as f64 / fast.max(1) as f64 - 1.0).max(0.0);
        (with, without) = (with + inside.len(), without + outside.len());
    }
    if with == 0 {
        return None;
    }
    let each = match phrase::percent(longer / with as f64) {
        _ if longer == 0.0 => "no longer than".into(),
        each => format!("{each} longer than"),
    };
    let how = format!(
        "mean over all steps: {} steps with GPU recording take {each} {} without (medians)",
        phrase::count(with as u64),
        phrase::count(without as u64)
    );
    Some((100.0 * longer / (with + without) as f64, how))
}

/// What the collector found by holding its windows against each other; of several processes, the one that paid most.
fn between_windows(timeline: &Timeline) -> Option<(f64, String)> {
    let states = timeline.processes.iter().flat_map(|process| &process.collectors);
    let paid = |windows: &WindowedRecording| windows.recorded * windows.cost;
    let most = states.filter_map(|state| state.windows).max_by(|a, b| paid(a).total_cmp(&paid(b)))?;
    let how = format!(
        "on average: GPU recorded for {} of the time, slowing the program by {} while it is on (measured)",
        phrase::percent(most.recorded),
        phrase::percent(most.cost)
    );
    Some((100.0 * paid(&most), how))
}
