//! `logits-to-host-each-step`: a large result is copied to the host in the middle of a step, and the GPU is idle after it.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::measures::gap;
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::copies::{copies_exposed, pageable_async_copy};
use crate::rules::host::{hot_line, waits_in_step};
use crate::rules::launch::host_wait;
use crate::threshold::{Threshold, Unit};
use analysis::device::to_host::SMALL_BYTES;
use analysis::idle::{Measure, Wait};
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("logits-to-host-each-step");

pub struct LogitsToHost;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "less of the step is not worth changing code for");

const SMALL_COPY: Threshold = Threshold::new(
    CODE,
    "small_bytes",
    SMALL_BYTES as f64,
    Unit::Bytes,
    "up to there a copy takes as long as it takes to start",
);

impl Rule for LogitsToHost {
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
            summary: "A result of more than {small_bytes} is copied to the host in the middle of a step, and the GPU is idle for {min_share} of the step or more after it.",
            why: gap::why_a_wait_costs!(
                "Logits are the usual case: the CPU takes all of them to choose one token. The rule looks for a copy of more than {small_bytes} to the host directly before the wait."
            ),
            needs: gap::NEEDS_WAITS,
            example: "GPU idle 22 % of the step: the CPU waits for 32.0 MiB to be copied back, at sample (engine.py:41)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[pageable_async_copy::CODE, copies_exposed::CODE, host_wait::CODE, hot_line::CODE, waits_in_step::CODE]
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Sync)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Sample on the GPU and copy only the chosen elements: let a kernel find the maximum or draw the sample.",
            "Copy into pinned memory with cudaMemcpyAsync, and launch the next work before reading it.",
        ]
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit { what: "sample on the GPU and copy only the chosen tokens", whatif: Some("remove copy:d2h") })
    }

    fn look(&self, case: &Case) -> Verdict {
        let actions = vec![
            Action::torch(
                "Sample on the GPU and copy only the chosen tokens: logits.argmax(-1), or torch.multinomial on the GPU.",
            ),
            Action::torch(
                "Copy into pinned memory with non_blocking=True, and launch the next work before reading it.",
            ),
        ];
        gap::after_a_wait(
            case,
            MIN_SHARE,
            (Measure::ResultToHost, Wait::Result),
            |_, bytes| match bytes {
                0 => "waits for a large result to be copied back".to_owned(),
                bytes => format!("waits for {} to be copied back", phrase::bytes(bytes)),
            },
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
          copy d2h 3ms..3.1ms 8000000 pageable
          api cudaStreamSynchronize 31us..3.12ms
          samples 50us..3ms every 500us active gil main>decode@engine.py:41
          samples 3.1ms..5ms every 500us active gil main>decode@engine.py:44
          api cudaLaunchKernel 5ms..5.01ms
          kernel forward 5.01ms..8ms
        end";

    #[test]
    fn a_large_result_is_named_with_its_line() {
        let found = found(&LogitsToHost, STEPS);
        assert_eq!(
            found[0].title,
            "GPU idle 24 % of the step: the CPU waits for 7.63 MiB to be copied back, at engine.py:41"
        );
    }

    #[test]
    fn a_value_is_for_another_rule() {
        silent(&LogitsToHost, &STEPS.replace("8000000", "8"));
    }

    #[test]
    fn only_a_wait_in_the_middle_of_a_step_that_starves_the_gpu_counts() {
        crate::testing::waits_that_cost_nothing(&LogitsToHost, STEPS);
    }
}
