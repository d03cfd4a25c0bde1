//! `compute-bound`: the device works most of the step, on matrix products that keep its arithmetic units busy. That is as it should be.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::measures::roofline::{self, Bound};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::compute::below_roofline;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("compute-bound");

pub struct ComputeBound;

const MIN_BUSY_SHARE: Threshold = Threshold::new(
    CODE,
    "min_busy_share",
    0.9,
    Unit::Share,
    "a GPU that waits for more than a tenth of the step is not healthy",
);

impl Rule for ComputeBound {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_BUSY_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The GPU runs kernels for {min_busy_share} of the step or more, mostly matrix products on tensor cores: healthy, compute-bound.",
            why: "Nothing is wrong with such a step: the GPU does what it is best at. The rule says so, so that nobody looks for a fault, and because only less or cheaper arithmetic makes it faster. With shapes (torch.profiler, `record_shapes=True`) an operator counts where the data sheet's arithmetic needs longer than its bytes; without them a kernel counts by its name: tensor cores, and tiles of 64 or more on both sides, which libraries choose for large products. No gain is given. `{rule}` lists what is below the roofline.",
            needs: "GPU operations; more certain with shapes.",
            example: "Healthy: GPU busy 97 % of the step, 91 % of that in BF16 matrix products on tensor cores (compute-bound)",
        }
    }

    fn finds_health(&self) -> bool {
        true
    }

    fn sets_pace(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Or use cheaper arithmetic, if the results allow it: FP8 or INT8 kernels of the library."]
    }

    fn mentions(&self) -> &'static [RuleCode] {
        &[below_roofline::CODE]
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some(bound) = roofline::look(case, case.threshold(MIN_BUSY_SHARE), |one| one.compute) else {
            return Verdict::Silent;
        };
        let Bound { device, busy, part, .. } = bound;
        let row = device.rows.iter().find(|row| roofline::computes(row));
        let math = row.and_then(|row| row.kind.math).map_or(String::new(), |math| format!("{} ", math.name()));
        let title = format!(
            "GPU busy {} of {}, {} of that in {math}matrix products on tensor cores (compute-bound)",
            phrase::percent(busy),
            case.the_step(),
            phrase::percent(part)
        );
        let mut evidence = vec![Evidence::new(bound.how()).number("share", part)];
        evidence.extend(bound.reached(case));
        let finding = Finding {
            code: CODE,
            title,
            place: row.map(|row| roofline::place(case, row)).unwrap_or_default(),
            gain: None,
            severity: Severity::Info,
            certainty: Certainty::seen(bound.confidence(case)),
            evidence,
            actions: vec![
                "Reduce the arithmetic, if you need it faster: fewer tokens, no padding, a smaller model. Nothing is wrong here.".into(),
                Action::torch("Or use cheaper arithmetic, if the results allow it: FP8 (torchao.float8, Transformer Engine) or torch.compile(model, mode=\"max-autotune\")."),
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
            "device 0 NVIDIA_H200\n track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel {kernel} 20us..{end}\n end"
        )
    }

    #[test]
    fn large_products_are_healthy() {
        let found = found(&ComputeBound, &steps("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN", "9.9ms"));
        assert_eq!(
            found[0].title,
            "GPU busy 99 % of the step, 100 % of that in BF16 matrix products on tensor cores (compute-bound)"
        );
        assert_eq!((found[0].gain, found[0].severity), (None, Severity::Info));
        assert!((found[0].confidence() - 21.0 / 22.0).abs() < 1e-9, "{}", found[0].confidence());
    }

    #[test]
    fn kernels_whose_names_tell_nothing_leave_doubt() {
        let other = "api cudaLaunchKernel 10us..20us\n kernel mystery 7ms..9.9ms\n end";
        let text = steps("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN", "7ms").replace("end", other);
        let found = found(&ComputeBound, &text);
        assert!((found[0].confidence() - 0.706 * 21.0 / 22.0).abs() < 0.01, "{}", found[0].confidence());
    }

    #[test]
    fn shapes_decide_where_they_are_known() {
        let text = |rows: &str, end: &str| {
            format!(
                "device 0 NVIDIA_H200\n track main\n repeat 20 every 2ms\n step r 0..900us\n\
                 op aten::mm 0..30us dims {rows},8192/8192,8192 type c10::BFloat16/c10::BFloat16\n api cudaLaunchKernel 10us..20us\n\
                 stream 7\n kernel nvjet_tst_128x256_64x4_h_bz_NTN 30us..{end}\n end"
            )
        };
        // 8192³ is 1.1 PFLOP: 1.1 ms at the peak of 989 TFLOP/s, and so is half of it in half of the time.
        let found = found(&ComputeBound, &text("4096", "900us"));
        assert!(found[0].evidence.iter().any(|one| one.text.contains("TFLOP/s")), "{:?}", found[0].evidence);
        silent(&ComputeBound, &text("4", "900us"));
    }

    #[test]
    fn silent_for_small_tiles_for_streams_for_fp32_and_for_an_idle_device() {
        silent(&ComputeBound, &steps("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "9.9ms"));
        silent(&ComputeBound, &steps("vectorized_elementwise_kernel<4,add<float>>", "9.9ms"));
        silent(&ComputeBound, &steps("volta_sgemm_128x128_tn", "9.9ms"));
        silent(&ComputeBound, &steps("cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1", "9.9ms"));
        silent(&ComputeBound, &steps("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN", "3ms"));
        silent(&ComputeBound, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
