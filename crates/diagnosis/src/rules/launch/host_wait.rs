//! `host-wait`: between two pieces of a step's work the GPU waits for the host, which does something else than launching.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::measures::gap::{self, GapWords};
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::idle::pace::USUAL_NS;
use analysis::idle::{Cause, Measure, Zone};
use analysis::phrase;
use analysis::stats::share::Share;

pub const CODE: RuleCode = RuleCode::new("host-wait");

pub struct HostWait;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.05, Unit::Share, "a twentieth of a step is worth an hour of work");
const MIN_GAP: Threshold = Threshold::new(
    CODE,
    "min_gap",
    USUAL_NS as f64,
    Unit::Nanoseconds,
    "between two launches: shorter ones are launch overhead",
);

impl Rule for HostWait {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MIN_GAP]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "In the middle of a step the GPU is idle for {min_share} of the step or more because the CPU runs other code.",
            why: "A gap of more than {min_gap} (and of more than four launches) between two GPU operations of a step, while the launching thread runs Python or native code, is not launch overhead: the CPU does something the GPU has to wait for. Samples and recorded calls show what. The cost of a synchronisation before it is not counted here. Where the CPU has not waited for the GPU in the step before, its code cannot need the GPU's results, and the next work can be launched first; where it has, the code may decide what is launched next: the advice says so and is half as sure. The gain is at most all of this time, and at least the part of the one line that is named.",
            needs: "GPU operations, and stack samples or recorded calls.",
            example: "GPU idle 34 % of the step between kernels: CPU mostly in sample_tokens (engine.py:88)",
        }
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Cpu)
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit { what: "move the CPU work out of the step, or overlap it with GPU work", whatif: None })
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = gap::unseen(case, case.threshold(MIN_SHARE)) {
            return Verdict::Abstain(reason);
        }
        let Some(gap) = gap::most(case, Measure::HostGap).filter(|gap| gap.share.mid >= case.threshold(MIN_SHARE))
        else {
            return Verdict::Silent;
        };
        let runs = |zone: Zone, cause: Cause| zone == Zone::Middle && matches!(cause, Cause::Python | Cause::Native);
        let (place, part) = gap.top(case, runs).unwrap_or_default();
        let gain = Share { low: gap.share.low * part, ..gap.share };
        let most =
            if place.function.is_some() { format!("mostly in {}", phrase::place(&place)) } else { "busy".to_owned() };
        let title =
            format!("GPU idle {} of {} between kernels: CPU {most}", phrase::percent(gap.share.mid), case.the_step());
        let words = GapWords {
            title,
            place,
            evidence: gap.evidence(case, "CPU runs other code, nothing is launched"),
            actions: vec![
                Action::new("Launch the next GPU work before this code runs, or move it to another process.")
                    .needs([gap.runs_without_results(case)]),
                "Do it on the GPU, for the whole batch at once.".into(),
                "Prepare the next step while this one runs: a queue of one step is enough.".into(),
            ],
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
        repeat 40 every 50ms
          step request 0..40ms
          api cudaLaunchKernel 0..10us
          stream 7
          kernel prefill 10us..15ms
          samples 1ms..25ms every 1ms active gil main>serve>choose@engine.py:88
          samples 25ms..40ms every 1ms active gil main>serve>forward@model.py:3
          api cudaLaunchKernel 25ms..25.01ms
          kernel decode 25.01ms..40ms
        end";

    #[test]
    fn names_the_line_that_keeps_the_gpu_waiting() {
        let found = found(&HostWait, STEPS);
        assert_eq!(found[0].title, "GPU idle 25 % of the step between kernels: CPU mostly in choose (engine.py:88)");
        assert!(found[0].gain.unwrap().mid > 24.0 && found[0].actions.len() >= 2);
        assert!(found[0].evidence[1].track.is_some());
    }

    /// Code that runs after the CPU has waited for a result may need it.
    #[test]
    fn code_before_any_wait_needs_no_result() {
        let of = |text: &str| found(&HostWait, text)[0].actions[0].applies();
        assert_eq!(of(STEPS), 1.0);
        assert_eq!(of(&STEPS.replace("kernel prefill", "api cudaStreamSynchronize 12us..13us\n kernel prefill")), 0.5);
    }

    #[test]
    fn silent_when_the_gpu_is_busy_meanwhile_and_without_one() {
        silent(&HostWait, &STEPS.replace("10us..15ms", "10us..24.9ms"));
        silent(&HostWait, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_when_nothing_was_seen_of_the_host() {
        let unseen: String =
            STEPS.lines().filter(|line| !line.contains("samples")).map(|line| format!("{line}\n")).collect();
        abstains(&HostWait, &unseen, "no call or sample");
    }
}
