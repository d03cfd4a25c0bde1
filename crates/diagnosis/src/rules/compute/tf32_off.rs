//! `tf32-off`: products of FP32 matrices run without tensor cores on a device whose tensor cores could do them in TF32.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::confidence;
use crate::measures::proof;
use crate::measures::reach;
use crate::measures::roofline;
use crate::measures::unfused_attention::UnfusedAttention;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::compute::{below_roofline, tensor_cores_unused};
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::{Class, Math};
use analysis::device::kernel_name;
use analysis::device::ops::{Group, What};
use analysis::device::peaks::Peaks;
use analysis::device::step_kernels::Row;
use analysis::phrase;
use replay::gain::Left;
use replay::gain::{Gain, GainBy};

pub const CODE: RuleCode = RuleCode::new("tf32-off");

pub struct Tf32Off;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.05, Unit::Share, "a twentieth of the step is worth one line");

/// What starting and ending a kernel takes: no precision makes one shorter.
const MIN_KERNEL: Threshold =
    Threshold::new(CODE, "min_kernel", 5_000.0, Unit::Nanoseconds, "a kernel takes this long to start and end");
const MAX_TIME_LEFT: Threshold =
    Threshold::new(CODE, "max_time_left", 0.8, Unit::Share, "TF32 that is hardly faster is not worth fewer bits");

impl Rule for Tf32Off {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MAX_TIME_LEFT]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MIN_KERNEL]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Matrix products in plain FP32 take {min_share} of the step or more on a GPU that has TF32.",
            why: "PyTorch multiplies FP32 matrices in full FP32 by default, without tensor cores. TF32 rounds the factors to 10 bits of mantissa and accumulates in FP32: for inference that is nearly always enough. The kernel's name shows which of them ran. The recorded steps are replayed with these kernels on tensor cores. With shapes, at the speed of the fastest TF32 product in the recording, or at the speed measured on an H200; at best at the data sheet's. Without shapes, at the same fraction of the TF32 peak as they reach now of the FP32 peak; at best in no time. At worst they take as long as now, because memory may limit them; and each takes at least {min_kernel}.",
            needs: "GPU operations on a GPU in the table of peaks.",
            example: "FP32 matmuls without TF32 take 61 % of the step: cutlass_80_simt_sgemm_128x64_8x5_nn_align1",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[below_roofline::CODE, tensor_cores_unused::CODE]
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Allow TF32: cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH).",
            "Or halve the bytes as well: BF16 weights and inputs.",
        ]
    }

    fn fix(&self) -> Option<&'static str> {
        Some("tf32")
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some((device, _)) = case.most_kernels(plain).filter(|(_, share)| *share >= case.threshold(MIN_SHARE))
        else {
            return Verdict::Silent;
        };
        let Some(peaks) = device.peaks(case) else {
            return Verdict::Abstain("the GPU is not in the table of peaks: whether it has TF32 is unknown".into());
        };
        let Some(ratio) = ratio(&peaks).filter(|ratio| *ratio < case.threshold(MAX_TIME_LEFT)) else {
            return Verdict::Silent;
        };
        // Products of attention that should be one fused kernel are told of by the rule for that.
        let attention = UnfusedAttention::find(case, device).claimed();
        let fitting = |index: usize| {
            let kind = device.kind(case, index);
            kind.class == Class::Matmul && is_fp32(&kind) && !attention.contains(&(index as u32))
        };
        let tally = device.tally(case, fitting);
        let share = tally.mid();
        if share < case.threshold(MIN_SHARE) {
            return Verdict::Silent;
        }
        let (work, row) = (device.pieces(case, fitting), device.rows.iter().find(|row| plain(row)));
        let mean = tally.part / work.len().max(1) as f64;
        let least = (MIN_KERNEL.value / mean.max(1.0)).min(1.0);
        let groups: Vec<&Group> =
            case.ops().groups.iter().filter(|group| group.work.iter().any(|index| fitting(*index as usize))).collect();
        let (left, by, words) = by_shapes(case, &groups, work.len(), &peaks).unwrap_or_else(|| {
            let words =
                "shapes not recorded: products are assumed to reach the same fraction of the peak in TF32 as in FP32";
            (Left { best: 0.0, usual: ratio, worst: 1.0 }, GainBy::Bounded, words.into())
        });
        let left = Left { best: left.best.max(least), usual: left.usual.max(least), worst: left.worst };
        let gain = case.gain_of_work(device, vec![(work, left)]);
        let gain = Gain { by: if by == GainBy::Replay { gain.by } else { by }, ..gain };
        let place = row.map(|row| roofline::place(case, row)).unwrap_or_default();
        let kernel = kernel_name::brief(place.kernel.as_deref().unwrap_or(""));
        let finding = Finding {
            code: CODE,
            title: format!(
                "FP32 matmuls without TF32 take {} of {}: {kernel}{}",
                phrase::percent(share),
                case.the_step(),
                roofline::launched(&place)
            ),
            gain: Some(gain),
            severity: Severity::of_gain(&gain),
            certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
            evidence: vec![
                Evidence::new(format!(
                    "{} per step, mean {}",
                    phrase::count(device.per_step(case, plain).round() as u64),
                    phrase::duration(mean as u64)
                ))
                .number("share", share),
                Evidence::new(format!(
                    "peak of the GPU: {:.0} TFLOP/s in FP32, {:.0} in TF32 ({})",
                    peaks.math(Math::F32).unwrap_or(0.0),
                    peaks.math(Math::Tf32).unwrap_or(0.0),
                    peaks.source
                )),
                Evidence::new(words),
            ],
            actions: vec![
                Action::torch(
                    "Allow TF32: torch.set_float32_matmul_precision(\"high\"), or torch.backends.cuda.matmul.allow_tf32 = True.",
                ),
                Action::torch(
                    "Or halve the bytes as well: model.to(torch.bfloat16), or with torch.autocast(\"cuda\", dtype=torch.bfloat16): ...",
                ),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
            place,
        };
        finding.into()
    }
}

