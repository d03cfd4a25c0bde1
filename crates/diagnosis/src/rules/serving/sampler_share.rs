//! `sampler-share`: choosing the next tokens takes a large part of the step.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::confidence;
use crate::measures::proof;
use crate::measures::roofline;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Class;
use analysis::device::kernel_name;
use analysis::device::step_kernels;
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("sampler-share");

pub struct SamplerShare;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.10, Unit::Share, "sampling always takes some time; a tenth is more than that");

impl Rule for SamplerShare {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Kernels that sort, take the maximum or draw random numbers take {min_share} of the step or more.",
            why: "Top-p sampling sorts the whole vocabulary for every request; top-k, penalties and random draws come on top. Greedy decoding, a smaller k before the sort, or a sampler without sorting (FlashInfer's) cost less. No gain is given: which of them the results allow is for the program to decide.",
            needs: "GPU operations whose kernel names say what they do.",
            example: "Token sampling takes 23 % of the step, mostly cub::DeviceRadixSortOnesweepKernel",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let chooses = |row: &step_kernels::Row| row.kind.class == Class::Choose;
        let Some((device, share)) = case.most_kernels(chooses).filter(|(_, share)| *share >= case.threshold(MIN_SHARE))
        else {
            return Verdict::Silent;
        };
        let Some(row) = device.rows.iter().find(|row| chooses(row)) else { return Verdict::Silent };
        let place = roofline::place(case, row);
        let finding = Finding {
            code: CODE,
            title: format!(
                "Token sampling takes {} of {}, mostly {}{}",
                phrase::percent(share),
                case.the_step(),
                kernel_name::brief(case.timeline.names.text(row.name)),
                roofline::launched(&place)
            ),
            place,
            gain: None,
            severity: Severity::Low,
            certainty: Certainty::seen(confidence::of(&device.tally(case, |index| device.kind(case, index).class == Class::Choose), case.threshold(MIN_SHARE))),
            evidence: vec![Evidence::new(format!("{} such kernels per step", crate::measures::gap::each(device.per_step(case, chooses)))).number("share", share)],
            actions: vec![
                "Sort fewer values: apply top_k before top_p; use greedy decoding where it is enough.".into(),
                "Use a sampler that does not sort: flashinfer.sampling.top_p_sampling_from_probs; vLLM: VLLM_USE_FLASHINFER_SAMPLER=1.".into(),
            ],
            verify: proof::verify(case, 0.0),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn steps(kernel: &str, end: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step token 0..10ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel {kernel} 20us..{end}\n end"
        )
    }

    #[test]
    fn sorting_a_vocabulary() {
        let found = found(&SamplerShare, &steps("cub::DeviceRadixSortOnesweepKernel", "3ms"));
        assert_eq!(found[0].title, "Token sampling takes 30 % of the step, mostly DeviceRadixSortOnesweepKernel");
        assert!(found[0].gain.is_none() && found[0].actions.len() == 2);
    }

    #[test]
    fn silent_when_it_is_little() {
        silent(&SamplerShare, &steps("cub::DeviceRadixSortOnesweepKernel", "500us"));
        silent(&SamplerShare, &steps("nvjet_tst_128x128", "9ms"));
        silent(&SamplerShare, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
