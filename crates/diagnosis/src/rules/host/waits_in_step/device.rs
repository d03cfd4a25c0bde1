//! Waits for a device: recorded calls say how long, samples say which line makes them. What would be gained is not said here:
//! that depends on what the device does meanwhile.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::pace::MIN_PACING_SHARE;
use crate::measures::proof;
use crate::measures::recorded;
use crate::rule::Case;
use analysis::frames::is;
use analysis::host::blame::READ_LATE_NS;
use analysis::host::step_samples::{Doing, StepSample};
use analysis::idle::DeviceIdle;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use std::collections::HashMap;
use timeline::{NameIndex, RecordedBy, Slice, SliceKind, StackIndex, TrackIndex};

use super::{CODE, MIN_SHARE};

pub fn finding(case: &Case) -> Option<Finding> {
    let copies_that_wait = copies_that_wait(case);
    let waits = |slice: &Slice| {
        let syncs = case.frames.bits(slice.name) & is::WAITS_FOR_GPU != 0;
        slice.kind == SliceKind::ApiCall
            && (syncs || copies_that_wait.get(&(slice.start, slice.name)).is_some_and(|ns| ns * 2 >= slice.dur))
    };
    let recorded = recorded::inside(case, waits);
    // Of all such waits, and of those in the call that has most of them.
    let (share, call, own, longest) = match call(case) {
        Some(call) => {
            let own = recorded::inside(case, |slice| slice.name == call && waits(slice));
            (recorded.tally.measured(), call, own.tally.mid(), own.longest)
        }
        // Calls were not recorded: native frames, or the name of a Python function, tell.
        None => {
            let call = sampled_call(case)?;
            let waits = |one: &StepSample| one.doing == Doing::Gpu;
            let own = case.share(|one| waits(one) && on_top(case, one) == call).0.mid;
            (case.share(waits).0, call, own, Vec::new())
        }
    };
    if share.mid < case.threshold(MIN_SHARE) {
        return None;
    }
    // Where no sample lies well inside such a call, those at its end show a line close by.
    let (mut near, mut close_by, frame) = match line(case, call, READ_LATE_NS) {
        Some((frame, true)) => ("", false, Some(frame)),
        Some((frame, false)) => ("mostly ", false, Some(frame)),
        None => ("near ", true, line(case, call, 0).map(|(frame, _)| frame)),
    };
    let mut place = frame.map_or_else(Place::default, |frame| case.place(frame));
    let longest = longest.first().filter(|_| frame.is_none());
    if let Some(around) = longest.and_then(|(track, slice)| around(case, *track, slice)) {
        (near, close_by, place) = ("in ", false, around);
    }
    let title = format!(
        "Waiting for the GPU takes {} of {}{}{}",
        phrase::percent(share.mid),
        case.the_step(),
        in_call(case.timeline.names.text(call), own, share.mid),
        match place.function {
            Some(_) => format!(" ({near}{})", phrase::line(&place)),
            None => String::new(),
        }
    );
    if close_by {
        place = Place::default();
    }
    place.api = Some(case.timeline.names.text(call).to_owned());
    let busy = busy(case);
    Some(Finding {
        code: CODE,
        title,
        place,
        gain: None,
        severity: Severity::Info,
        certainty: Certainty::seen(if recorded.count > 0 {
            recorded.tally.repeats()
        } else {
            share.surely_above(case.threshold(MIN_SHARE) / 2.0)
        }),
        evidence: evidence(case, &recorded, share, busy),
        actions: {
            let mut actions = actions(case.timeline.info.recorded_by, paces(case), copies(case));
            if case.timeline.names.call(call).copies() {
                actions.push(Action::torch(COPY));
            }
            actions
        },
        verify: proof::verify(case, 0.0),
    })
}

/// A call that has not all of the waiting is said with what it has.
fn in_call(call: &str, own: f64, all: f64) -> String {
    match (phrase::percent(own), phrase::percent(all)) {
        // Copies that wait for less than half of their time count by that alone.
        _ if own <= 0.0 => String::new(),
        (own, all) if own == all => format!(" in {call}"),
        (own, _) => format!(": {own} in {call}"),
    }
}

/// The call in which most of the recorded waiting is spent.
fn call(case: &Case) -> Option<NameIndex> {
    let mut times: HashMap<NameIndex, u64> = HashMap::new();
    for (track, waits) in &case.samples.gpu {
        // Launches that wait for room are told by launch-queue-full.
        for (start, end, name) in waits.iter().filter(|one| !is_launch(case, one.2)) {
            let sum = times.entry(*name).or_default();
            *sum = sum.saturating_add(case.windows.overlap(*track, *start, *end));
        }
    }
    let most = times.into_iter().filter(|(_, ns)| *ns > 0).max_by_key(|(name, ns)| (*ns, u32::MAX - name.0));
    most.map(|(name, _)| name)
}

