//! `dropped-records`: part of what happened is not in the trace. The recorder counted what it lost, or holes in a device's work show it.

pub mod device;

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::losses::{LossTotal, is_of_device, is_torn, share_of_stacks, totals, worst_share};
use crate::rule::{Case, Rule, RuleDocs, Shown, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::idle::pace::QUEUED_NS;
use analysis::phrase;
use analysis::place::Place;
use timeline::{CollectorCode, LossReason, Timeline};

pub const CODE: RuleCode = RuleCode::new("dropped-records");

pub struct DroppedRecords;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "GPU work missing for less than a twentieth of the step changes no verdict",
);
const MIN_STACK_SHARE: Threshold = Threshold::new(
    CODE,
    "min_stack_share",
    0.02,
    Unit::Share,
    "fewer lost stack samples change shares by less than their own error",
);
const MIN_MEDIUM_SHARE: Threshold = Threshold::new(
    CODE,
    "min_medium_share",
    0.01,
    Unit::Share,
    "of the records: a loss that shows in counts and totals has medium severity",
);
const MIN_DELAY: Threshold = Threshold::new(
    CODE,
    "min_delay",
    QUEUED_NS as f64,
    Unit::Nanoseconds,
    "work starts sooner after its launch where nothing runs before it",
);

impl Rule for DroppedRecords {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_STACK_SHARE, MIN_MEDIUM_SHARE]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MIN_DELAY]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Records were lost while recording, so counts and totals are too low, or GPU activity is missing for {min_share} of the step or more.",
            why: "Every loss is counted where it happens: records overwritten in a full ring, samples taken too late, stacks that changed while they were read. Late samples make shares less certain, not wrong; unreadable stacks make code with many short calls look cheaper than it is; lost scopes and steps are missing from every count. Up to {min_stack_share} of the stack samples, a loss is only shown under Data quality. GPU work that was never recorded shows as a hole: work is launched, nothing recorded runs before it on its GPU, and yet it starts {min_delay} later or more. Other tools omit nodes of CUDA graphs, and what was launched before they started. A stream that waits for the host looks the same; work that may wait for another busy GPU of the recording does not count. The GPU may have been busy all that time: its busy share is a lower bound.",
            needs: "Nothing: a trace always states its losses. Holes: GPU operations with their launch calls.",
            example: "Lost: 12,004 records overwritten before they could be written to disk (scopes)",
        }
    }

    fn shows(&self) -> Option<Shown> {
        Some(Shown::MissingWork)
    }

    fn look(&self, case: &Case) -> Verdict {
        let losses = totals(case.timeline);
        let lost: u64 = losses.iter().map(|loss| loss.count).fold(0, u64::saturating_add);
        let device = device::finding(case);
        // A few stack samples more or less change no share: the health line counts them.
        let few = share_of_stacks(case.timeline, &losses) < case.threshold(MIN_STACK_SHARE);
        let matters = losses.iter().any(|loss| loss.collector != CollectorCode::Stacks) || !few;
        let Some(worst) = losses.first().filter(|_| matters) else {
            return device.map_or(Verdict::Silent, Verdict::from);
        };
        let share = worst_share(case.timeline, &losses);
        let evidence = losses.iter().map(|loss| {
            let evidence = Evidence::new(loss.text()).number("count", loss.count as f64);
            Evidence { start: Some(loss.first), end: Some(loss.last), ..evidence }
        });
        let finding = Finding {
            code: CODE,
            title: {
                let first = if is_torn(worst) { worst.text() } else { format!("Lost: {}", worst.text()) };
                match lost - worst.count {
                    0 => first,
                    more => format!("{first}, and {} more lost", phrase::count(more)),
                }
            },
            place: Place::default(),
            gain: None,
            severity: if share >= case.threshold(MIN_MEDIUM_SHARE) { Severity::Medium } else { Severity::Info },
            certainty: Certainty::seen(1.0), // Counted, not estimated.
            evidence: evidence.take(8).collect(),
            actions: Action::all(actions(case.timeline, &losses)),
            verify: "Record again: Data quality should show no losses.".into(),
        };
        Verdict::Found([finding].into_iter().chain(device).collect())
    }
}

