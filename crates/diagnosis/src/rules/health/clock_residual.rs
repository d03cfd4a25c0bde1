//! `clock-residual`: the clock's own error is not small beside what is measured with it.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::gpu_clock;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use analysis::place::Place;

pub const CODE: RuleCode = RuleCode::new("clock-residual");

pub struct ClockResidual;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.01,
    Unit::Share,
    "an error of a hundredth of a step would show in a comparison of two recordings",
);

impl Rule for ClockResidual {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The error bar of all timestamps, or of the GPU's, is {min_share} of a step or more.",
            why: "Ticks are converted to nanoseconds by reading two clocks together again and again; what does not fit is the residual. Durations shorter than it mean nothing, nor do differences of that size between steps. GPU timestamps are checked for causality: no work starts before the call that launched it, and no wait returns before the work it waited for has ended.",
            needs: "A trace that says how its clock was read.",
            example: "Timestamps are only accurate to 1.20 ms; a step takes 40.1 ms",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let (error, step) = (case.timeline.info.clock.residual_ns, case.steps.p50());
        if let Some(found) = self.of_device(case) {
            return found.into();
        }
        if error == 0 && case.timeline.info.clock.source.is_empty() {
            return Verdict::Abstain("the trace does not give its clock error".into());
        }
        if step == 0 || (error as f64) < case.threshold(MIN_SHARE) * step as f64 {
            return Verdict::Silent;
        }
        let finding = Finding {
            code: CODE,
            title: format!("Timestamps are only accurate to {}; a step takes {}", phrase::duration(error), phrase::duration(step)),
            place: Place::default(),
            gain: None,
            severity: Severity::Low,
            certainty: Certainty::seen(1.0), // Measured by the recorder.
            evidence: vec![Evidence::new("residual of the clock's anchors").number("ns", error as f64)],
            actions: vec![
                "Do not compare durations that differ by less than this.".into(),
                "Record on a machine whose clock source is the time-stamp counter: cat /sys/devices/system/clocksource/clocksource0/current_clocksource".into(),
            ],
            verify: "Record again: Data quality should show a smaller clock error.".into(),
        };
        finding.into()
    }
}

impl ClockResidual {
    /// Work that seems to start before its launch, or an error bar that is not small beside a step.
    fn of_device(&self, case: &Case) -> Option<Finding> {
        let (clock, step) = (&case.timeline.gpu.clock, case.steps.p50());
        let error = gpu_clock::error_bar(case).filter(|_| case.gpu().is_some())?;
        let wrong = gpu_clock::wrong(case);
        if wrong.is_none() && (step == 0 || (error as f64) < case.threshold(MIN_SHARE) * step as f64) {
            return None;
        }
        let severity = if wrong.is_some() { Severity::Medium } else { Severity::Low };
        let title = match wrong {
            None => format!(
                "GPU timestamps are only accurate to {}; a step takes {}",
                phrase::duration(error),
                phrase::duration(step)
            ),
            Some(wrong) => format!("{}: {}", wrong.by, wrong.seen),
        };
        let bound = |what: &str, ns: Option<i64>| ns.map(|ns| Evidence::new(what.to_owned()).number("ns", ns as f64));
        let evidence = [
            bound("shortest time from a launch call to its work", clock.shortest_launch_ns),
            bound("shortest time from the end of work to the return of the wait for it", clock.shortest_return_ns),
        ];
        Some(Finding {
            code: CODE,
            title,
            place: Place::default(),
            gain: None,
            severity,
            certainty: Certainty::seen(1.0), // Measured.
            evidence: evidence.into_iter().flatten().collect(),
            actions: vec![
                "Do not compare CPU and GPU times that differ by less than this; durations on the GPU are not affected.".into(),
                "Use the CUPTI that belongs to the program's CUDA: Data quality names the one in use, `inferscope doctor` lists all.".into(),
            ],
            verify: "Record again: Data quality should show a smaller GPU clock error.".into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    #[test]
    fn an_error_that_shows() {
        let found = found(&ClockResidual, "clock residual 1ms\n track main\n step r 0..40ms");
        assert_eq!(found[0].title, "Timestamps are only accurate to 1.00 ms; a step takes 40.0 ms");
    }

    #[test]
    fn silent_below_it_and_without_any_length() {
        silent(&ClockResidual, "clock residual 1us\n track main\n step r 0..40ms");
        silent(&ClockResidual, "clock residual 1us\n track main\n step r 0..0");
    }

    #[test]
    fn work_that_starts_before_its_call_is_said() {
        let text = "clock residual 1us\n track main\n step r 0..40ms\n api cudaLaunchKernel 1ms..2ms\n stream 7\n kernel k 900us..3ms";
        let found = found(&ClockResidual, text);
        assert_eq!(
            found[0].title,
            "GPU timestamps are too early by 100 µs at least: 1 of 1 GPU operation starts before the call that launched it"
        );
        silent(&ClockResidual, &text.replace("900us", "1100us"));
    }

    #[test]
    fn work_that_ends_after_the_wait_for_it_is_said() {
        let text = "clock residual 1us\n track main\n step r 0..40ms\n api cudaLaunchKernel 2300us..2400us\n stream 7\n kernel k 2500us..4ms
            api cudaStreamSynchronize 3ms..3900us\n sync stream 3ms..3900us";
        let found = found(&ClockResidual, text);
        assert!(
            found[0].title.starts_with("GPU timestamps are too late by 100 µs at least: 1 of 1 wait"),
            "{}",
            found[0].title
        );
        silent(&ClockResidual, &text.replace("..4ms", "..3800us"));
    }

    #[test]
    fn abstains_when_the_trace_does_not_say() {
        abstains(&ClockResidual, "track main\n step r 0..40ms", "does not give");
    }
}
