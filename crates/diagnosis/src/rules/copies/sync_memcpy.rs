//! `sync-memcpy`: a copy that is not asynchronous makes the host wait in the middle of a step.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::measures::gap;
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::copies::copies_exposed;
use crate::threshold::{Threshold, Unit};
use analysis::idle::{Measure, Wait};

pub const CODE: RuleCode = RuleCode::new("sync-memcpy");

pub struct SyncMemcpy;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "less of the step is not worth changing code for");

impl Rule for SyncMemcpy {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "A synchronous copy in the middle of a step blocks the CPU, and the GPU is idle for {min_share} of the step or more after it.",
            why: gap::why_a_wait_costs!(
                "`cudaMemcpy` and its variants wait for everything in the stream before them and for the copy itself."
            ),
            needs: gap::NEEDS_WAITS,
            example: "GPU idle 22 % of the step: the CPU blocks in cudaMemcpy, at decode (engine.py:41)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[copies_exposed::CODE]
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Sync)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Copy asynchronously: cudaMemcpyAsync in a stream, from and to pinned memory (cudaHostAlloc).",
            "Create data on the GPU that uses it, instead of copying it there.",
        ]
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit {
            what: "copy with non_blocking=True from and to pinned memory, and wait once",
            whatif: Some("remove api:cudaMemcpy*"),
        })
    }

    fn look(&self, case: &Case) -> Verdict {
        let actions = vec![
            Action::torch(
                "Copy asynchronously: tensor.to(device, non_blocking=True) from pinned memory; in C++ cudaMemcpyAsync with a stream.",
            ),
            Action::torch(
                "Create tensors on the GPU: torch.zeros(n, device=\"cuda\") instead of torch.zeros(n).cuda().",
            ),
        ];
        gap::after_a_wait(
            case,
            MIN_SHARE,
            (Measure::SyncMemcpy, Wait::Memcpy),
            |call, _| format!("blocks in {call}"),
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
          api cudaMemcpy 20us..3.02ms
          copy d2h 3ms..3.01ms 4096 pageable
          samples 50us..3ms every 500us active gil main>decode@engine.py:41
          samples 3.1ms..5ms every 500us active gil main>decode@engine.py:44
          api cudaLaunchKernel 5ms..5.01ms
          kernel forward 5.01ms..8ms
        end";

    #[test]
    fn a_copy_that_waits_is_named_with_its_line() {
        let found = found(&SyncMemcpy, STEPS);
        assert_eq!(found[0].title, "GPU idle 25 % of the step: the CPU blocks in cudaMemcpy, at engine.py:41");
    }

    #[test]
    fn an_asynchronous_copy_is_for_other_rules() {
        silent(&SyncMemcpy, &STEPS.replace("cudaMemcpy ", "cudaMemcpyAsync "));
    }

    #[test]
    fn only_a_wait_in_the_middle_of_a_step_that_starves_the_gpu_counts() {
        crate::testing::waits_that_cost_nothing(&SyncMemcpy, STEPS);
    }
}
