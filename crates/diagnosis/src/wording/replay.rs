//! What a replay assumed, changed and found to be the limit, and why it has no answer.

use super::device;
use super::origin::for_launches;
use analysis::device::gpu::OverheadBy;
use analysis::phrase::{self, percent};
use replay::{
    Assumption, Changed, Check, Direction, Limit, MOST_OFF, Near, NotThere, On, RecordingCost, Refusal, Unknown,
};

/// Why there is no answer.
pub fn refusal(refusal: &Refusal) -> String {
    match refusal {
        Refusal::NotThere(what) => not_there(what),
        Refusal::Unknown(what) => unknown(what),
    }
}

fn not_there(what: &NotThere) -> String {
    match what {
        NotThere::StepTime => "this trace has no steps that take time",
        NotThere::Work => "no work of a device was recorded",
        NotThere::Steps => "the recording has no steps, and is too large to be replayed as one",
        NotThere::LengthOfWait => {
            "a wait lasts as long as the work it waits for: write `remove sync-api`, or scale the work"
        }
        NotThere::RemovableWait => "no step has a wait that could be removed: each only waits for its own result",
        NotThere::Kernel(pattern, near) => return unnamed("kernel", pattern, near),
        NotThere::Copy(pattern, near) => return unnamed("copy", pattern, near),
        NotThere::Call(pattern, near) => return unnamed("CUDA call", pattern, near),
        NotThere::Function(pattern, near) => return unnamed("function, scope or range", pattern, near),
        NotThere::HostCode => "the steps have no such CPU code",
        NotThere::QueuedWork => "the steps have no queued GPU operations",
        NotThere::ChosenCalls => "the steps have no such calls",
        NotThere::ChosenWork => "the steps have no such work",
        NotThere::PageableCopies => "the steps have no pageable copies",
        NotThere::LaunchesInARow => "the steps have no two launches with no other call between them",
    }
    .to_owned()
}

fn unnamed(what: &str, pattern: &str, near: &Near) -> String {
    let near = match near {
        Near::Alike(name) => format!("did you mean {name:?}?"),
        Near::Longest(names) if names.is_empty() => "the steps have none".to_owned(),
        Near::Longest(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            format!("the longest are {}", names.join(", "))
        }
    };
    format!("no {what} in the steps is called {pattern:?}; {near}")
}

fn unknown(what: &Unknown) -> String {
    match what {
        Unknown::Launches(recorded_by) => {
            let how = for_launches(*recorded_by);
            format!("launch calls were not recorded, so it is unknown what waited for what; {how}")
        }
        Unknown::Clock => device::WRONG_CLOCK.to_owned(),
        Unknown::Missed(check) => format!("{}: no answer", missed(check)),
        Unknown::PinnedCopies(direction) => format!(
            "{}: record a run with a pinned buffer (tensor.pin_memory()), or use `scale copy:NAME FACTOR`",
            no_pinned(*direction)
        ),
    }
}

/// How far the replay is off.
fn missed(check: &Check) -> String {
    match check.off > MOST_OFF {
        true => format!("the replay misses this step by {}", percent(check.off)),
        false => format!(
            "the replay misses {} of {} steps by more than {}",
            check.steps - check.explained,
            check.steps,
            percent(MOST_OFF)
        ),
    }
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::HostToDevice => "host to device",
        Direction::DeviceToHost => "device to host",
    }
}

fn no_pinned(direction: Direction) -> String {
    format!("this trace has no pinned copies from {} to take the bandwidth from", way(direction))
}

