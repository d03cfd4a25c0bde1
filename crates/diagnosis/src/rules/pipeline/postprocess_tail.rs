//! `postprocess-tail`: after the last work of a step the host goes on, and the GPU has nothing to do.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::measures::gap::{self, GapWords};
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::idle::{Cause, Measure, Zone};
use analysis::phrase;
use analysis::stats::share::Share;
use analysis::steps::StepSource;

pub const CODE: RuleCode = RuleCode::new("postprocess-tail");

pub struct PostprocessTail;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.10,
    Unit::Share,
    "every step has to hand over its result; a tenth is more than that",
);

impl Rule for PostprocessTail {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The CPU goes on for {min_share} of the step or more after the GPU has finished its last work.",
            why: "Decoding tokens, drawing boxes or writing a response after the last kernel belongs to the step, and the GPU waits for the next one. Counted is the time the step's thread runs. The gain is at most all of it, and at least the line that is named.",
            needs: "Steps, GPU operations, and stack samples or recorded calls.",
            example: "GPU idle 31 % of the step after last kernel: CPU mostly in draw_boxes (vision.py:80)",
        }
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Cpu)
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit { what: "hand results to another thread and start the next step", whatif: None })
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.steps.source == StepSource::Whole && case.gpu().is_some() {
            return Verdict::Abstain("no steps, so there is no end of a step".into());
        }
        if let Some(reason) = gap::unseen(case, case.threshold(MIN_SHARE)) {
            return Verdict::Abstain(reason);
        }
        let Some(gap) = gap::most(case, Measure::Tail).filter(|gap| gap.share.mid >= case.threshold(MIN_SHARE)) else {
            return Verdict::Silent;
        };
        let runs = |zone: Zone, cause: Cause| zone == Zone::Tail && matches!(cause, Cause::Python | Cause::Native);
        let (place, part) = gap.top(case, runs).unwrap_or_default();
        let most =
            if place.function.is_some() { format!("mostly in {}", phrase::place(&place)) } else { "busy".to_owned() };
        let title =
            format!("GPU idle {} of {} after last kernel: CPU {most}", phrase::percent(gap.share.mid), case.the_step());
        let gain = Share { low: gap.share.low * part, ..gap.share };
        let words = GapWords {
            title,
            place,
            evidence: gap.evidence(case, "CPU runs after the last GPU work of the step"),
            actions: Action::all([
                "Start the next request first, then finish this one: hand the result to another thread or process.",
                "Do it on the GPU before the copy to the host, and copy less.",
            ]),
        };
        gap.finding(case, CODE, gap.gain(case, gain), words).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const STEPS: &str = "
        track main
        repeat 30 every 100ms
          step request 0..90ms
          api cudaLaunchKernel 0..10us
          stream 7
          kernel forward 10us..60ms
          api cudaStreamSynchronize 20us..60ms
          samples 0..60ms every 2ms active gil main>serve>forward@model.py:3
          samples 60ms..90ms every 2ms active gil main>serve>draw_boxes@vision.py:80
        end";

    #[test]
    fn names_the_line_that_goes_on() {
        let found = found(&PostprocessTail, STEPS);
        assert_eq!(
            found[0].title,
            "GPU idle 33 % of the step after last kernel: CPU mostly in draw_boxes (vision.py:80)"
        );
    }

    #[test]
    fn silent_when_the_step_ends_with_its_work_and_without_a_gpu() {
        silent(&PostprocessTail, &STEPS.replace("10us..60ms", "10us..89ms"));
        silent(&PostprocessTail, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    /// The next step's work is on the GPU already: nothing is lost.
    #[test]
    fn silent_when_the_next_work_is_there() {
        silent(
            &PostprocessTail,
            &STEPS.replace("end", "api cudaLaunchKernel 30us..31us\n kernel next 60ms..100ms\n end"),
        );
    }

    #[test]
    fn abstains_without_steps() {
        abstains(&PostprocessTail, "end 1s\n track main\n stream 7\n kernel k 0..1us corr 0", "no steps");
    }
}