fn is_launch(case: &Case, name: NameIndex) -> bool {
    case.frames.bits(name) & is::WAITS_FOR_GPU == 0 && !case.timeline.names.call(name).copies()
}

/// Copies that return when all that the device had to do before them is done, by their start and name: how long they wait.
fn copies_that_wait(case: &Case) -> HashMap<(u64, NameIndex), u64> {
    let is_copy = |name: NameIndex| case.timeline.names.call(name).copies();
    let waits = case.samples.gpu.values().flatten().filter(|(_, _, name)| is_copy(*name));
    waits.map(|(start, end, name)| ((*start, *name), end - start)).collect()
}

/// Without samples: the recorded function of the program around a call, else the scope, else the operator.
fn around(case: &Case, track: TrackIndex, call: &Slice) -> Option<Place> {
    let slices = &case.timeline.slices;
    let mut found: [Option<NameIndex>; 3] = [None; 3];
    for index in case.timeline.tracks[track.0 as usize].slices.clone() {
        let slice = slices.get(index);
        if slice.start > call.start {
            break;
        }
        let own = case.frames.bits(slice.name) & is::LIBRARY == 0;
        let place = match slice.kind {
            SliceKind::Call if own => 0,
            SliceKind::Scope => 1,
            SliceKind::CCall => 2,
            _ => continue,
        };
        if slice.end() >= call.end() {
            found[place] = Some(slice.name);
        }
    }
    let name = case.timeline.names.get(found.into_iter().flatten().next()?);
    Some(Place {
        function: Some(name.text.to_string()),
        file: Some(name.file.to_string()).filter(|file| !file.is_empty()),
        line: Some(name.line).filter(|line| *line > 0),
        ..Place::default()
    })
}

fn sampled_call(case: &Case) -> Option<NameIndex> {
    let waits = case.samples.all.iter().filter(|one| one.doing == Doing::Gpu);
    most(waits.map(|one| on_top(case, one)))
}

/// The call that waits, or what is on top: inside the call the driver has functions of its own.
fn on_top(case: &Case, one: &StepSample) -> NameIndex {
    let stack = case.sample(one).stack;
    let native = case.timeline.stacks.walk(stack).take_while(|(index, _)| *index != case.frames.python(stack));
    let waits = native.map(|(_, frame)| frame.name).find(|name| case.frames.bits(*name) & is::WAITS_FOR_GPU != 0);
    waits.unwrap_or_else(|| case.timeline.stacks.frame(stack).name)
}

/// The line of the program that most samples show in that call, of those that are so long before its end; and whether all of them do.
fn line(case: &Case, call: NameIndex, before_end: u64) -> Option<(StackIndex, bool)> {
    let in_call = |one: &&StepSample| match case.samples.device_wait(case.track(one), case.sample(one).time) {
        Some((_, end, name)) => name == call && case.sample(one).time.saturating_add(before_end) <= end,
        None => on_top(case, one) == call,
    };
    let waits = case.samples.all.iter().filter(|one| one.doing == Doing::Gpu).filter(in_call);
    let frames: Vec<StackIndex> = waits.map(|one| case.blame().frame(case, one)).filter(|frame| frame.0 != 0).collect();
    let of = |frame: &StackIndex| {
        let frame = case.timeline.stacks.frame(*frame);
        (frame.name, frame.line)
    };
    let place = most(frames.iter().map(of))?;
    let all = frames.iter().all(|frame| of(frame) == place);
    frames.into_iter().find(|frame| of(frame) == place).map(|frame| (frame, all))
}

fn most<T: Copy + Eq + Ord + std::hash::Hash>(all: impl Iterator<Item = T>) -> Option<T> {
    let mut counts: HashMap<T, u64> = HashMap::new();
    all.for_each(|one| *counts.entry(one).or_default() += 1);
    counts.into_iter().max_by_key(|(one, count)| (*count, std::cmp::Reverse(*one))).map(|(one, _)| one)
}

/// How much of the steps the busiest device is at work.
fn busy(case: &Case) -> Option<f64> {
    let devices = case.gpu()?.devices.iter().filter(|device| device.window_ns > 0);
    devices.map(|device| device.busy_ns as f64 / device.window_ns as f64).max_by(f64::total_cmp)
}

