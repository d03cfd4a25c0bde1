//! `implicit-sync`: reading a small result makes the host wait in the middle of a step, and the GPU is idle after it.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::measures::{capture, gap};
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::{hot_line, waits_in_step};
use crate::rules::launch::{host_wait, launch_bound};
use crate::threshold::{Threshold, Unit};
use analysis::device::to_host::SMALL_BYTES;
use analysis::idle::{Measure, Wait};

pub const CODE: RuleCode = RuleCode::new("implicit-sync");

pub struct ImplicitSync;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "less of the step is not worth changing code for");

const SMALL_COPY: Threshold = Threshold::new(
    CODE,
    "small_bytes",
    SMALL_BYTES as f64,
    Unit::Bytes,
    "up to there a copy takes as long as it takes to start",
);

impl Rule for ImplicitSync {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[SMALL_COPY]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Reading a tensor value (`.item()`, `.cpu()`, `nonzero`, `if tensor:`) blocks the CPU, and the GPU is idle for {min_share} of the step or more after it.",
            why: gap::why_a_wait_costs!(
                "The rule looks for a copy of at most {small_bytes} to the host directly before the wait. The line comes from samples taken during the wait. Whether the program needs the value at once shows in what it launches afterwards: where most steps launch the same kernels as another step, nothing that was recorded depends on it; where they differ, the value may decide what comes next, and the advice says so and is half as sure."
            ),
            needs: gap::NEEDS_WAITS,
            example: "GPU idle 22 % of the step: the CPU reads a value back and waits, at decode (engine.py:41)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[launch_bound::CODE, host_wait::CODE, hot_line::CODE, waits_in_step::CODE]
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Sync)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Keep the value on the GPU: decide there, with a mask or inside the kernel.",
            "If the CPU needs it, read it one step later: cudaMemcpyAsync into pinned memory, and wait for its event then.",
        ]
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit {
            what: "keep the value on the GPU, or read it once after the loop instead of .item() in each step",
            whatif: Some("remove sync-api"),
        })
    }

    fn look(&self, case: &Case) -> Verdict {
        let free = capture::goes_on_alike(case);
        let actions = vec![
            Action::torch("Keep the value on the GPU: torch.where and masks instead of if, argmax without .item().")
                .needs([free.clone()]),
            Action::torch(
                "If the CPU needs it, read it one step later: copy with non_blocking=True into pinned memory and wait for its event then.",
            )
            .needs([free]),
            Action::torch("Find all such places: torch.cuda.set_sync_debug_mode(\"warn\")."),
        ];
        gap::after_a_wait(
            case,
            MIN_SHARE,
            (Measure::ImplicitSync, Wait::Implicit),
            |_, _| "reads a value back and waits".to_owned(),
            actions,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    const STEPS: &str = "
        track main
        repeat 30 every 10ms
          step token 0..8ms
          stream 7
          api cudaLaunchKernel 0..10us
          kernel forward 10us..3ms
          api cudaMemcpyAsync 20us..30us
          copy d2h 3ms..3.002ms 8 pageable
          api cudaStreamSynchronize 31us..3.02ms
          samples 50us..3ms every 500us active gil main>decode@engine.py:41
          samples 3.1ms..5ms every 500us active gil main>decode@engine.py:44
          api cudaLaunchKernel 5ms..5.01ms
          kernel forward 5.01ms..8ms
        end";

    #[test]
    fn the_line_that_reads_a_value_is_named() {
        let found = found(&ImplicitSync, STEPS);
        assert_eq!(found[0].title, "GPU idle 25 % of the step: the CPU reads a value back and waits, at engine.py:41");
        assert_eq!(found[0].place.api.as_deref(), Some("cudaStreamSynchronize"));
        assert!(found[0].evidence[0].text.contains("1 times per step"), "{}", found[0].evidence[0].text);
    }

    /// Into pageable memory the copy itself waits.
    #[test]
    fn a_copy_that_waits_by_itself_is_one_too() {
        let alone = STEPS.replace("20us..30us", "20us..3.02ms").replace("api cudaStreamSynchronize 31us..3.02ms", "");
        assert!(found(&ImplicitSync, &alone)[0].place.api.as_deref() == Some("cudaMemcpyAsync"));
    }

    #[test]
    fn a_wait_without_a_result_and_a_large_result_are_for_other_rules() {
        silent(&ImplicitSync, &STEPS.replace("copy d2h", "copy h2d"));
        silent(&ImplicitSync, &STEPS.replace(" 8 pageable", " 8000000 pageable"));
    }

    #[test]
    fn only_a_wait_in_the_middle_of_a_step_that_starves_the_gpu_counts() {
        crate::testing::waits_that_cost_nothing(&ImplicitSync, STEPS);
    }
}
