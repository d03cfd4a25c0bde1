//! `tensor-cores-unused`: products or convolutions run on ordinary cores though the device has tensor cores for them. FP32 products on a device with
//! TF32 are left to `tf32-off`.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::confidence;
use crate::measures::proof;
use crate::measures::roofline;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::compute::tf32_off;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::{Class, Kind, Math};
use analysis::device::kernel_name;
use analysis::device::peaks::Peaks;
use analysis::device::step_kernels::{self, Row};
use analysis::phrase;
use replay::gain::Left;
use replay::gain::{Gain, GainBy};

pub const CODE: RuleCode = RuleCode::new("tensor-cores-unused");

pub struct TensorCoresUnused;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "another dtype is one line, and its effect on results has to be checked",
);
const MAX_TIME_LEFT: Threshold = Threshold::new(
    CODE,
    "max_time_left",
    0.8,
    Unit::Share,
    "tensor cores that are hardly faster are not worth another dtype",
);

impl Rule for TensorCoresUnused {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MAX_TIME_LEFT]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Matrix products or convolutions without tensor cores take {min_share} of the step or more on a GPU that has them.",
            why: "Tensor cores multiply several times faster than ordinary cores. They are not used when they do not support the dtype (FP32 on a V100 or T4), when half-precision matrices are too small or badly aligned, or when a convolution has few channels or TF32 is off for cuDNN. The kernel's name shows that, but not why: at best these kernels speed up as the peaks do, at worst nothing changes, and half of it in the middle; the recorded steps are replayed with that. FP32 products where TF32 would do are covered by `{rule}`.",
            needs: "GPU operations on a GPU in the table of peaks.",
            example: "Matmuls without tensor cores take 38 % of the step in FP32: volta_sgemm_128x64_nn",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Use a dtype that tensor cores support: FP16 or BF16; for FP32 data cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH).",
        ]
    }

    fn fix(&self) -> Option<&'static str> {
        Some("tf32")
    }

    fn mentions(&self) -> &'static [RuleCode] {
        &[tf32_off::CODE]
    }

    fn look(&self, case: &Case) -> Verdict {
        let device =
            case.most_kernels(|row| on_cores(&row.kind)).filter(|(_, share)| *share >= case.threshold(MIN_SHARE));
        let Some((device, _)) = device else { return Verdict::Silent };
        let Some(peaks) = device.peaks(case) else {
            return Verdict::Abstain(
                "the GPU is not in the table of peaks: the speed of its tensor cores is unknown".into(),
            );
        };
        let fits = |kind: &Kind| on_cores(kind) && faster(case, kind, &peaks).is_some();
        let share = device.share(|row| fits(&row.kind));
        let Some(row) = device.rows.iter().find(|row| fits(&row.kind)).filter(|_| share >= case.threshold(MIN_SHARE))
        else {
            return Verdict::Silent;
        };
        let ratio = faster(case, &row.kind, &peaks).unwrap_or(1.0);
        let fitting = |index: usize| fits(&device.kind(case, index));
        let gain = case.gain_of_work(device, vec![(device.pieces(case, fitting), Left::between(ratio, 1.0))]);
        let gain = Gain { by: GainBy::Bounded, ..gain };
        let place = roofline::place(case, row);
        let math = row.kind.math.unwrap_or(Math::F32);
        let what = if row.kind.class == Class::Convolution { "Convolutions" } else { "Matmuls" };
        let title = format!(
            "{what} without tensor cores take {} of {} in {}: {}{}",
            phrase::percent(share),
            case.the_step(),
            math.name(),
            kernel_name::brief(case.timeline.names.text(row.name)),
            roofline::launched(&place)
        );
        let finding = Finding {
            code: CODE,
            title,
            place,
            gain: Some(gain),
            severity: Severity::of_gain(&gain),
            certainty: Certainty::seen(confidence::of(&device.tally(case, fitting), case.threshold(MIN_SHARE))),
            evidence: vec![
                Evidence::new(format!("{} per step", phrase::count(count(case, device, fits)))).number("share", share),
            ],
            actions: actions(row, math),
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

fn count(case: &Case, device: &step_kernels::StepKernels, fits: impl Fn(&Kind) -> bool) -> u64 {
    device.per_step(case, |row| fits(&row.kind)).round() as u64
}

fn on_cores(kind: &Kind) -> bool {
    matches!(kind.class, Class::Matmul | Class::Convolution) && kind.tensor_cores == Some(false)
}

/// What is left of the time with tensor cores, by the peaks. None: they do not have this type, or another rule tells.
fn faster(case: &Case, kind: &Kind, peaks: &Peaks) -> Option<f64> {
    let cores = peaks.math(Math::F32)?;
    let with = match (kind.math?, peaks.math(Math::Tf32)) {
        (Math::F32, Some(_)) if kind.class == Class::Matmul => return None,
        (Math::F32, Some(tf32)) => tf32,
        (Math::F32, None) => peaks.math(Math::F16)?,
        (math @ (Math::F16 | Math::Bf16), _) => peaks.math(math)?,
        _ => return None,
    };
    Some(cores / with).filter(|ratio| *ratio < case.threshold(MAX_TIME_LEFT))
}

fn actions(row: &Row, math: Math) -> Vec<Action> {
    let mut actions = match (row.kind.class, math) {
        (Class::Convolution, Math::F32) => vec![
            Action::torch("Allow TF32 for convolutions (on by default): torch.backends.cudnn.allow_tf32 = True."),
            Action::torch("Let cuDNN search for the fastest kernel: torch.backends.cudnn.benchmark = True."),
        ],
        (_, Math::F32) => vec![Action::torch(
            "Use a dtype that tensor cores support: with torch.autocast(\"cuda\", dtype=torch.float16): ...",
        )],
        _ => vec!["Make rows and columns multiples of 8, and tensors contiguous: x = x.contiguous().".into()],
    };
    actions.push(Action::torch(
        "Or use half precision for the whole model: model.half(), or model.to(torch.bfloat16) where the GPU supports it.",
    ));
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(device: &str, kernel: &str) -> String {
        format!(
            "device 0 {device}\n track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel {kernel} 20us..4ms\n\
             api cudaStreamSynchronize 20us..9.9ms\n end"
        )
    }

    #[test]
    fn fp32_on_a_device_whose_tensor_cores_have_only_half_precision() {
        let found = found(&TensorCoresUnused, &steps("Tesla_V100-SXM2-16GB", "volta_sgemm_128x64_nn"));
        assert_eq!(found[0].title, "Matmuls without tensor cores take 40 % of the step in FP32: volta_sgemm_128x64_nn");
        assert!(found[0].actions[0].contains("autocast") && found[0].actions.len() >= 2);
        let gain = found[0].gain.unwrap();
        assert!(gain.low == 0.0 && gain.mid > 10.0 && gain.high < 40.0, "{gain:?}");
        assert!(gain.by == GainBy::Bounded && (gain.mid - gain.high / 2.0).abs() < 0.1, "{gain:?}");
    }

    #[test]
    fn a_convolution_in_full_fp32() {
        let kernel = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x64x8_stage3_ffma";
        assert!(found(&TensorCoresUnused, &steps("NVIDIA_H200", kernel))[0].title.starts_with("Convolutions without"));
    }

    #[test]
    fn silent_with_tensor_cores_and_where_tf32_is_the_answer() {
        silent(&TensorCoresUnused, &steps("NVIDIA_H200", "nvjet_tst_128x256_64x4_h_bz_NTN"));
        silent(&TensorCoresUnused, &steps("NVIDIA_H200", "cutlass_80_simt_sgemm_128x64_8x5_nn_align1"));
        silent(&TensorCoresUnused, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_on_a_device_that_is_not_known() {
        abstains(&TensorCoresUnused, &steps("NVIDIA_X9", "volta_sgemm_128x64_nn"), "not in the table");
    }
}
