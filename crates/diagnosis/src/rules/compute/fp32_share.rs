//! `fp32-share`: most of the kernels' time is spent on FP32 data, which is twice the bytes of half precision.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::measures::roofline;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Math;
use analysis::device::kernel_name;
use analysis::device::step_kernels::Row;
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("fp32-share");

pub struct Fp32Share;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.5, Unit::Share, "less than half is not a property of the model as a whole");
const MIN_BUSY_SHARE: Threshold =
    Threshold::new(CODE, "min_busy_share", 0.5, Unit::Share, "a GPU that is busy less has other problems");

impl Rule for Fp32Share {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_BUSY_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The GPU is busy {min_busy_share} of the step or more, and {min_share} of kernel time or more is on FP32 data.",
            why: "BF16 and FP16 move half the bytes and multiply at twice the speed of TF32. Whether the results allow it is for the program to decide, and the kernel names do not show how much faster each would get: no gain is given.",
            needs: "GPU operations whose kernel names show their dtypes.",
            example: "82 % of kernel time is on FP32 data; half precision would move half the bytes",
        }
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Use half precision for the whole model: BF16 or FP16 weights and inputs.",
            "Or only where it is safe: products of BF16 matrices, accumulated in FP32.",
        ]
    }

    fn fix(&self) -> Option<&'static str> {
        Some("tf32")
    }

    fn look(&self, case: &Case) -> Verdict {
        let device = case.kernels().iter().max_by(|a, b| case.busy(a).total_cmp(&case.busy(b)));
        let Some(device) = device.filter(|device| case.busy(device) >= case.threshold(MIN_BUSY_SHARE)) else {
            return Verdict::Silent;
        };
        let share = device.of_kernels(fp32);
        let Some(row) = device.rows.iter().find(|row| fp32(row)).filter(|_| share >= case.threshold(MIN_SHARE)) else {
            return Verdict::Silent;
        };
        let place = roofline::place(case, row);
        let finding = Finding {
            code: CODE,
            title: format!(
                "{} of kernel time is on FP32 data; half precision would move half the bytes",
                phrase::percent(share)
            ),
            evidence: vec![
                Evidence::new(format!(
                    "most of it in {}, {} of {}",
                    kernel_name::short(case.timeline.names.text(row.name)),
                    phrase::percent(row.ns as f64 / device.window_ns.max(1) as f64),
                    case.the_step()
                ))
                .number("share", share),
            ],
            place,
            gain: None,
            severity: Severity::Info,
            certainty: Certainty::seen(device.tally(case, |_| true).repeats()),
            actions: vec![
                Action::torch("Use half precision for the whole model and its inputs: model.to(torch.bfloat16)."),
                Action::torch(
                    "Or only where it is safe: with torch.autocast(\"cuda\", dtype=torch.bfloat16): model(x).",
                ),
            ],
            verify: proof::verify(case, 0.0),
        };
        finding.into()
    }
}

fn fp32(row: &Row) -> bool {
    matches!(row.kind.math, Some(Math::F32 | Math::Tf32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn steps(kernel: &str, end: &str) -> String {
        format!(
            "device 0 NVIDIA_H200\n track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel {kernel} 20us..{end}\n end"
        )
    }

    #[test]
    fn fp32_data_most_of_the_time() {
        let found = found(&Fp32Share, &steps("cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align4", "9ms"));
        assert_eq!(found[0].title, "100 % of kernel time is on FP32 data; half precision would move half the bytes");
        assert!(found[0].gain.is_none() && found[0].actions.len() >= 2);
    }

    #[test]
    fn silent_in_half_precision_and_when_the_device_is_idle() {
        silent(&Fp32Share, &steps("nvjet_tst_128x256_64x4_h_bz_NTN", "9ms"));
        silent(&Fp32Share, &steps("volta_sgemm_128x64_nn", "1ms"));
        silent(&Fp32Share, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