/// What helps depends on where it was lost: samples are taken from outside, everything else goes through a ring.
fn actions(timeline: &Timeline, losses: &[LossTotal]) -> Vec<String> {
    let mut actions: Vec<&str> = Vec::new();
    let of_device = |loss: &LossTotal| is_of_device(&loss.collector);
    if losses.iter().any(of_device) {
        actions.push("Record the GPU in less detail: inferscope run --gpu-detail kernel -- ...");
        actions.push("Record only some steps: inferscope run --overhead-budget 2% -- ...");
    }
    if losses.iter().any(|loss| loss.collector != CollectorCode::Stacks && !of_device(loss)) {
        actions.push("Enlarge the rings: inferscope run --trace-size-mb 400 -- ...");
        actions.push("Record less: --min-us 100 with --calls, or --include only what matters.");
    }
    let (settings, mut stacks) =
        (&timeline.info.settings, losses.iter().filter(|loss| loss.collector == CollectorCode::Stacks));
    // Of stacks, what was lost most: another cause beside it changes little.
    match stacks.next() {
        Some(most) if is_torn(most) && settings.calls == Some(true) => {
            actions.push("Use the recorded calls, which are complete: stacks of code with many short calls change while they are read.");
        }
        Some(most) if most.reason == LossReason::SamplesNotWritten => {
            actions.push("Write the trace to a faster disk: inferscope run --output DIR -- ...");
        }
        Some(most) if is_torn(most) => {
            actions.push("Record calls with inferscope run --calls -- ...: stacks of code with many short calls change while they are read.");
        }
        Some(_) => {
            actions.push("Leave the sampler a core: it takes no samples while every core is busy.");
            if settings.rate_hz.is_none_or(|rate| rate > 50.0) {
                actions.push("Sample less often: inferscope run --rate 50 -- ...");
            }
        }
        None => {}
    }
    actions.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    #[test]
    fn losses_are_added_up_and_named() {
        let found = found(
            &DroppedRecords,
            "track main\n step r 0..1s\n loss scopes 12000 overwritten\n loss scopes 4 overwritten\n loss stacks 1 stack-changed",
        );
        assert_eq!(
            found[0].title,
            "Lost: 12,004 records overwritten before they could be written to disk (scopes), and 1 more lost"
        );
        assert_eq!((found[0].severity, found[0].evidence.len()), (Severity::Medium, 2));
    }

    #[test]
    fn one_is_not_told_as_many() {
        let title =
            |loss: &str| found(&DroppedRecords, &format!("track main\n step r 0..1s\n loss {loss}"))[0].title.clone();
        assert_eq!(title("stacks 1 stack-changed"), "1 of 1 stack sample unreadable (100 %)");
        assert_eq!(title("stacks 2 stack-changed"), "2 of 2 stack samples unreadable (100 %)");
        let waiting = title("stacks 1 samples-not-written");
        assert_eq!(waiting, "Lost: 1 stack sample dropped: the disk did not accept it (stacks)");
    }

    /// Eight of 641, as in a newcomer's first recording: the health line counts them, and nothing is to be done.
    #[test]
    fn a_handful_of_unreadable_stacks_is_no_finding() {
        let text = |lost: u32| {
            format!(
                "track main\n step r 0..10s\n samples 0..6.33s every 10ms active gil f:1\n loss stacks {lost} stack-changed"
            )
        };
        silent(&DroppedRecords, &text(8));
        assert_eq!(found(&DroppedRecords, &text(80))[0].title, "80 of 713 stack samples unreadable (11 %)");
    }

    #[test]
    fn half_of_all_stacks_are_many_however_much_else_was_recorded() {
        let torn = "loss stacks 60 stack-changed";
        let kernels: String = (0..9_000).map(|at| format!("kernel k {}us..{}us\n", at * 10, at * 10 + 5)).collect();
        let text = format!("track main\n step r 0..1s\n stream 7\n{kernels} {torn}");
        let found = found(&DroppedRecords, &text);
        assert_eq!(found[0].severity, Severity::Medium);
        // Reading them less often makes none of them easier to read.
        assert!(found[0].actions.iter().any(|action| action.contains("--calls")), "{:?}", found[0].actions);
        assert!(!found[0].actions.iter().any(|action| action.contains("--rate")), "{:?}", found[0].actions);
    }

    #[test]
    fn what_was_lost_most_is_what_is_helped_and_nothing_is_asked_for_that_is_on() {
        let actions = |settings: &str, late: u32, torn: u32| {
            let text = format!(
                "{settings}track main\n step r 0..1s\n loss stacks {torn} stack-changed\n \
                 loss stacks {late} sampler-late"
            );
            found(&DroppedRecords, &text)[0].actions.iter().map(ToString::to_string).collect::<String>()
        };
        let late = actions("rate 100\n ", 34, 2);
        assert!(
            late.starts_with("Leave the sampler a core") && late.contains("--rate 50") && !late.contains("--calls"),
            "{late}"
        );
        assert!(!actions("rate 50\n ", 34, 2).contains("--rate"));
        assert!(actions("", 2, 34).contains("--calls"));
        let on = actions("calls on\n ", 2, 34);
        assert!(on.contains("recorded calls") && !on.contains("--calls"), "{on}");
    }

    #[test]
    fn lost_device_records_are_helped_by_recording_devices_less() {
        let found = found(&DroppedRecords, "track main\n step r 0..1s\n loss gpu 7 dropped-by-cupti");
        assert!(
            found[0]
                .actions
                .iter()
                .all(|action| action.contains("--gpu-detail") || action.contains("--overhead-budget"))
        );
    }

    const HOLE: &str = "track main\n step r 0..10ms\n stream 7\n api cudaGraphLaunch 0..20us\n memset 30us..1ms 64\n memset 8ms..8100us 64\n \
        kernel k 8101us..9ms\n api cudaStreamSynchronize 30us..9010us\n ccall aten::item 20us..10ms";

    #[test]
    fn a_hole_in_a_launched_graph_is_work_that_was_not_recorded() {
        let found = found(&DroppedRecords, HOLE);
        assert_eq!(
            found[0].title,
            "GPU activity missing for 70 % of the step: launched work does not start although the GPU shows no work"
        );
        assert_eq!(found[0].evidence[0].text, "GPU busy at least 20 % of the time, at most 90 %");
        assert!(found[0].actions[0].contains("graphs") && found[0].evidence[1].start == Some(1_000_000));
        // The host is in no doubt then: it is no rule's business what it did meanwhile.
        silent(&crate::rules::launch::host_wait::HostWait, HOLE);
        let launched_late = HOLE.replace("memset 8ms", "api cudaLaunchKernel 7990us..7999us\n memset 8ms");
        silent(&DroppedRecords, &launched_late);
    }

    #[test]
    fn work_that_waits_for_another_device_is_not_missing() {
        let text = "track main\n step r 0..10ms\n stream 7 device 0\n api cudaLaunchKernel 0..10us\n kernel a 20us..1ms\n \
            api cudaLaunchKernel 20us..30us\n kernel b 1001us..5ms\n stream 7 device 1\n api cudaLaunchKernel 40us..50us\n \
            kernel c 5010us..9ms\n api cudaDeviceSynchronize 60us..9010us";
        silent(&DroppedRecords, text);
        // The devices set the pace, one after the other.
        let waits = &found(&crate::rules::host::waits_in_step::WaitsInStep, text)[0];
        assert!(waits.actions[0].starts_with("Reduce the GPU work: the GPU is the bottleneck"), "{:?}", waits.actions);
        // The other device is done long before.
        assert_eq!(found(&DroppedRecords, &text.replace("1001us..5ms", "1001us..2ms")).len(), 1);
    }

    #[test]
    fn silent_when_nothing_was_lost() {
        silent(&DroppedRecords, "track main\n step r 0..1s\n loss scopes 0 overwritten");
    }
}
