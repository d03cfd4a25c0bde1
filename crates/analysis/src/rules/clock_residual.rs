//! `clock-residual`: the clock's own error is not small beside what is measured with it.

use crate::finding::{Evidence, Finding, Place, Severity};
use crate::phrase;
use crate::rule::{Case, Rule, RuleDocs, Verdict};

pub struct ClockResidual;

/// An error of a hundredth of a step is one that a comparison of two recordings would show.
const LEVEL: f64 = 0.01;

impl Rule for ClockResidual {
    fn code(&self) -> &'static str {
        "clock-residual"
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The error bar of all times is 1 % of a step or more.",
            why: "Times are turned from ticks into nanoseconds by reading two clocks together again and again; what does not fit \
                  is the residual. Durations shorter than it mean nothing, and differences of that size between steps do not \
                  either.",
            needs: "A trace that says how its clock was read.",
            example: "times are good to 1.2 ms only, and a step takes 40.1 ms",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let (error, step) = (case.timeline.info.clock.residual_ns, case.steps.p50());
        if error == 0 && case.timeline.info.clock.source.is_empty() {
            return Verdict::Abstain("the trace does not say how far off its clock is".into());
        }
        if step == 0 || (error as f64) < LEVEL * step as f64 {
            return Verdict::Silent;
        }
        let finding = Finding {
            code: self.code(),
            title: format!("Times are good to {} only, and a step takes {}", phrase::duration(error), phrase::duration(step)),
            place: Place::default(),
            gain: None,
            severity: Severity::Low,
            confidence: 1.0, // Measured by the recorder.
            evidence: vec![Evidence::said("the residual of the clock's anchors").number("ns", error as f64)],
            actions: vec![
                "Do not compare durations that differ by less than this.".into(),
                "Record on a machine whose clock source is the time-stamp counter: cat /sys/devices/system/clocksource/clocksource0/current_clocksource".into(),
            ],
            verify: "Record again: the health box should show a smaller clock error.".into(),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    #[test]
    fn an_error_that_shows() {
        let found = found(&ClockResidual, "clock residual 1ms\n track main\n step r 0..40ms");
        assert_eq!(found[0].title, "Times are good to 1.00 ms only, and a step takes 40.0 ms");
    }

    #[test]
    fn silent_below_it_and_without_any_length() {
        silent(&ClockResidual, "clock residual 1us\n track main\n step r 0..40ms");
        silent(&ClockResidual, "clock residual 1us\n track main\n step r 0..0");
    }

    #[test]
    fn abstains_when_the_trace_does_not_say() {
        abstains(&ClockResidual, "track main\n step r 0..40ms", "does not say");
    }
}
