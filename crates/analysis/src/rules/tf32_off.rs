//! `tf32-off`: products of FP32 matrices run without tensor cores on a device whose tensor cores could do them in TF32.

use super::attention_fallback::Unfused;
use super::roofline;
use crate::finding::{Evidence, Finding, Severity};
use crate::kernel_kind::{Class, Math};
use crate::peaks::Peaks;
use crate::phrase;
use crate::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::step_kernels::{self, Left, Row};

pub struct Tf32Off;

/// A twentieth of the step is worth one line.
const LEVEL: f64 = 0.05;
/// Shorter kernels are made of their start and their end.
const SHORT_NS: f64 = 5_000.0;

impl Rule for Tf32Off {
    fn code(&self) -> &'static str {
        "tf32-off"
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Matrix products in plain FP32 take 5 % of the step or more on a GPU that has TF32.",
            why: "PyTorch multiplies FP32 matrices in full FP32 unless told otherwise, without tensor cores. TF32 rounds the factors to 10 bits of mantissa and \
                  sums in FP32: for inference that is nearly always enough. The kernel's name says which of them ran. The gain scales these kernels, each by what \
                  the device's peaks for FP32 and TF32 allow (at best), by a quarter less of that (usually) and to a half (at worst), but to no less than \
                  5 µs each; the recorded steps are replayed with that.",
            needs: "GPU work on a device of the table of peaks.",
            example: "Matrix products in FP32 without TF32 take 61 % of the step: cutlass_80_simt_sgemm_128x64_8x5_nn_align1",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some((device, _)) = step_kernels::most(case, plain).filter(|(_, share)| *share >= LEVEL) else {
            return Verdict::Silent;
        };
        let Some(peaks) = device.peaks(case) else {
            return Verdict::Abstain(
                "the device's peaks are not in the table: whether it has TF32 is not known".into(),
            );
        };
        let Some(ratio) = ratio(&peaks) else { return Verdict::Silent };
        // Products of attention that should be one fused kernel are told of by the rule for that.
        let attention = Unfused::find(case, device).claimed();
        let fitting = |index: usize| {
            let kind = device.kind(case, index);
            kind.class == Class::Matmul && is_fp32(&kind) && !attention.contains(&(index as u32))
        };
        let tally = device.tally(case, fitting);
        let share = tally.mid();
        if share < LEVEL {
            return Verdict::Silent;
        }
        let (work, row) = (device.pieces(case, fitting), device.rows.iter().find(|row| plain(row)));
        let mean = tally.part / work.len().max(1) as f64;
        let least = (SHORT_NS / mean.max(1.0)).min(1.0);
        let left = Left { best: ratio.max(least), usual: (ratio * 1.25).max(least), worst: 0.5f64.max(least) };
        let gain = device.gain(case, vec![(work, left)]);
        let place = row.map(|row| roofline::place(case, row)).unwrap_or_default();
        let kernel = step_kernels::short(place.kernel.as_deref().unwrap_or(""));
        let finding = Finding {
            code: self.code(),
            title: format!(
                "Matrix products in FP32 without TF32 take {} of {}: {kernel}{}",
                phrase::percent(share),
                case.the_step(),
                roofline::launched(&place)
            ),
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            confidence: tally.repeats(),
            evidence: vec![
                Evidence::said(format!("{} of them a step, {} in the mean", phrase::count(device.per_step(case, plain).round() as u64), phrase::duration(mean as u64))).number("share", share),
                Evidence::said(format!(
                    "the device does {:.0} TFLOP/s in FP32 and {:.0} in TF32 ({})",
                    peaks.math(Math::F32).unwrap_or(0.0),
                    peaks.math(Math::Tf32).unwrap_or(0.0),
                    peaks.source
                )),
            ],
            actions: vec![
                "Allow TF32: torch.set_float32_matmul_precision(\"high\"), or torch.backends.cuda.matmul.allow_tf32 = True.".into(),
                "Or use half the bytes as well: model.to(torch.bfloat16), or with torch.autocast(\"cuda\", dtype=torch.bfloat16): ...".into(),
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

fn is_fp32(kind: &crate::kernel_kind::Kind) -> bool {
    kind.math == Some(Math::F32) && kind.tensor_cores == Some(false)
}

/// What is left of the time by the peaks. None: no TF32, or none that is faster.
fn ratio(peaks: &Peaks) -> Option<f64> {
    let ratio = peaks.math(Math::F32)? / peaks.math(Math::Tf32)?;
    (ratio < 0.8).then_some(ratio)
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
        assert_eq!(found[0].title, format!("Matrix products in FP32 without TF32 take 80 % of the step: {FP32}"));
        let gain = found[0].gain.unwrap();
        assert!(gain.low < gain.mid && gain.mid <= gain.high && gain.mid > 50.0 && gain.high < 80.0, "{gain:?}");
        assert!(found[0].actions[0].contains("set_float32_matmul_precision"));
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
