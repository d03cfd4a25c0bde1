//! `sync-api`: the host asks to wait for the GPU in the middle of a step, and the GPU is idle after it.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::measures::gap;
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::{hot_line, waits_in_step};
use crate::rules::launch::{host_wait, launch_bound};
use crate::threshold::{Threshold, Unit};
use analysis::idle::{Measure, Wait};

pub const CODE: RuleCode = RuleCode::new("sync-api");

pub struct SyncApi;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "less of the step is not worth changing code for");

impl Rule for SyncApi {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "An explicit synchronisation in the middle of a step blocks the CPU, and the GPU is idle for {min_share} of the step or more after it.",
            why: gap::why_a_wait_costs!(
                "This is an explicit wait: `torch.cuda.synchronize()`, a stream or an event that is waited for."
            ),
            needs: gap::NEEDS_WAITS,
            example: "GPU idle 22 % of the step: the CPU blocks in cudaDeviceSynchronize, at decode (engine.py:41)",
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
            "Remove cudaDeviceSynchronize and cudaStreamSynchronize from the step: a stream runs its work in order by itself.",
            "To measure, record cudaEvent_t and read them after the step; to order two streams, use cudaStreamWaitEvent.",
        ]
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit {
            what: "take the synchronize call out of the step, or wait for one event",
            whatif: Some("remove sync-api"),
        })
    }

    fn look(&self, case: &Case) -> Verdict {
        let actions = vec![
            Action::torch(
                "Remove torch.cuda.synchronize() from the step: PyTorch orders the work of a stream by itself.",
            ),
            Action::torch(
                "To measure, record torch.cuda.Event and read it after the step; to order two streams, use stream.wait_event(event).",
            ),
        ];
        gap::after_a_wait(
            case,
            MIN_SHARE,
            (Measure::SyncApi, Wait::Api),
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
          api cudaDeviceSynchronize 20us..3.02ms
          samples 50us..3ms every 500us active gil main>decode@engine.py:41
          samples 3.1ms..5ms every 500us active gil main>decode@engine.py:44
          api cudaLaunchKernel 5ms..5.01ms
          kernel forward 5.01ms..8ms
        end";

    #[test]
    fn a_wait_that_was_asked_for_is_named_with_its_line() {
        let found = found(&SyncApi, STEPS);
        assert_eq!(
            found[0].title,
            "GPU idle 25 % of the step: the CPU blocks in cudaDeviceSynchronize, at engine.py:41"
        );
        assert!((found[0].gain.unwrap().mid - 25.1).abs() < 0.1 && found[0].actions.len() == 2);
    }

    /// The time is that of both lines: none of them is said to have it alone.
    #[test]
    fn of_two_lines_that_wait_the_one_with_most_is_named_and_each_has_its_part() {
        let found = found(
            &SyncApi,
            "
            track main
            repeat 30 every 15ms
              step token 0..11ms
              stream 7
              api cudaLaunchKernel 0..10us
              kernel forward 10us..3ms
              api cudaDeviceSynchronize 20us..3.02ms
              samples 50us..3ms every 500us active gil main>decode@engine.py:41
              samples 3.1ms..5ms every 500us active gil main>decode@engine.py:44
              api cudaLaunchKernel 5ms..5.01ms
              kernel forward 5.01ms..8ms
              api cudaDeviceSynchronize 5.02ms..8.02ms
              samples 5.1ms..8ms every 500us active gil main>decode@engine.py:52
              samples 8.1ms..9ms every 500us active gil main>decode@engine.py:44
              api cudaLaunchKernel 9ms..9.01ms
              kernel forward 9.01ms..11ms
            end",
        );
        assert!(found[0].title.ends_with(", mostly at engine.py:41"), "{}", found[0].title);
        let lines = found[0].evidence.iter().find(|one| one.numbers.iter().any(|(name, _)| name == "lines"));
        let text = &lines.unwrap().text;
        assert!(text.ends_with("67 % at decode (engine.py:41), 33 % at decode (engine.py:52)"), "{text}");
    }

    /// What was sampled at the very end of the call may be what runs after it.
    #[test]
    fn a_sample_at_the_end_of_the_call_names_no_line() {
        let late =
            STEPS.replace("samples 50us..3ms every 500us active gil main>decode", "sample 2960us active gil main>book");
        let title = &found(&SyncApi, &late)[0].title;
        assert!(title.ends_with("the CPU blocks in cudaDeviceSynchronize"), "{title}");
    }

    /// A wait of 20 µs explains 20 µs of what follows.
    #[test]
    fn a_short_wait_is_not_blamed_for_a_long_gap() {
        silent(&SyncApi, &STEPS.replace("20us..3.02ms", "2.99ms..3.01ms"));
    }

    #[test]
    fn only_a_wait_in_the_middle_of_a_step_that_starves_the_gpu_counts() {
        crate::testing::waits_that_cost_nothing(&SyncApi, STEPS);
    }
}
