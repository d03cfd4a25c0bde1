//! `logits-to-host-each-step`: a large result is copied to the host in the middle of a step, and the GPU is idle after it.

use crate::bottleneck_kind::BottleneckKind;
use crate::measures::gap;
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::copies::{copies_exposed, pageable_async_copy};
use crate::rules::host::{hot_line, waits_in_step};
use crate::rules::launch::host_wait;
use crate::threshold::{Threshold, Unit};
use analysis::idle::{Measure, Wait};
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("logits-to-host-each-step");

pub struct LogitsToHost;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "less of the step is not worth changing code for");

impl Rule for LogitsToHost {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "A result of more than 64 KiB is copied to the host in the middle of a step, and the GPU is idle for {min_share} of the step or more after it.",
            why: "A CPU that waits for the GPU in the middle of a step starts launching again only when the GPU has run dry. The idle time after it counts, up to the length of the wait: without the wait the CPU would have been ahead by that much. Logits are the usual case: the CPU takes all of them to choose one token. The rule looks for a copy of more than 64 KiB to the host directly before the wait.",
            needs: "GPU operations with their launch calls (`--gpu-detail launch`); stack samples for the line.",
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
        let actions = [
            "Sample on the GPU and copy only the chosen tokens: logits.argmax(-1), or torch.multinomial on the GPU.",
            "Copy into pinned memory with non_blocking=True, and launch the next work before reading it.",
        ];
        gap::after_a_wait(
            case,
            MIN_SHARE,
            (Measure::ResultToHost, Wait::Result),
            |_, bytes| match bytes {
                0 => "waits for a large result to be copied back".to_owned(),
                bytes => format!("waits for {} to be copied back", phrase::bytes(bytes)),
            },
            &actions,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

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
    fn silent_when_the_gpu_has_work_meanwhile_and_without_a_gpu() {
        silent(
            &LogitsToHost,
            &STEPS
                .replace("kernel forward 5.01ms..8ms", "kernel forward 3.05ms..8ms")
                .replace("5ms..5.01ms", "11us..12us"),
        );
        silent(&LogitsToHost, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    /// The wait for the result at the end of a step is no fault.
    #[test]
    fn silent_when_only_the_end_of_the_step_waits() {
        silent(&LogitsToHost, &STEPS.replace("step token 0..8ms", "step token 0..3.05ms"));
    }

    #[test]
    fn abstains_without_launches() {
        abstains(
            &LogitsToHost,
            "track main\n step r 0..1ms\n stream 7\n kernel k 0..1us corr 0",
            "launch calls not recorded",
        );
    }
}
