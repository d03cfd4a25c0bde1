//! `attention-fallback`: attention is computed as product, softmax, product, with the whole matrix of scores in memory, instead of in one kernel.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::calls_in_steps::times;
use crate::measures::confidence;
use crate::measures::proof;
use crate::measures::reach;
use crate::measures::roofline;
use crate::measures::unfused_attention::{MAX_KERNELS_BETWEEN, UnfusedAttention};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::compute::{below_roofline, unfused_elementwise};
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::{Class, Math};
use analysis::device::ops::What;
use analysis::device::peaks::Peaks;
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use replay::gain::Left;
use replay::gain::{Gain, GainBy};
use std::collections::HashSet;

pub const CODE: RuleCode = RuleCode::new("attention-fallback");

pub struct AttentionFallback;

const MIN_SHARE: Threshold = Threshold::new(CODE, "min_share", 0.05, Unit::Share, "a fused attention is one call");

/// Which kernels those are is read for several rules alike: here is its level for the documentation.
const MAX_BETWEEN: Threshold = Threshold::new(
    CODE,
    "max_between",
    MAX_KERNELS_BETWEEN as f64,
    Unit::Count,
    "scaling, a mask, conversions and what guards against rows without any key",
);

impl Rule for AttentionFallback {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MAX_BETWEEN]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Attention computed as matmul, softmax and matmul takes {min_share} of the step or more.",
            why: "The math backend of scaled_dot_product_attention, and attention written by hand, write the scores of every query with every key to memory and read them again, several times. A fused kernel never writes them. It is recognised by a softmax with a matmul before and after it in the same stream and only elementwise kernels in between, {max_between} at most. The recorded steps are replayed without everything between the two matmuls; at worst the softmax stays, because its exponentials are computed in any case. A fused kernel has to compute the matmuls too. With shapes, it takes as long as their arithmetic at the speed that fused attention reaches elsewhere in the recording, or at the speed measured on an H200; at best at the data sheet's, at worst the matmuls stay as they are. Without shapes they stay, unless they are in FP32, to which the math backend converts half precision: then a fused kernel multiplies on tensor cores, at the speed measured on an H200, and the conversions before go; at best the matmuls cost nothing, at worst they stay.",
            needs: "GPU operations.",
            example: "Unfused attention takes 34 % of the step: 12 times matmul, softmax, matmul",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[unfused_elementwise::CODE, below_roofline::CODE]
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Use a fused attention kernel in BF16 or FP16: FlashAttention, cuDNN's, or the framework's own."]
    }

    fn fix(&self) -> Option<&'static str> {
        Some("sdpa")
    }

    fn look(&self, case: &Case) -> Verdict {
        let found = case.kernels().iter().map(|device| (device, UnfusedAttention::find(case, device)));
        let Some((device, unfused)) = found.max_by_key(|(_, unfused)| ns(unfused, case)) else {
            return Verdict::Silent;
        };
        let share = ns(&unfused, case) as f64 / device.window_ns.max(1) as f64;
        if share < case.threshold(MIN_SHARE) || unfused.softmax.is_empty() {
            return Verdict::Silent;
        }
        let each = unfused.softmax.len() as f64 / case.steps.count().max(1) as f64;
        let work = &case.timeline.gpu.work;
        let first = unfused.softmax[0] as usize;
        let row = device.rows.iter().find(|row| row.name.0 == work.name[first]);
        let place = row.map(|row| roofline::place(case, row)).unwrap_or_default();
        let all = unfused.claimed();
        let confidence =
            confidence::of(&device.tally(case, |index| all.contains(&(index as u32))), case.threshold(MIN_SHARE));
        let (between, products) = (unfused.between.len(), unfused.products.len());
        let (gain, known) = gain(unfused, case, device);
        let fused = device.of_kernels(|row| row.kind.class == Class::Attention);
        let finding = Finding {
            code: CODE,
            title: format!(
                "Unfused attention takes {} of {}: {} matmul, softmax, matmul{}",
                phrase::percent(share),
                case.the_step(),
                times(each),
                roofline::launched(&place)
            ),
            place,
            gain: Some(gain),
            severity: Severity::of_gain(&gain),
            certainty: Certainty::seen(confidence),
            evidence: vec![
                Evidence::at("the first softmax", None, work.start[first], work.end(first)),
                Evidence::new(format!(
                    "{} kernels between {} matmuls; fused attention has {} of kernel time",
                    phrase::count(between as u64),
                    phrase::count(products as u64),
                    phrase::percent(fused)
                )),
                Evidence::new(known),
            ],
            actions: vec![
                Action::torch(
                    "Use fused attention: torch.nn.functional.scaled_dot_product_attention(q, k, v), with is_causal=True in place of a causal mask, in torch.bfloat16 or torch.float16.",
                ),
                Action::torch("In transformers: AutoModel.from_pretrained(..., attn_implementation=\"sdpa\")."),
                Action::torch(
                    "Find out why it is rejected: with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION): ... prints the reason; masks, FP32 and heads wider than 256 are the usual ones.",
                ),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

/// With a sentence about what it rests on.
fn gain(unfused: UnfusedAttention, case: &Case, device: &StepKernels) -> (Gain, String) {
    let fp32 = |index: &u32| {
        let kind = device.kind(case, *index as usize);
        kind.math == Some(Math::F32) && kind.tensor_cores == Some(false)
    };
    let plain = unfused.products.iter().all(fp32);
    let peaks = device.peaks(case);
    let by_shapes = peaks.as_ref().and_then(|peaks| by_shapes(&unfused, case, peaks, plain));
    let products = by_shapes.or_else(|| by_peaks(peaks.as_ref().filter(|_| plain)?)).unwrap_or_else(|| Products {
        left: Left { best: 1.0, usual: 1.0, worst: 1.0 },
        by: GainBy::Replay,
        words: "the matmuls stay as they are: shapes would show what a fused kernel needs for them".into(),
    });
    let softmax: HashSet<u32> = unfused.softmax.into_iter().collect();
    let (softmax, others) = unfused.between.into_iter().partition(|index| softmax.contains(index));
    let mut changes = vec![
        (others, Left { best: 0.0, usual: 0.0, worst: 0.0 }),
        (softmax, Left { best: 0.0, usual: 0.0, worst: 1.0 }),
        (unfused.products, products.left),
    ];
    // The math backend turns half precision into FP32 and back: a fused kernel multiplies as it is.
    if plain && products.by != GainBy::Replay {
        changes.push((unfused.before, Left { best: 0.0, usual: 0.0, worst: 1.0 }));
    }
    let gain = case.gain_of_work(device, changes);
    (Gain { by: if products.by == GainBy::Replay { gain.by } else { products.by }, ..gain }, products.words)
}

/// By the arithmetic of the products. None: some have no operator with shapes.
fn by_shapes(unfused: &UnfusedAttention, case: &Case, peaks: &Peaks, plain: bool) -> Option<Products> {
    let those: HashSet<u32> = unfused.products.iter().copied().collect();
    let (mut floor, mut ns, mut known) = (0.0, 0u64, 0usize);
    let mut math = None;
    for group in case.ops().groups.iter().filter(|group| group.cost.what == What::Matmul) {
        let pieces = group.work.iter().filter(|index| those.contains(index)).count();
        if pieces == 0 {
            continue;
        }
        let fused = if plain { Math::F16 } else { group.cost.math };
        let part = pieces as f64 / group.work.len() as f64;
        floor += part * group.calls as f64 * group.cost.flops / (peaks.math(fused)? * 1e3);
        ns = ns.saturating_add((part * group.ns as f64) as u64);
        known += pieces;
        math = Some(fused);
    }
    let (math, ns) = (math.filter(|_| known == those.len())?, ns.max(1) as f64);
    let reach = reach::of(case, peaks, What::Attention, math, true, |_| true);
    let left = Left { best: (floor / ns).min(1.0), usual: (floor / ns / reach.part).min(1.0), worst: 1.0 };
    Some(Products { left, by: reach.by, words: reach.words })
}

fn ns(unfused: &UnfusedAttention, case: &Case) -> u64 {
    let dur = &case.timeline.gpu.work.dur;
    unfused.between.iter().chain(&unfused.products).map(|index| dur[*index as usize]).fold(0, u64::saturating_add)
}

/// What becomes of the products in a fused kernel, and how that is known.
struct Products {
    left: Left,
    by: GainBy,
    words: String,
}

/// Products in FP32, without shapes: how many operations they are is not known, only how many each unit does.
fn by_peaks(peaks: &Peaks) -> Option<Products> {
    let (plain, fused) = (reach::FP32_PRODUCTS, reach::FUSED_ATTENTION);
    let ratio = peaks.math(Math::F32)? * plain.part / (peaks.math(Math::F16)? * fused.part);
    let words = format!("shapes not recorded; measured elsewhere: {}, {}", plain.words, fused.words);
    Some(Products { left: Left { best: 0.0, usual: ratio.min(1.0), worst: 1.0 }, by: GainBy::Prior, words })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn steps(kernels: &[(&str, u64)]) -> String {
        let mut text =
            String::from("device 0 NVIDIA_H200\n track main\n repeat 20 every 2ms\n step r 0..1ms\n stream 7\n");
        let mut at = 20;
        for (place, (name, us)) in kernels.iter().enumerate() {
            text += &format!("api cudaLaunchKernel {place}us..{}us\n kernel {name} {at}us..{}us\n", place + 1, at + us);
            at += us;
        }
        text + "api cudaStreamSynchronize 15us..999us\n end"
    }

    #[test]
    fn product_softmax_product() {
        let text = steps(&[
            ("nvjet_tst_128x128_a", 100),
            ("elementwise_kernel<div>", 100),
            ("softmax_warp_forward<float>", 200),
            ("nvjet_tst_128x64_b", 100),
            ("nvjet_tst_128x256_mlp", 400),
        ]);
        let found = found(&AttentionFallback, &text);
        assert_eq!(found[0].title, "Unfused attention takes 50 % of the step: once matmul, softmax, matmul");
        let gain = found[0].gain.unwrap();
        // At worst the softmax stays.
        assert!((gain.mid - 30.0).abs() < 2.0 && (gain.low - 10.0).abs() < 1.0 && gain.high < 32.0, "{gain:?}");
        assert_eq!(gain.by, GainBy::Replay);
    }

    #[test]
    fn shapes_say_how_much_arithmetic_a_fused_kernel_has() {
        let op = |at: u64, dims: &str| {
            format!("op aten::bmm {at}us..{}us dims {dims} type c10::BFloat16/c10::BFloat16", at + 4)
        };
        // 2 × 0.0687 TFLOP: 0.139 ms at the data sheet's speed.
        let products = ["64,2048,128/64,128,2048", "64,2048,2048/64,2048,128"];
        let mut text =
            String::from("device 0 NVIDIA_H200\n track main\n repeat 20 every 4ms\n step r 0..3ms\n stream 7\n");
        text += &format!("{}\n api cudaLaunchKernel 1us..3us\n kernel nvjet_tst_a 20us..720us\n", op(0, products[0]));
        text += "api cudaLaunchKernel 5us..6us\n kernel softmax_warp_forward<float> 720us..1020us\n";
        text +=
            &format!("{}\n api cudaLaunchKernel 11us..13us\n kernel nvjet_tst_b 1020us..1720us\n", op(10, products[1]));
        let text = text + "api cudaStreamSynchronize 15us..2990us\n end";
        let finding = found(&AttentionFallback, &text).remove(0);
        let gain = finding.gain.unwrap();
        // The 300 µs between go, and of 1,400 all but 139 / 0.47 = 296 µs, at best all but 139.
        assert!(gain.by == GainBy::Prior && (gain.mid - 46.8).abs() < 1.0, "{gain:?}");
        assert!((gain.high - 52.0).abs() < 1.5 && gain.low < 1.0, "{gain:?}");
        assert!(finding.evidence[2].text.contains("464 of 989 TFLOP/s"), "{:?}", finding.evidence);
    }

    #[test]
    fn the_math_backend_in_fp32_becomes_a_kernel_in_half_precision() {
        let product = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_ffma";
        let (copy, guard) = ("elementwise_kernel<direct_copy>", "vectorized_elementwise_kernel<isneginf>");
        let text = steps(&[
            ("nvjet_tst_128x256_mlp", 200),
            (copy, 50),
            (copy, 50),
            (product, 200),
            ("softmax_warp_forward<float>", 50),
            (guard, 50),
            ("reduce_kernel<and>", 10),
            (guard, 10),
            (guard, 50),
            (copy, 20),
            (product, 200),
        ]);
        let finding = found(&AttentionFallback, &text).remove(0);
        let gain = finding.gain.unwrap();
        // 190 µs between, 100 before, and nine tenths of 400 for the products; at best all of it, at worst 140 between.
        assert!(gain.by == GainBy::Prior && (gain.mid - 65.0).abs() < 2.0, "{gain:?}");
        assert!((gain.high - 69.0).abs() < 2.0 && (gain.low - 14.0).abs() < 2.0, "{gain:?}");
        assert!(finding.evidence[2].text.contains("on an H200"), "{:?}", finding.evidence);
    }

    #[test]
    fn silent_when_fused_when_nothing_follows_and_when_something_is_chosen() {
        silent(
            &AttentionFallback,
            &steps(&[("nvjet_tst_128x128_a", 300), ("flash_fwd_kernel", 200), ("nvjet_tst_128x64_b", 300)]),
        );
        silent(&AttentionFallback, &steps(&[("nvjet_tst_128x128_a", 300), ("softmax_warp_forward<float>", 200)]));
        silent(
            &AttentionFallback,
            &steps(&[
                ("nvjet_tst_128x128_a", 100),
                ("softmax_warp_forward<float>", 200),
                ("gatherTopK<float>", 100),
                ("nvjet_tst_128x64_b", 300),
            ]),
        );
        silent(&AttentionFallback, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
