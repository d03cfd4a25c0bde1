//! `preprocess-before-first-kernel`: a step begins with work of the host, and the GPU has nothing to do until it is over.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::measures::ahead;
use crate::measures::gap::{self, GapWords};
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::idle::{Cause, Measure, Zone};
use analysis::phrase;
use analysis::stats::share::Share;
use analysis::steps::StepSource;
use timeline::cuda_calls::CudaCall;

pub const CODE: RuleCode = RuleCode::new("preprocess-before-first-kernel");

pub struct PreprocessBeforeFirstKernel;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.10,
    Unit::Share,
    "every step has to prepare something; a tenth is more than that",
);

impl Rule for PreprocessBeforeFirstKernel {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The CPU prepares for {min_share} of the step or more before the GPU gets its first work.",
            why: "A step begins with the first CPU work, not with the first kernel: while the CPU tokenises, decodes images or pads, the GPU is idle. Tools that count from kernel to kernel do not show it. Counted is the time the CPU runs; the gain is at most all of it (prepared for the next step while this one runs), and at least the line that is named. Preparing ahead needs a next request and a second core: steps that mostly follow each other at once show the first, the machine's cores the second; where that is not shown, it is said with the advice, which then comes second.",
            needs: "Steps, GPU operations, and stack samples or recorded calls.",
            example: "GPU idle 58 % of the step before first kernel: CPU mostly in preprocess (vision.py:44)",
        }
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Cpu)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Do it on the GPU: nvJPEG for images, kernels for the rest."]
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit { what: "prepare the next batch in another thread or process", whatif: None })
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.steps.source == StepSource::Whole && case.gpu().is_some() {
            return Verdict::Abstain("no steps, so there is no start of a step".into());
        }
        if let Some(reason) = gap::unseen(case, case.threshold(MIN_SHARE)) {
            return Verdict::Abstain(reason);
        }
        let Some(gap) = gap::most(case, Measure::Lead).filter(|gap| gap.share.mid >= case.threshold(MIN_SHARE)) else {
            return Verdict::Silent;
        };
        let runs = |zone: Zone, cause: Cause| zone == Zone::Lead && matches!(cause, Cause::Python | Cause::Native);
        let (place, part) = gap.top(case, runs).unwrap_or_default();
        let most =
            if place.function.is_some() { format!("mostly in {}", phrase::place(&place)) } else { "busy".to_owned() };
        let title = format!(
            "GPU idle {} of {} before first kernel: CPU {most}",
            phrase::percent(gap.share.mid),
            case.the_step()
        );
        let gain = Share { low: gap.share.low * part, ..gap.share };
        // An operator or a call of the driver's is no preprocessing of an input.
        let operator = place.file.is_none()
            && place.function.as_deref().is_some_and(|name| name.contains("::") || CudaCall::of(name).is_runtime());
        let ahead = Action::new("Prepare the next request while the GPU works on this one: in another process or thread, with a queue in between.")
            .needs([ahead::next_is_there(case), ahead::second_core(case)]);
        let instead = match operator {
            true => {
                "Check whether later steps do it too: a first call allocates memory, loads code or creates a context, and belongs before the first request."
            }
            false => {
                "Do it on the GPU: torchvision.transforms.v2 on CUDA tensors, nvJPEG for images, a fast tokenizer for text."
            }
        };
        let instead = match operator {
            true => instead.into(),
            false => Action::torch(instead),
        };
        // What may not apply does not come first.
        let [first, second] = if ahead.applies() < 1.0 { [instead, ahead] } else { [ahead, instead] };
        let keep = "Cache what does not change between requests: compiled patterns, prompt prefixes, buffers.";
        let words = GapWords {
            title,
            place,
            evidence: gap.evidence(case, "CPU runs before the first GPU work of the step"),
            actions: vec![first, second, keep.into()],
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
        repeat 30 every 400ms
          step request 0..370ms
          samples 0..218ms every 5ms active gil main>serve>preprocess@vision.py:44
          samples 220ms..370ms every 5ms active gil main>serve>forward@model.py:3
          api cudaLaunchKernel 218ms..218.1ms
          stream 7
          kernel forward 218.2ms..369ms
          api cudaStreamSynchronize 219ms..369ms
        end";

    #[test]
    fn an_operator_is_not_sent_to_a_tokenizer() {
        let text = "track main\n step r 0..10ms\n ccall aten::empty 0..8ms\n api cudaLaunchKernel 8ms..8.01ms\n stream 7\n kernel k 8.02ms..9.9ms";
        let said = |text: &str| {
            let found = found(&PreprocessBeforeFirstKernel, text);
            found[0].actions.iter().map(ToString::to_string).collect::<String>()
        };
        assert!(said(text).contains("later steps") && !said(text).contains("tokenizer"));
        assert!(said(STEPS).contains("tokenizer"));
    }

    /// As on a public H100 recording: 218 ms of image processing before the first kernel.
    #[test]
    fn names_the_line_that_prepares() {
        let found = found(&PreprocessBeforeFirstKernel, STEPS);
        assert_eq!(
            found[0].title,
            "GPU idle 59 % of the step before first kernel: CPU mostly in preprocess (vision.py:44)"
        );
        let gain = found[0].gain.unwrap();
        assert!(gain.mid > 58.0 && gain.low > 55.0, "{gain:?}");
        assert!(found[0].actions[0].starts_with("Prepare the next request"));
    }

    /// Requests that come now and then: no next one is there to be prepared.
    #[test]
    fn preparing_ahead_needs_a_next_request() {
        let found = found(&PreprocessBeforeFirstKernel, &STEPS.replace("every 400ms", "every 900ms"));
        assert!(found[0].actions[0].starts_with("Do it on the GPU") && found[0].actions[0].applies() == 1.0);
        assert_eq!(
            found[0].actions[1].unknown().collect::<Vec<_>>(),
            ["the next request is there while this one runs"]
        );
    }

    #[test]
    fn silent_when_work_is_there_at_once_and_without_a_gpu() {
        silent(
            &PreprocessBeforeFirstKernel,
            &STEPS.replace("218ms..218.1ms", "1ms..1.1ms").replace("218.2ms..369ms", "2ms..369ms"),
        );
        silent(
            &PreprocessBeforeFirstKernel,
            "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5",
        );
    }

    #[test]
    fn abstains_without_steps_and_when_nothing_was_seen() {
        let no_steps: String =
            STEPS.lines().filter(|line| !line.contains("step ")).map(|line| format!("{line}\n")).collect();
        // Two are too few for their kernels to be told as steps.
        let no_steps = no_steps.replace("repeat 30", "repeat 2");
        abstains(&PreprocessBeforeFirstKernel, &no_steps, "no steps");
        let unseen: String =
            STEPS.lines().filter(|line| !line.contains("samples")).map(|line| format!("{line}\n")).collect();
        abstains(&PreprocessBeforeFirstKernel, &unseen, "no call or sample");
    }
}
