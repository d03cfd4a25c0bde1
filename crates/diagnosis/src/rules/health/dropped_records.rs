//! `dropped-records`: part of what happened is not in the trace. The recorder counted what it lost, or holes in a device's work show it.

pub mod device;

use crate::finding::{Evidence, Finding, Severity};
use crate::losses::{COLLECTORS, LossTotal, is_torn, totals, worst_share};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use analysis::place::Place;
use timeline::{LossReason, Timeline};

pub const CODE: RuleCode = RuleCode::new("dropped-records");

pub struct DroppedRecords;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "device work that is missing for less than a twentieth of the step changes no verdict",
);

impl Rule for DroppedRecords {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Records were lost while recording, so counts and totals are too low, or device work is missing for {min_share} of the step or more.",
            why: "Every loss is counted where it happens: records overwritten in a full ring, samples that came too late, stacks \
                  that changed while they were read. Samples that came too late make shares less sure, not wrong; stacks that changed make code that calls much \
                  look cheaper than it is; lost scopes and steps are \
                  missing from every count. What was never recorded shows as a hole: work is launched, nothing that was recorded runs \
                  before it on its device, and yet it begins 100 µs later or more. Other tools leave out nodes of CUDA graphs, and what was launched before \
                  they began. A stream that waits for the host looks the same; work that may wait for another device of the recording, at work meanwhile, is not \
                  counted. The device may have worked all that time: its busy share is the least that it can be.",
            needs: "Nothing: a trace always says what it lost. Holes: GPU work with the calls that launch it.",
            example: "Lost: 12,004 records overwritten before they could be written to disk (scopes)",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let losses = totals(case.timeline);
        let lost: u64 = losses.iter().map(|loss| loss.count).fold(0, u64::saturating_add);
        let device = device::finding(case);
        let Some(worst) = losses.first() else { return device.map_or(Verdict::Silent, Verdict::from) };
        let share = worst_share(case.timeline, &losses);
        let evidence = losses.iter().map(|loss| {
            let evidence = Evidence::said(loss.said()).number("count", loss.count as f64);
            Evidence { start: Some(loss.first), end: Some(loss.last), ..evidence }
        });
        let finding = Finding {
            code: CODE,
            title: match losses.len() {
                1 => format!("Lost: {}", worst.said()),
                _ => format!("{} things were lost, most of them: {}", phrase::count(lost), worst.said()),
            },
            place: Place::default(),
            gain: None,
            severity: if share >= 0.01 { Severity::Medium } else { Severity::Info },
            confidence: 1.0, // Counted, not estimated.
            evidence: evidence.take(8).collect(),
            actions: actions(case.timeline, &losses),
            verify: "Record again: the health box should say that nothing was lost.".into(),
        };
        Verdict::Found([finding].into_iter().chain(device).collect())
    }
}

/// What helps depends on where it was lost: samples are taken from outside, everything else goes through a ring.
fn actions(timeline: &Timeline, losses: &[LossTotal]) -> Vec<String> {
    let mut actions: Vec<&str> = Vec::new();
    let of_device = |loss: &LossTotal| COLLECTORS.contains(&loss.collector.as_str());
    if losses.iter().any(of_device) {
        actions.push("Record the device in less detail: inferscope run --gpu-detail kernel -- ...");
        actions.push("Record windows of steps only: inferscope run --overhead-budget 2% -- ...");
    }
    if losses.iter().any(|loss| loss.collector != "stacks" && !of_device(loss)) {
        actions.push("More room in the rings: inferscope run --trace-size-mb 400 -- ...");
        actions.push("Record less: --min-us 100 with --calls, or --include only what matters.");
    }
    let (settings, mut stacks) = (&timeline.info.settings, losses.iter().filter(|loss| loss.collector == "stacks"));
    // Of stacks, what was lost most: another cause beside it changes little.
    match stacks.next() {
        Some(most) if is_torn(most) && settings.calls == Some(true) => {
            actions.push("Code that calls and returns all the time cannot always be read without stopping it: go by its recorded calls, of which none is lost so.");
        }
        Some(most) if most.reason == LossReason::SamplesNotWritten => {
            actions.push("Write the trace to a disk that keeps up: inferscope run --output DIR -- ...");
        }
        Some(most) if is_torn(most) => {
            actions.push("Code that calls and returns all the time cannot always be read without stopping it: inferscope run --calls -- ... records its calls.");
        }
        Some(_) => {
            actions.push("Leave the sampler a core: no samples come while every core is busy with the program itself, or with others.");
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
            "12,005 things were lost, most of them: 12,004 records overwritten before they could be written to disk (scopes)"
        );
        assert_eq!((found[0].severity, found[0].evidence.len()), (Severity::Medium, 2));
    }

    #[test]
    fn one_is_not_told_as_many() {
        let title =
            |loss: &str| found(&DroppedRecords, &format!("track main\n step r 0..1s\n loss {loss}"))[0].title.clone();
        let torn = "stack samples unreadable: the stack changed while it was read";
        assert_eq!(
            title("stacks 1 stack-changed"),
            "Lost: 1 stack sample unreadable: the stack changed while it was read (stacks)"
        );
        assert_eq!(title("stacks 2 stack-changed"), format!("Lost: 2 {torn} (stacks)"));
        let waiting = title("stacks 1 samples-not-written");
        assert_eq!(waiting, "Lost: 1 stack sample dropped: the disk did not accept it (stacks)");
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
            found(&DroppedRecords, &text)[0].actions.join(" ")
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
            "In 70 % of the step launched work does not begin while the GPU shows nothing: what it did is not in the recording, or it waits for something that is not"
        );
        assert_eq!(
            found[0].evidence[0].text,
            "the GPU is at work in 20 % of the time at the least, and in 90 % at the most"
        );
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
        assert!(waits.actions[0].starts_with("The device sets the pace"), "{:?}", waits.actions);
        // The other device is done long before.
        assert_eq!(found(&DroppedRecords, &text.replace("1001us..5ms", "1001us..2ms")).len(), 1);
    }

    #[test]
    fn silent_when_nothing_was_lost() {
        silent(&DroppedRecords, "track main\n step r 0..1s\n loss scopes 0 overwritten");
    }
}