pub fn assumption(assumption: &Assumption) -> String {
    match assumption {
        Assumption::WaitsForResultsStay => {
            "a wait with no launch after it in its step collects the result and stays (high: it is removed too, and the step ends no earlier than its GPU work)"
        }
        Assumption::LaunchesRemoved => "the launch calls of removed work are removed too (low: they stay)",
        Assumption::WorkScaled => "matching GPU operations take their recorded time × the factor",
        Assumption::CallsScaled => "the calls take their recorded time × the factor, and wait for nothing",
        Assumption::GapsShrink => {
            "gaps between queued GPU operations shrink to the 5th percentile of this trace's gaps (low: 25th percentile, high: no gap)"
        }
        Assumption::HostCodeScaled => "CPU time is scaled, except in calls that wait for the GPU",
        Assumption::FunctionScaled { among_calls: false } => {
            "the function's time, including what it calls, is scaled; if only samples show it, a sample stands for the time to its neighbours"
        }
        Assumption::FunctionScaled { among_calls: true } => {
            "the function's time outside CUDA calls, including what it calls, is scaled; if only samples show it, a sample stands for the time to its neighbours"
        }
        Assumption::LaunchesBecomeGraph => {
            "launches with no wait, allocation or copy of pageable memory between them become one graph launch, and the CPU code between them is removed (low: only the calls are). A graph launch costs what this trace's take per node; if it has none, between nothing (high) and one of the launches (low)"
        }
        Assumption::CopiesAsPinned => {
            "a pageable copy gets the bandwidth of this trace's pinned copies in the same direction of the nearest size (low, mid, high: 25th, 50th, 75th percentile), and its call the time of their calls (low: unchanged)"
        }
        Assumption::CopiesByLink { count, link } => {
            return format!(
                "{} pageable copies have no pinned copies of similar size to compare with: they get 83 % of the link's bandwidth, as pinned copies did on an H200 (low: unchanged, high: all of it), {}",
                phrase::count(*count),
                device::link(link)
            );
        }
        Assumption::CopiesUnchanged { count, direction } => {
            let (count, way, why) = (phrase::count(*count), way(*direction), no_pinned(*direction));
            return format!("{count} pageable copies from {way} are unchanged: {why}");
        }
        Assumption::LateAsRecorded => {
            "launched work that started late for an unrecorded reason starts as late as recorded"
        }
        Assumption::RestWithWork => {
            "everything else takes its recorded time; work that no longer waits starts after its launch, or after the work before it, with this trace's latency (low, mid, high: 95th, 50th, 5th percentile)"
        }
        Assumption::RestAsRecorded => "everything else takes its recorded time",
        Assumption::SpreadOverSteps => {
            "mid covers all steps; low and high include how it varies over the recording (10th and 90th percentile of ten or more groups of steps)"
        }
        Assumption::OneStep => "only one step was measured: low and high do not include how steps vary",
        Assumption::SamplingError => "low and high include the sampling error of the function's share (95 %)",
        Assumption::WithoutRecording(cost) => return recording_cost(cost),
    }
    .to_owned()
}

/// What recording added to the steps.
pub fn recording_cost(cost: &RecordingCost) -> String {
    let each = phrase::duration(u64::try_from(cost.ns()).unwrap_or(0));
    let how = match cost.call.by {
        OverheadBy::Steps => "recorded vs. unrecorded steps",
        OverheadBy::Windows => "recorded vs. unrecorded windows",
        OverheadBy::OwnTime => "the collector's own time",
    };
    let share = percent(cost.share);
    format!("gain of the step without recording's own cost: {each} per CUDA call, {share} of the step ({how})")
}

/// What was changed, after how many.
pub fn changed(changed: &Changed) -> String {
    match changed {
        Changed::Named(name) => name.clone(),
        Changed::QueuedGaps => "gaps between queued GPU operations".to_owned(),
        Changed::HostStretches => "stretches of CPU code".to_owned(),
        Changed::Function { pattern, sampled } => {
            let how = if *sampled { "samples" } else { "slices" };
            format!("{how} of {pattern} with what it calls")
        }
    }
}

/// What a step hangs on.
pub fn limit(limit: &Limit) -> &'static str {
    match limit.on {
        On::Host if !limit.among_calls => "CPU code",
        On::Host => "CPU code between CUDA calls",
        On::Call => "CUDA calls on the CPU",
        On::Latency => "latency from launch to start",
        On::Gap => "gaps between queued GPU operations",
        On::Kernel => "GPU kernels",
        On::Copy => "copies",
        On::Unknown => "GPU operations that started late for no recorded reason",
    }
}
