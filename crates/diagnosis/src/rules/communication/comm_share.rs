//! `comm-share`: collectives take a large part of the step.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::collectives;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::communication::comm_exposed;
use crate::rules::communication::straggler_rank;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Class;
use analysis::device::kernel_name;
use analysis::phrase;
use analysis::place::Place;

pub const CODE: RuleCode = RuleCode::new("comm-share");

pub struct CommShare;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.2, Unit::Share, "below a fifth, other things are worth looking at first");

impl Rule for CommShare {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Collectives run for {min_share} of the step or more.",
            why: "NCCL and RCCL kernels move data between GPUs and wait there for the other ranks: a single rank's trace does not tell the two apart. No gain is given; `{rule}` gives what no other kernel hides, `{rule}` the rank the others wait for.",
            needs: "GPU operations.",
            example: "Collectives take 39 % of the step, mostly ncclDevKernel_AllReduce_Sum_bf16_RING_LL; 12 % of that overlapped",
        }
    }

    fn mentions(&self) -> &'static [RuleCode] {
        &[comm_exposed::CODE, straggler_rank::CODE]
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some((device, _)) = collectives::most(case) else { return Verdict::Silent };
        let (all, exposed) = collectives::spans(case, device);
        let (tally, alone) = (collectives::tally(device, &all), collectives::tally(device, &exposed));
        if tally.mid() < case.threshold(MIN_SHARE) {
            return Verdict::Silent;
        }
        let Some(row) = device.rows.iter().find(|row| row.kind.class == Class::Collective) else {
            return Verdict::Silent;
        };
        let kernel = case.timeline.names.text(row.name);
        let hidden = 1.0 - alone.mid() / tally.mid();
        let finding = Finding {
            code: CODE,
            title: format!(
                "Collectives take {} of {}, mostly {}; {} of that overlapped",
                phrase::percent(tally.mid()),
                case.the_step(),
                kernel_name::brief(kernel),
                phrase::percent(hidden)
            ),
            place: Place { kernel: Some(kernel.to_owned()), ..Place::default() },
            gain: None,
            severity: Severity::Info,
            certainty: Certainty::seen(tally.repeats()),
            evidence: vec![
                Evidence::new(format!(
                    "{} per step",
                    crate::measures::gap::each(device.per_step(case, |row| row.kind.class == Class::Collective))
                ))
                .number("share", tally.mid()),
            ],
            actions: vec![
                "Move less data: a smaller tensor-parallel group with more replicas, BF16 or FP8 messages.".into(),
                "Record all ranks at once (in one folder): whether they wait for one of them shows in the others' traces."
                    .into(),
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

    fn steps(collective: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..5us\n stream 7\n kernel gemm 10us..5ms\n\
             api cudaLaunchKernel 5us..10us\n stream 8\n kernel {collective} 4ms..8ms\n end"
        )
    }

    #[test]
    fn collectives_that_take_long() {
        let found = found(&CommShare, &steps("ncclDevKernel_AllReduce_Sum_bf16_RING_LL"));
        assert_eq!(
            found[0].title,
            "Collectives take 40 % of the step, mostly ncclDevKernel_AllReduce_Sum_bf16…; 25 % of that overlapped"
        );
        assert!(found[0].gain.is_none() && found[0].actions.len() == 2);
    }

    #[test]
    fn silent_without_them() {
        silent(&CommShare, &steps("elementwise"));
        silent(&CommShare, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
