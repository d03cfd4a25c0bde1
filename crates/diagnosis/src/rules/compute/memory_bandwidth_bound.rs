//! `memory-bandwidth-bound`: the device works most of the step, on kernels that do little arithmetic for each byte.

use super::low_occupancy;
use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::compiled;
use crate::measures::proof;
use crate::measures::roofline;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::compute::unfused_elementwise;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Class;
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("memory-bandwidth-bound");

pub struct MemoryBandwidthBound;

const MIN_BUSY_SHARE: Threshold =
    Threshold::new(CODE, "min_busy_share", 0.8, Unit::Share, "from here on, kernels are the bottleneck");

impl Rule for MemoryBandwidthBound {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_BUSY_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The GPU runs kernels for {min_busy_share} of the step or more, mostly kernels limited by memory bandwidth.",
            why: "Elementwise operations, norms, copies and matrix-vector products read and write far more bytes than they have arithmetic for: memory bandwidth is the bottleneck, and faster arithmetic changes nothing. With shapes (torch.profiler, `record_shapes=True`) an operator counts where its bytes need longer than its arithmetic; without them a kernel counts by its name. No gain of its own is given: `{rule}` counts what fewer passes over memory save.",
            needs: "GPU operations; more certain with shapes.",
            example: "Memory-bound: GPU busy 96 % of the step, 88 % of that limited by memory, mostly elementwise",
        }
    }

    fn sets_pace(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Make fewer passes over the data: fuse neighbouring operations into one kernel.",
            "Move fewer bytes: BF16 instead of FP32, weights in INT8 or FP8.",
        ]
    }

    fn mentions(&self) -> &'static [RuleCode] {
        &[unfused_elementwise::CODE]
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some(bound) = roofline::look(case, case.threshold(MIN_BUSY_SHARE), |one| one.memory) else {
            return Verdict::Silent;
        };
        let device = bound.device;
        if low_occupancy::is_empty(case, device) {
            return Verdict::Silent;
        }
        let row = device.rows.iter().find(|row| !roofline::computes(row));
        let most = match row.map(|row| row.kind.class) {
            Some(Class::Elementwise) => ", mostly elementwise",
            Some(Class::Gemv | Class::Matmul) => ", mostly matrix-vector products",
            Some(Class::Norm) => ", mostly norms",
            Some(Class::Copy | Class::Layout) => ", mostly copies",
            Some(Class::Softmax) => ", mostly softmax",
            _ => "",
        };
        let title = format!(
            "Memory-bound: GPU busy {} of {}, {} of that limited by memory{most}",
            phrase::percent(bound.busy),
            case.the_step(),
            phrase::percent(bound.part)
        );
        let mut evidence = vec![Evidence::new(bound.how()).number("share", bound.part)];
        evidence.extend(bound.reached(case));
        if let Some(peaks) = device.peaks(case) {
            let text = format!("peak memory bandwidth of the GPU: {} GB/s", phrase::count(peaks.bandwidth as u64));
            evidence.push(Evidence::new(text).number("gb_per_s", peaks.bandwidth));
        }
        let finding = Finding {
            code: CODE,
            title,
            place: row.map(|row| roofline::place(case, row)).unwrap_or_default(),
            gain: None,
            severity: Severity::Info,
            certainty: Certainty::seen(bound.confidence(case)),
            evidence,
            actions: actions(case, row.map(|row| row.kind.class)),
            verify: proof::verify(case, 0.0),
        };
        finding.into()
    }
}

fn actions(case: &Case, class: Option<Class>) -> Vec<Action> {
    let mut actions = vec![
        Action::torch("Make fewer passes over the data")
            .by("model = torch.compile(model) fuses neighbouring operations into one kernel.")
            .needs([compiled::not_yet(case)]),
        Action::torch(
            "Move fewer bytes: torch.bfloat16 instead of torch.float32, weights in INT8 or FP8 (torchao.quantize_).",
        ),
    ];
    let batch =
        "Increase the batch: each weight is read once for all of it, so it costs little while bandwidth is the limit."
            .into();
    // What reads its weights for a few vectors is helped most by more of them.
    let first = if matches!(class, Some(Class::Gemv | Class::Matmul)) { 0 } else { actions.len() };
    actions.insert(first, batch);
    actions
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
    fn elementwise_kernels_wait_for_memory() {
        let found =
            found(&MemoryBandwidthBound, &steps("vectorized_elementwise_kernel<4,CUDAFunctor_add<float>>", "9.9ms"));
        assert!(found[0].title.ends_with("limited by memory, mostly elementwise"), "{}", found[0].title);
        assert!(found[0].gain.is_none() && found[0].actions.len() >= 2);
        assert!(found[0].evidence.iter().any(|one| one.text.contains("4,800 GB/s")));
    }

    #[test]
    fn products_with_few_rows_by_their_names() {
        for kernel in ["gemv2T_kernel_val<int,int,__nv_bfloat16>", "nvjet_tst_64x8_64x16_4x1_v_bz_TNT"] {
            let found = found(&MemoryBandwidthBound, &steps(kernel, "9.9ms"));
            assert!(found[0].title.ends_with("mostly matrix-vector products"), "{}", found[0].title);
        }
    }

    #[test]
    fn a_product_with_few_rows_by_its_shape() {
        let text = "device 0 NVIDIA_H200\n track main\n repeat 20 every 2ms\n step r 0..90us\n\
            op aten::mm 0..30us dims 1,8192/8192,8192 type c10::BFloat16/c10::BFloat16\n api cudaLaunchKernel 1us..10us\n\
            stream 7\n kernel nvjet_tst_128x256_64x4_h_bz_NTN 12us..90us\n end";
        let found = found(&MemoryBandwidthBound, text);
        assert!(found[0].evidence[1].text.contains("1,721 of 4,800 GB/s"), "{:?}", found[0].evidence);
    }

    #[test]
    fn a_grid_that_leaves_the_device_empty_is_not_limited_by_its_memory() {
        let text = steps("vectorized_elementwise_kernel<4,add<float>>", "9.9ms grid 12")
            .replace("NVIDIA_H200", "NVIDIA_H200 sms 132");
        silent(&MemoryBandwidthBound, &text);
        assert_eq!(found(&MemoryBandwidthBound, &text.replace("grid 12", "grid 1200")).len(), 1);
    }

    #[test]
    fn silent_for_large_products_for_an_idle_device_and_without_one() {
        silent(&MemoryBandwidthBound, &steps("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NTN", "9.9ms"));
        silent(&MemoryBandwidthBound, &steps("vectorized_elementwise_kernel<4,add<float>>", "2ms"));
        silent(&MemoryBandwidthBound, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