/// With what it holds back for another device, or for a reason that was not recorded: that is on its side, too.
fn paces(case: &Case) -> Option<f64> {
    let devices = case.idle().iter().filter(|device| device.window_ns > 0);
    let paces = |device: &DeviceIdle| (device.paced_ns() + device.held_ns()) as f64 / device.window_ns as f64;
    devices.map(paces).max_by(f64::total_cmp)
}

/// How much of the steps a device copies while none of its kernels run, at most.
fn copies(case: &Case) -> f64 {
    let devices = case.gpu().into_iter().flat_map(|gpu| &gpu.devices).filter(|device| device.window_ns > 0);
    devices.map(|device| device.exposed_copy_ns as f64 / device.window_ns as f64).fold(0.0, f64::max)
}

fn evidence(case: &Case, recorded: &recorded::Recorded, share: Share, busy: Option<f64>) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    if recorded.count > 0 {
        let calls = phrase::counted(recorded.count, "call");
        let text =
            format!("{calls} inside {}, {} in total", case.the_steps(), phrase::duration(recorded.tally.part as u64));
        evidence.push(Evidence::new(text).number("ns", recorded.tally.part));
    } else {
        evidence.push(Evidence::new(format!("{} of the samples", phrase::percent_range(share))));
    }
    if let Some(busy) = busy {
        let text = format!("GPU busy {} of {}", phrase::percent(busy), case.steps_time());
        evidence.push(Evidence::new(text).number("busy", busy));
    }
    if let Some((track, slice)) = recorded.longest.first() {
        let mut text = format!("longest, {}", phrase::duration(slice.dur));
        text += &waited_for(case, *track, slice).unwrap_or_default();
        evidence.push(Evidence::at(text, Some(*track), slice.start, slice.end()));
    }
    evidence
}

/// What a wait was for, by the name of the work.
fn waited_for(case: &Case, track: TrackIndex, slice: &Slice) -> Option<String> {
    let range = case.timeline.tracks[track.0 as usize].slices.clone();
    let slices = &case.timeline.slices;
    let first = range.start + slices.start[range.clone()].partition_point(|start| *start < slice.start);
    let mut same = (first..range.end).take_while(|index| slices.start[*index] == slice.start);
    let index = same.find(|index| slices.get(*index) == *slice)?;
    let name = |work: usize| case.timeline.names.text(case.timeline.gpu.work.get(work).name);
    let probably = || {
        let work = case.timeline.probably_waited_for(index)?;
        Some(format!(", probably waited for {}, which ended just before it returned", name(work)))
    };
    case.timeline.waited_for(index).map(|work| format!(", waited for {}", name(work))).or_else(probably)
}

const COPY: &str =
    "Do not block on the copy: use pinned memory and non_blocking=True, and read the result one step later.";

/// More than half: most of what is waited for is the device's work.
const MAJORITY: f64 = 0.5;

fn actions(recorder: RecordedBy, busy: Option<f64>, copies: f64) -> Vec<Action> {
    match busy {
        Some(busy) if busy < MAJORITY => vec![
            Action::torch("Wait less often: .item(), .cpu(), printing a tensor and torch.cuda.synchronize() each drain the GPU, which is then idle until the next launch arrives."),
            Action::torch("Copy results out with non_blocking=True into pinned memory, and read them one step later."),
        ],
        Some(busy) if busy < MIN_PACING_SHARE => vec![
            format!(
                "Reduce the GPU work (see the kernel table) and start it sooner (see the idle table): the GPU is busy {} of the time.",
                phrase::percent(busy)
            )
            .into(),
        ],
        Some(_) if copies > MAJORITY => vec![
            "Copy less, or overlap copies with kernels (see the copy table): the GPU is the bottleneck, and copies are most of its work.".into(),
        ],
        Some(_) => vec![
            "Reduce the GPU work: the GPU is the bottleneck (see the kernel table).".into(),
        ],
        None => {
            let how = recorder.choose(
                "inferscope run --gpu-detail launch -- ...",
                "profile with ProfilerActivity.CUDA.",
                "nsys profile --trace=cuda,nvtx ...",
            );
            vec![format!("Record the GPU too, to see what it does during the wait: {how}").into()]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::in_call;

    #[test]
    fn a_call_is_named_with_what_it_has() {
        assert_eq!(in_call("wait", 0.92, 0.92), " in wait");
        assert_eq!(in_call("wait", 0.47, 0.92), ": 47 % in wait");
        assert_eq!(in_call("wait", 0.0, 0.92), "");
    }
}
