//! Which step a piece of work belongs to: the one that was open on the launching thread when its launch call began. A thread
//! that has no step open works for the only step that is open in its process; where several are, its work is nobody's.

use super::{DeviceInputs, StepWork};
use crate::steps::StepSource;
use crate::steps::windows::Window;
use std::collections::HashMap;
use timeline::{ProcessIndex, TrackIndex, WorkKind};

/// How many windows back to look for the one that is open.
const LOOK_BACK: usize = 64;

pub fn of_steps(inputs: &DeviceInputs) -> Vec<StepWork> {
    if inputs.steps.source == StepSource::Whole {
        return Vec::new();
    }
    let (timeline, owners) = (inputs.timeline, Owners::new(inputs));
    let work = &timeline.gpu.work;
    let mut steps: Vec<Option<StepWork>> = vec![None; inputs.steps.steps.len()];
    let mut track = 0;
    // Launches of a thread come in order, so most are in the window of the last.
    let mut last: Option<(usize, Window)> = None;
    for index in work.linked().iter().map(|index| *index as usize).filter(|index| work.kind(*index).is_busy()) {
        let Some(launch) = work.launch(index) else { continue };
        while timeline.tracks[track].slices.end <= launch {
            track += 1;
        }
        let begin = timeline.slices.start[launch];
        if last.is_none_or(|(of, window)| of != track || begin < window.start || begin >= window.end) {
            last = owners.of(inputs, TrackIndex(track as u32), begin).map(|window| (track, window));
        }
        let Some((_, Window { step, .. })) = last else { continue };
        let (start, end) = (work.start[index], work.end(index));
        let empty = StepWork { step, kernels: 0, copies: 0, total_ns: 0, first_start: start, last_end: end };
        let Some(sum) = steps.get_mut(step as usize) else { continue };
        let sum = sum.get_or_insert(empty);
        let kernel = work.kind(index) == WorkKind::Kernel;
        sum.kernels += u64::from(kernel);
        sum.copies += u64::from(!kernel);
        sum.total_ns = sum.total_ns.saturating_add(work.dur[index]);
        sum.first_start = sum.first_start.min(start);
        sum.last_end = sum.last_end.max(end);
    }
    steps.into_iter().flatten().collect()
}

/// The windows of each process by start, and their ends sorted on their own: so many are open as have begun and not ended.
struct Owners {
    by_process: HashMap<ProcessIndex, OfProcess>,
}

/// Start, end and step of each window, and the ends.
type OfProcess = (Vec<(u64, u64, u32)>, Vec<u64>);

impl Owners {
    fn new(inputs: &DeviceInputs) -> Owners {
        let mut by_process: HashMap<ProcessIndex, OfProcess> = HashMap::new();
        for window in inputs.windows.all() {
            let process = inputs.timeline.tracks[window.track.0 as usize].process;
            let (begun, ended) = by_process.entry(process).or_default();
            begun.push((window.start, window.end, window.step));
            ended.push(window.end);
        }
        for (begun, ended) in by_process.values_mut() {
            begun.sort_unstable();
            ended.sort_unstable();
        }
        Owners { by_process }
    }

    fn of(&self, inputs: &DeviceInputs, track: TrackIndex, time: u64) -> Option<Window> {
        if let Some(window) = inputs.windows.at(track, time) {
            return Some(inputs.windows.all()[window]);
        }
        let (begun, ended) = self.by_process.get(&inputs.timeline.tracks[track.0 as usize].process)?;
        let first = begun.partition_point(|window| window.0 <= time);
        let open = first - ended.partition_point(|end| *end <= time);
        let around = || begun[..first].iter().rev().take(LOOK_BACK).find(|window| window.1 > time);
        // Only for this moment: another step may open before the window ends.
        let now = |step: u32| Window { track, start: time, end: time.saturating_add(1), step };
        if open == 1 { around().map(|window| now(window.2)) } else { None }
    }
}