/// Full FP32 on ordinary cores. What multiplies by a vector waits for memory whatever the type.
fn plain(row: &Row) -> bool {
    row.kind.class == Class::Matmul && is_fp32(&row.kind)
}

fn is_fp32(kind: &analysis::device::kernel_kind::Kind) -> bool {
    kind.math == Some(Math::F32) && kind.tensor_cores == Some(false)
}

/// At the speed of products in TF32. None: some have no operator with shapes.
fn by_shapes(case: &Case, groups: &[&Group], pieces: usize, peaks: &Peaks) -> Option<(Left, GainBy, String)> {
    let known: usize = groups.iter().map(|group| group.work.len()).sum();
    let ns: u64 = groups.iter().map(|group| group.ns).fold(0, u64::saturating_add);
    let tf32 = peaks.math(Math::Tf32)? * 1e3;
    let floor = |group: &&Group| (group.cost.flops / tf32).max(group.cost.bytes / peaks.bandwidth) * group.calls as f64;
    let best = groups.iter().map(floor).sum::<f64>() / ns.max(1) as f64;
    let reach = reach::of(case, peaks, What::Matmul, Math::Tf32, true, |_| true);
    let left = Left { best: best.min(1.0), usual: (best / reach.part).min(1.0), worst: 1.0 };
    (known >= pieces && ns > 0).then_some((left, reach.by, reach.words))
}

/// What is left of the time by the peaks. None: no TF32.
fn ratio(peaks: &Peaks) -> Option<f64> {
    Some(peaks.math(Math::F32)? / peaks.math(Math::Tf32)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(device: &str, kernel: &str) -> String {
        format!(
            "{device}\n track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel {kernel} 20us..8ms\n\
             api cudaStreamSynchronize 20us..9.9ms\n end"
        )
    }
    const FP32: &str = "cutlass_80_simt_sgemm_128x64_8x5_nn_align1";

    #[test]
    fn fp32_on_a_device_that_has_tf32() {
        let found = found(&Tf32Off, &steps("device 0 NVIDIA_H200", FP32));
        assert_eq!(
            found[0].title,
            format!("FP32 matmuls without TF32 take 80 % of the step: {}", kernel_name::brief(FP32))
        );
        let gain = found[0].gain.unwrap();
        // 67 of 494 TFLOP/s are left; at best nothing but 5 µs, at worst all.
        assert!(gain.by == GainBy::Bounded && (gain.mid - 69.0).abs() < 1.0 && gain.low == 0.0, "{gain:?}");
        assert!((gain.high - 79.8).abs() < 1.0 && found[0].severity == Severity::High, "{:?}", found[0]);
        assert!(found[0].actions[0].contains("set_float32_matmul_precision"));
    }

    #[test]
    fn shapes_say_how_much_arithmetic_there_is() {
        let op = "op aten::mm 0..30us dims 4096,4096/4096,4096 type float/float\n api cudaLaunchKernel 5us..10us";
        let text = steps("device 0 NVIDIA_H200", FP32).replace("api cudaLaunchKernel 0..10us", op);
        let finding = found(&Tf32Off, &text).remove(0);
        let gain = finding.gain.unwrap();
        // 0.137 TFLOP: 0.28 ms at the data sheet's speed, 0.39 at 72 % of it.
        assert!(
            gain.by == GainBy::Prior && (gain.mid - 75.9).abs() < 0.5 && (gain.high - 77.0).abs() < 0.5,
            "{gain:?}"
        );
        assert!(finding.evidence[2].text.contains("on an H200"), "{:?}", finding.evidence);
    }

    #[test]
    fn silent_with_tf32_with_half_precision_with_a_vector_and_on_a_device_without_it() {
        silent(&Tf32Off, &steps("device 0 NVIDIA_H200", "cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align4"));
        silent(&Tf32Off, &steps("device 0 NVIDIA_H200", "nvjet_tst_128x256_64x4_h_bz_NTN"));
        silent(&Tf32Off, &steps("device 0 NVIDIA_H200", "gemv2T_kernel_val<int,int,float,float>"));
        silent(&Tf32Off, &steps("device 0 Tesla_V100-SXM2-16GB", "volta_sgemm_128x64_nn"));
        silent(&Tf32Off, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_on_a_device_that_is_not_known() {
        abstains(&Tf32Off, &steps("device 0 NVIDIA_X9", FP32), "not in the table");
    }
}
