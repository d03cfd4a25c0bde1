//! `queue-never-builds`: nearly every kernel finds the GPU idle, because the host never gets ahead of it.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::measures::{capture, gap};
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::launch::host_wait;
use crate::rules::launch::launch_bound;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use analysis::place::Place;

pub const CODE: RuleCode = RuleCode::new("queue-never-builds");

pub struct QueueNeverBuilds;

const MIN_LATE_SHARE: Threshold = Threshold::new(
    CODE,
    "min_late_share",
    0.8,
    Unit::Share,
    "this many late kernels is how the program runs, not chance",
);
const MIN_IDLE_SHARE: Threshold =
    Threshold::new(CODE, "min_idle_share", 0.2, Unit::Share, "a GPU that idles less loses little to late launches");
const MIN_KERNELS: Threshold =
    Threshold::new(CODE, "min_kernels", 100.0, Unit::Count, "with fewer kernels in total, chance decides");

impl Rule for QueueNeverBuilds {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_LATE_SHARE, MIN_IDLE_SHARE, MIN_KERNELS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "{min_late_share} of the kernels or more start on an idle GPU because they were launched too late.",
            why: "A CPU that runs ahead fills a queue, and the GPU goes from kernel to kernel. Here the queue is empty before nearly every launch: the CPU is slower than the GPU, or it waits after each launch. The cost is given by `{rule}`, `{rule}` and the synchronisation rules, so this rule has no gain.",
            needs: "GPU operations with their launch calls (`--gpu-detail launch`).",
            example: "GPU queue always empty: 97 % of 12,000 kernels are launched after the GPU went idle",
        }
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Let the CPU run ahead: no copy to the host and no synchronisation between the launches of a step.",
            "Cut launch cost with CUDA graphs.",
        ]
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit {
            what: "launch ahead of the GPU: no wait in the step, or a CUDA graph",
            whatif: Some("graph steps"),
        })
    }

    fn mentions(&self) -> &'static [RuleCode] {
        &[launch_bound::CODE, host_wait::CODE]
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = gap::without_launches(case) {
            return Verdict::Abstain(reason);
        }
        let late = case.idle().iter().filter_map(|device| {
            let kernels = case.kernels_in_steps(device.process, device.ordinal).count;
            let idle = device.idle_ns() as f64 / device.window_ns.max(1) as f64;
            let share = device.sums.late_kernels as f64 / kernels.max(1) as f64;
            (kernels >= (case.threshold(MIN_KERNELS) as usize)
                && idle >= case.threshold(MIN_IDLE_SHARE)
                && share >= case.threshold(MIN_LATE_SHARE))
            .then_some((share.min(1.0), kernels, idle))
        });
        let Some((share, kernels, idle)) = late.max_by(|a, b| a.0.total_cmp(&b.0)) else { return Verdict::Silent };
        let finding = Finding {
            code: CODE,
            title: format!(
                "GPU queue always empty: {} of {} kernels are launched after the GPU went idle",
                phrase::percent(share),
                phrase::count(kernels as u64)
            ),
            place: Place::default(),
            gain: None,
            severity: Severity::Low,
            certainty: Certainty::seen(1.0), // Counted.
            evidence: vec![
                Evidence::new(format!("GPU idle {} of {}", phrase::percent(idle), case.steps_time()))
                    .number("idle", idle),
                Evidence::new("a launch counts when its call returns after the preceding work has ended")
                    .number("share", share),
            ],
            actions: vec![
                Action::torch(
                    "Let the CPU run ahead: no .item(), .cpu(), print(tensor) or synchronize() between the launches of a step.",
                ),
                Action::torch("Cut launch cost")
                    .by("CUDA graphs, torch.compile(model, mode=\"reduce-overhead\").")
                    .needs(capture::without_waits(case)),
            ],
            verify: proof::verify(case, 0.0),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(kernel_us: u64) -> String {
        let mut text = String::from("track main\n repeat 20 every 1ms\n step token 0..400us\n stream 7\n");
        let mut free = 0;
        for number in 0..40 {
            let (at, start) = (number * 10, free.max(number * 10 + 5));
            free = start + kernel_us;
            text += &format!("api cudaLaunchKernel {at}us..{}us\n kernel add {start}us..{free}us\n", at + 4);
        }
        text + "end"
    }

    #[test]
    fn every_kernel_finds_the_gpu_idle() {
        let found = found(&QueueNeverBuilds, &steps(3));
        assert!(found[0].title.starts_with("GPU queue always empty: 98 % of 800 kernels"), "{}", found[0].title);
        assert_eq!(found[0].gain, None);
    }

    /// Copies that find the device idle are no kernels that do.
    #[test]
    fn only_kernels_are_counted() {
        let mut text = steps(3).trim_end_matches("end").to_owned();
        for number in 0..40 {
            let at = number * 10 + 9;
            text += &format!("api cudaMemcpyAsync {at}us..{at}.2us\n copy d2d {at}.3us..{at}.5us 64\n");
        }
        let found = found(&QueueNeverBuilds, &(text + "end"));
        assert!(found[0].title.contains("98 % of 800 kernels"), "{}", found[0].title);
    }

    #[test]
    fn silent_when_the_host_is_ahead_with_few_kernels_and_without_a_gpu() {
        silent(&QueueNeverBuilds, &steps(12));
        silent(
            &QueueNeverBuilds,
            "track main\n step r 0..1ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel k 20us..40us",
        );
        silent(&QueueNeverBuilds, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_launches() {
        abstains(
            &QueueNeverBuilds,
            "track main\n step r 0..1ms\n stream 7\n kernel k 0..1us corr 0",
            "launch calls not recorded",
        );
    }
}
