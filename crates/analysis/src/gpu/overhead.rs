//! What recording the devices cost. Best known where some steps were recorded with devices and others without (an overhead
//! budget does that): then it is how much longer they take. Else what the collectors measured of themselves, which is not all.

use super::{Ground, Overhead, percentile};
use crate::idle::{OverheadOf, overhead_of};
use crate::phrase;
use std::collections::HashSet;
use timeline::{NameIndex, SliceKind};

/// These run in the program's own threads; `gpu` reads what CUPTI left in a thread of its own.
const ON_ITS_THREADS: [&str; 2] = ["launches", "layers"];
const BESIDE: &str = "gpu";

/// With fewer of either, their medians differ by chance.
const ENOUGH_STEPS: usize = 16;

pub fn measure(ground: &Ground, steps: &[super::StepWork]) -> Option<Overhead> {
    let timeline = ground.timeline;
    let own = |name: &str| {
        let states = timeline.processes.iter().flat_map(|process| &process.collectors);
        states.filter(|state| state.name == name).fold(0u64, |sum, state| sum.saturating_add(state.own_ns))
    };
    let inside = ON_ITS_THREADS.into_iter().map(own).fold(0, u64::saturating_add);
    let own_ns = inside.saturating_add(own(BESIDE));
    let (mut launches, mut cupti_ns, mut said, mut last) = (0, 0u64, false, None);
    for launch in timeline.gpu.work.linked().iter().map(|index| timeline.gpu.work.launch(*index as usize)) {
        launches += u64::from(launch != last);
        last = launch;
    }
    for index in (0..timeline.slices.len()).filter(|index| timeline.slices.kind(*index) == SliceKind::Overhead) {
        if overhead_of(timeline.names.text(NameIndex(timeline.slices.name[index]))) != OverheadOf::Profiler {
            continue;
        }
        said = true;
        cupti_ns = cupti_ns.saturating_add(timeline.slices.dur[index]);
    }
    let compared = compared(ground, steps);
    if own_ns == 0 && !said && compared.is_none() {
        return None;
    }
    let (percent, how) = match compared {
        Some((percent, how)) => (Some(percent), how),
        None if inside > 0 && timeline.duration() > 0 => {
            let share = inside as f64 / timeline.duration() as f64;
            (Some(100.0 * share), "the collectors' own time on the program's threads; what CUPTI adds to every launch comes on top, and only a run without inferscope shows it".into())
        }
        None if !timeline.info.recorder.is_empty() => (None, "not measured".into()),
        None => (None, "the collectors' time on the program's threads was not measured".into()),
    };
    Some(Overhead { own_ns, launches, cupti_ns, percent, how })
}

/// Steps that gave work to a device while it was recorded against those of which nothing was recorded: the average over all.
fn compared(ground: &Ground, steps: &[super::StepWork]) -> Option<(f64, String)> {
    let recorded: HashSet<u32> = steps.iter().map(|step| step.step).collect();
    let durations = |with: bool| {
        let those = ground.steps.measured().filter(|step| recorded.contains(&step.index) == with);
        let mut durations: Vec<u64> = those.map(|step| step.dur()).collect();
        durations.sort_unstable();
        durations
    };
    let (with, without) = (durations(true), durations(false));
    if with.len().min(without.len()) < ENOUGH_STEPS {
        return None;
    }
    let (slow, fast) = (percentile(&with, 50), percentile(&without, 50));
    let longer = 100.0 * (slow as f64 / fast.max(1) as f64 - 1.0).max(0.0);
    let all = (with.len() + without.len()) as f64;
    let how = format!(
        "on average over all steps: the {} whose GPU work was recorded take {} longer than the {} others (medians)",
        phrase::count(with.len() as u64),
        phrase::percent(longer / 100.0),
        phrase::count(without.len() as u64)
    );
    Some((longer * with.len() as f64 / all, how))
}
