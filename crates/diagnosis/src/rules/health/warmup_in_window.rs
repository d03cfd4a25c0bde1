//! `warmup-in-window`: the first steps were slow as only first ones are, and are left out of every number.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::again;
use analysis::steps::{Step, StepSource, steady};

pub const CODE: RuleCode = RuleCode::new("warmup-in-window");

pub struct WarmupInWindow;

/// Which steps are warm-up is decided with the steps, for every figure alike: here are its levels for the documentation.
const MIN_STEPS: Threshold = Threshold::new(
    CODE,
    "min_steps",
    steady::MIN_STEPS as f64,
    Unit::Count,
    "with fewer steps there is no telling what is usual",
);
const MIN_RATIO: Threshold = Threshold::new(
    CODE,
    "min_ratio",
    steady::NOTICEABLE,
    Unit::Times,
    "slower than usual by less is what any program does",
);
const MIN_DEVIATIONS: Threshold =
    Threshold::new(CODE, "min_deviations", steady::MIN_DEVIATIONS, Unit::Times, "chance hardly ever goes so far");
const MAX_SHARE: Threshold = Threshold::new(
    CODE,
    "max_share",
    1.0 / steady::MAX_PART as f64,
    Unit::Share,
    "what lasts longer is how the program is",
);

impl Rule for WarmupInWindow {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MIN_STEPS, MIN_RATIO, MIN_DEVIATIONS, MAX_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The first steps of a process were much slower than the rest, and are excluded as warm-up.",
            why: "Imports, caches, compilation and first touches of memory make first steps slow. Those that exceed the second half of the recording by {min_deviations} times its typical deviation, and take {min_ratio} times its median or more, are warm-up: at most {max_share} of all. They stay on the timeline and are part of no number.",
            needs: "At least {min_steps} steps of one process.",
            example: "First 3 of 160 steps excluded as warm-up (slowest 412 ms, typical 41.2 ms)",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.steps.source == StepSource::Whole || case.steps.steps.len() < steady::MIN_STEPS {
            return Verdict::Abstain(format!("fewer than {} steps: warm-up cannot be identified", steady::MIN_STEPS));
        }
        let warm = || case.steps.steps.iter().filter(|step| step.warmup);
        let Some(slowest) = warm().max_by_key(|step| step.dur()) else { return Verdict::Silent };
        let evidence = |step: &Step| {
            let text = format!("step {} took {}", step.index + 1, phrase::duration(step.dur()));
            Evidence::at(text, Some(step.track), step.start, step.end).number("ns", step.dur() as f64)
        };
        let (count, all) = (case.steps.warmups() as u64, phrase::count(case.steps.steps.len() as u64));
        let finding = Finding {
            code: CODE,
            title: format!(
                "First {} excluded as warm-up (slowest {}, typical {})",
                match count {
                    1 => format!("of {all} steps"),
                    _ => format!("{} of {all} steps", phrase::count(count)),
                },
                phrase::duration(slowest.dur()),
                phrase::duration(case.steps.p50())
            ),
            place: Place::default(),
            gain: None,
            severity: Severity::Info,
            // The next one after so many that were not slow is not slow with this chance.
            certainty: Certainty::seen(again(case.steps.count())),
            evidence: warm().take(5).map(evidence).collect(),
            actions: vec![
                "Send a few requests of every shape before the service takes traffic.".into(),
                "To compare two recordings, compare their steady steps, as this report does.".into(),
            ],
            verify: "Record with a warm-up before the first step: this finding should disappear.".into(),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    #[test]
    fn slow_first_steps_are_left_out() {
        let found = found(
            &WarmupInWindow,
            "track main\n step r 0..400ms\n step r 400ms..700ms\n repeat 30 every 50ms\n step r 1s..1.04s\n end",
        );
        assert_eq!(found[0].title, "First 2 of 32 steps excluded as warm-up (slowest 400 ms, typical 40.0 ms)");
        assert_eq!(found[0].evidence[0].start, Some(0));
    }

    #[test]
    fn silent_when_the_first_are_like_the_rest() {
        silent(&WarmupInWindow, "track main\n repeat 30 every 50ms\n step r 0..40ms\n end");
    }

    #[test]
    fn abstains_with_few_steps() {
        abstains(&WarmupInWindow, "track main\n repeat 3 every 50ms\n step r 0..40ms\n end", "fewer than 8");
    }
}
