//! `overhead-in-window`: recording itself took part in what was recorded.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::health_topic::HealthTopic;
use crate::measures::recorded;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use crate::wording;
use analysis::phrase;
use analysis::place::Place;
use analysis::steps::StepSource;
use timeline::{RecordedBy, SliceKind};

pub const CODE: RuleCode = RuleCode::new("overhead-in-window");

pub struct OverheadInWindow;

const MAX_OVERHEAD_PERCENT: Threshold = Threshold::new(
    CODE,
    "max_overhead_percent",
    5.0,
    Unit::Percent,
    "a twentieth of the time is more than most differences worth looking for",
);
const MIN_CALL_INTERVAL_NS: Threshold = Threshold::new(
    CODE,
    "min_call_interval_ns",
    10_000.0,
    Unit::Nanoseconds,
    "recording a call every 10 µs costs some percent of the time",
);

const OURS: [&str; 2] = [
    "Skip short calls: inferscope run --calls --min-us 50 -- ...",
    "Record only your own code: --include your_package, or turn --calls off: stack samples are taken from outside the program.",
];
const TORCH: [&str; 2] = [
    "Switch off the expensive options: torch.profiler.profile(with_stack=False, record_shapes=False, profile_memory=False).",
    "Profile few steps after a warm-up: schedule=torch.profiler.schedule(wait=1, warmup=2, active=5).",
];
const OF_TORCH: &str = "Skip operator and function ranges: no torch.autograd.profiler.emit_nvtx(), no --pytorch, no --python-functions-trace.";
const NSIGHT: &str = "Record less at once: nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none.";

impl Rule for OverheadInWindow {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MAX_OVERHEAD_PERCENT, MIN_CALL_INTERVAL_NS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "So many calls were recorded inside the steps that short functions are overestimated, or recording the GPU took {max_overhead_percent} or more.",
            why: "Samples are taken from outside the program. A recorded call costs a little each time, on the program's own thread; with one every {min_call_interval_ns} that is no longer small. The trace does not contain how much it is on this machine, so there is no number: only how many there were. The cost of recording a GPU is measured while it runs: against the steps that were not recorded where there are any, else by the collectors' own time.",
            needs: "Recorded calls (`--calls`), or GPU operations.",
            example: "A step has 41,210 recorded calls, one every 970 ns: short functions are overestimated",
        }
    }

    fn health_topic(&self) -> Option<HealthTopic> {
        Some(HealthTopic::Overhead)
    }

    fn look(&self, case: &Case) -> Verdict {
        let is_call = |kind| matches!(kind, SliceKind::Call | SliceKind::CCall);
        let mut calls = 0u64;
        for (track, range) in case.windows.tracks() {
            let windows = &case.windows.all()[range];
            let mut at = 0;
            for index in case.timeline.tracks[track.0 as usize].slices.clone() {
                if is_call(case.timeline.slices.kind(index)) {
                    let start = case.timeline.slices.start[index];
                    while windows.get(at).is_some_and(|window| window.end <= start) {
                        at += 1;
                    }
                    calls += u64::from(windows.get(at).is_some_and(|window| window.start <= start));
                }
            }
        }
        if let Some(found) = self.of_device(case) {
            return found.into();
        }
        if calls == 0 && case.gpu().is_some_and(|gpu| gpu.overhead.as_ref().is_some_and(|one| one.percent.is_some())) {
            return Verdict::Silent;
        }
        if calls == 0 {
            let reason = "recording overhead is not in the trace; compare the latency with a run without the profiler";
            return Verdict::Abstain(reason.into());
        }
        let every = case.windows.total() as f64 / calls as f64;
        if every > case.threshold(MIN_CALL_INTERVAL_NS) {
            return Verdict::Silent;
        }
        let each = calls / case.steps.count().max(1) as u64;
        let longest = recorded::inside(case, |slice| is_call(slice.kind)).longest;
        let mut evidence = vec![
            Evidence::new(format!("{} inside {}", phrase::counted(calls, "recorded call"), case.the_steps()))
                .number("calls", calls as f64),
        ];
        evidence.extend(
            longest.first().map(|(track, slice)| Evidence::at("example", Some(*track), slice.start, slice.end())),
        );
        let recorder = case.timeline.info.recorded_by;
        let without = recorder.choose("--calls", "with_stack", "those ranges");
        let finding = Finding {
            code: CODE,
            title: format!(
                "{} {} recorded calls, one every {}: short functions are overestimated",
                if case.steps.source == StepSource::Whole { "The recording has" } else { "A step has" },
                phrase::count(each),
                phrase::duration(every as u64)
            ),
            place: Place::default(),
            gain: None,
            severity: Severity::Info,
            certainty: Certainty::seen(1.0), // Counted.
            evidence,
            actions: match recorder {
                RecordedBy::Nsight => vec![Action::torch(OF_TORCH), NSIGHT.into()],
                RecordedBy::InferScope | RecordedBy::Snapshot => Action::all(OURS),
                RecordedBy::Kineto => Action::all(TORCH),
            },
            verify: format!("Compare the steps' p50 with a recording without {without}."),
        };
        finding.into()
    }
}

impl OverheadInWindow {
    /// What recording a device cost, where that is known and too much to pass over.
    fn of_device(&self, case: &Case) -> Option<Finding> {
        let overhead = case.gpu()?.overhead.as_ref()?;
        let percent = overhead.percent.filter(|percent| *percent >= case.threshold(MAX_OVERHEAD_PERCENT))?;
        let text = format!(
            "{} of the collectors' own, {}",
            phrase::duration(overhead.own_ns),
            wording::device::overhead(overhead.how)
        );
        Some(Finding {
            code: CODE,
            title: format!("Recording the GPU takes {} of the time", phrase::percent(percent / 100.0)),
            place: Place::default(),
            gain: None,
            severity: Severity::Info,
            certainty: Certainty::seen(1.0), // Measured.
            evidence: vec![Evidence::new(text).number("percent", percent)],
            actions: vec![
                "Record only some steps: inferscope run --overhead-budget 2% -- ...".into(),
                "Record kernels only: inferscope run --gpu-detail kernel -- ...".into(),
            ],
            verify: "Record again: Data quality should show less overhead.".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    #[test]
    fn many_calls_are_said() {
        let found = found(&OverheadInWindow, "track main\n step r 0..1ms\n repeat 500 every 2us\n call f 0..1us\n end");
        assert_eq!(
            found[0].title,
            "A step has 500 recorded calls, one every 2.00 µs: short functions are overestimated"
        );
    }

    #[test]
    fn silent_with_few() {
        silent(&OverheadInWindow, "track main\n step r 0..1s\n repeat 500 every 2ms\n call f 0..1us\n end");
    }

    #[test]
    fn what_recording_a_device_takes_is_said_when_it_is_much() {
        let run = |own: &str| {
            format!(
                "collector launches on own {own}\n end 1s\n track main\n step r 0..1s\n api cudaLaunchKernel 0..1us\n stream 7\n kernel k 2us..3us"
            )
        };
        assert_eq!(found(&OverheadInWindow, &run("80ms"))[0].title, "Recording the GPU takes 8.0 % of the time");
        silent(&OverheadInWindow, &run("8ms"));
    }

    #[test]
    fn abstains_without_any() {
        abstains(&OverheadInWindow, "track main\n step r 0..1s", "not in the trace");
    }
}
