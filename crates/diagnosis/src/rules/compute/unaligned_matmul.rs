//! `unaligned-matmul`: matrix products whose rows do not start at multiples of 16 bytes, so that slower kernels have to be used.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::compiled;
use crate::measures::confidence;
use crate::measures::proof;
use crate::measures::reach;
use crate::measures::roofline;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::{Class, Kind, Math};
use analysis::device::kernel_name;
use analysis::device::ops::{Group, What};
use analysis::device::peaks::Peaks;
use analysis::phrase;
use replay::gain::Left;
use replay::gain::{Gain, GainBy};

pub const CODE: RuleCode = RuleCode::new("unaligned-matmul");

pub struct UnalignedMatmul;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.05, Unit::Share, "padding a weight is done once, when the model is loaded");

impl Rule for UnalignedMatmul {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Matrix products whose operands are not aligned to 16 bytes take {min_share} of the step or more.",
            why: "Tensor cores are fed with loads of 16 bytes: 8 elements of half precision, 4 of FP32. Where the inner dimension or the columns of a product are not a multiple of that (a vocabulary of 30,522, a width of 1,023), libraries fall back to kernels with narrower loads; their names show it (`align1`, `align2`). With shapes, the recorded steps are replayed with these products at the speed of the fastest aligned product of the same dtype in the recording or, without one, at the speed measured on an H200; at best at the data sheet's, at worst as they are. Without shapes only their own time bounds the gain: at best all of it, at worst nothing, half of it in the middle. Only for an alignment of one element on GPUs since Hopper is more known, from one H200: products 4,095 wide in BF16 reached 133 TFLOP/s, aligned ones 713.",
            needs: "GPU operations whose kernel names show their alignment.",
            example: "Unaligned matmuls take 24 % of the step: cutlass_80_tensorop_bf16_s16816gemm_bf16…, 30522 columns",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Pad the dimension to a multiple of 64 once, when the model is loaded.",
            "Choose widths, heads and batches that are multiples of 8 (16 for FP8).",
        ]
    }

    fn look(&self, case: &Case) -> Verdict {
        let device =
            case.most_kernels(|row| unaligned(&row.kind)).filter(|(_, share)| *share >= case.threshold(MIN_SHARE));
        let Some((device, share)) = device else { return Verdict::Silent };
        let fitting = |index: usize| unaligned(&device.kind(case, index));
        let Some(row) = device.rows.iter().find(|row| unaligned(&row.kind)) else { return Verdict::Silent };
        let groups: Vec<&Group> =
            case.ops().groups.iter().filter(|group| group.work.iter().any(|index| fitting(*index as usize))).collect();
        let estimate = match device.peaks(case) {
            Some(peaks) => by_shapes(case, &groups, &peaks).unwrap_or_else(|| by_name(row.kind.align, Some(&peaks))),
            None => by_name(row.kind.align, None),
        };
        let gain = case.gain_of_work(device, vec![(device.pieces(case, fitting), estimate.left)]);
        let gain = Gain { by: if estimate.by == GainBy::Replay { gain.by } else { estimate.by }, ..gain };
        let odd = groups.first().and_then(|group| odd_side(group));
        let place = roofline::place(case, row);
        let mut evidence = vec![
            Evidence::new(format!(
                "{} per step; rows are aligned to {} of {} elements",
                phrase::count(device.per_step(case, |row| unaligned(&row.kind)).round() as u64),
                row.kind.align.unwrap_or(1),
                row.kind.math.map_or(8, |math| 16 / math.bytes())
            ))
            .number("share", share),
        ];
        evidence.extend(
            groups
                .first()
                .map(|group| Evidence::new(format!("{} {}", case.timeline.names.text(group.name), group.shapes))),
        );
        evidence.push(Evidence::new(estimate.words));
        let finding = Finding {
            code: CODE,
            title: format!(
                "Unaligned matmuls take {} of {}: {}{}{}",
                phrase::percent(share),
                case.the_step(),
                kernel_name::brief(case.timeline.names.text(row.name)),
                odd.map_or(String::new(), |(side, what)| format!(", {side} {what}")),
                roofline::launched(&place)
            ),
            place,
            gain: Some(gain),
            severity: Severity::of_gain(&gain),
            certainty: Certainty::seen(confidence::of(&device.tally(case, fitting), case.threshold(MIN_SHARE))),
            evidence,
            actions: actions(case, odd),
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

fn unaligned(kind: &Kind) -> bool {
    kind.class == Class::Matmul && kind.tensor_cores == Some(true) && kind.unaligned() == Some(true)
}

/// What would be left of their time, and how that is known.
struct Estimate {
    left: Left,
    by: GainBy,
    words: String,
}

/// By the alignment alone. Devices since Hopper feed their tensor cores by bulk copies, which know nothing but full alignment; older ones only lose
/// by smaller loads.
fn by_name(align: Option<u32>, peaks: Option<&Peaks>) -> Estimate {
    let bulk = peaks.is_some_and(|peaks| peaks.math(Math::F8).is_some() && peaks.bandwidth > HBM3);
    let bounds = Left::between(0.0, 1.0);
    let (left, by, words) = match align {
        Some(0 | 1) if bulk => (
            Left { usual: SEEN_UNALIGNED / SEEN_ALIGNED, ..bounds },
            GainBy::Prior,
            "measured on an H200: products 4,095 wide in BF16 reached 133 TFLOP/s, aligned ones 713",
        ),
        _ => (bounds, GainBy::Bounded, "the recording has no aligned products to compare with"),
    };
    let words = format!("shapes not recorded, so only their own time bounds the gain; {words}");
    Estimate { left, by, words }
}

/// GB/s: of the devices with FP8, those of data centres since Hopper have memory faster than this (3,000 and more), those without bulk copies slower (at most 1,800). A
/// fact of the devices, and no level to choose.
const HBM3: f64 = 2000.0;
/// TFLOP/s of the recordings of `unaligned` and `large_gemm` in tests/traces/suite, whose sizes are known.
const SEEN_UNALIGNED: f64 = 133.0;
const SEEN_ALIGNED: f64 = 713.0;

/// At the speed of aligned products. None: no shapes.
fn by_shapes(case: &Case, groups: &[&Group], peaks: &Peaks) -> Option<Estimate> {
    let ns: u64 = groups.iter().map(|group| group.ns).fold(0, u64::saturating_add);
    let floor = groups.iter().map(|group| group.floor_ns(peaks).map(|floor| floor.0)).sum::<Option<f64>>()?;
    let (first, best) = (groups.first().filter(|_| ns > 0)?, floor / ns.max(1) as f64);
    let aligned = |group: &Group| odd_side(group).is_none() && !groups.iter().any(|one| std::ptr::eq(*one, group));
    let reach = reach::of(case, peaks, What::Matmul, first.cost.math, true, aligned);
    let left = Left { best: best.min(1.0), usual: (best / reach.part).min(1.0), worst: 1.0 };
    Some(Estimate { left, by: reach.by, words: reach.words })
}

/// The side that is no multiple, and what it is.
fn odd_side(group: &Group) -> Option<(u64, &'static str)> {
    let [_, columns, inner] = group.cost.sides?;
    let least = u64::from(16 / group.cost.math.bytes());
    match () {
        () if columns % least != 0 => Some((columns, "columns")),
        () if inner % least != 0 => Some((inner, "elements in a row")),
        () => None,
    }
}

fn actions(case: &Case, odd: Option<(u64, &str)>) -> Vec<Action> {
    let next = odd.map(|(side, _)| format!(": {side} to {}", side.checked_next_multiple_of(64).unwrap_or(side)));
    vec![
        Action::torch(format!(
            "Pad the dimension to a multiple of 64 once, when the model is loaded{}; for a vocabulary model.resize_token_embeddings(n, pad_to_multiple_of=64).",
            next.unwrap_or_default()
        )),
        Action::torch(
            "Choose widths, heads and batches that are multiples of 8 (16 for FP8), and pass contiguous tensors to F.linear.",
        ),
        Action::torch("Let the compiler pad: torch._inductor.config.shape_padding = True, then torch.compile(model).")
            .needs([compiled::not_yet(case)]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    const ODD: &str = "cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2";

    fn steps(kernel: &str, op: &str) -> String {
        format!(
            "device 0 NVIDIA_H200\n track main\n repeat 20 every 10ms\n step r 0..10ms\n {op}\n api cudaLaunchKernel 0..10us\n stream 7\n kernel {kernel} 20us..5ms\n\
             api cudaStreamSynchronize 20us..9.9ms\n end"
        )
    }

    #[test]
    fn an_alignment_of_two_elements() {
        let found = found(&UnalignedMatmul, &steps(ODD, ""));
        assert_eq!(found[0].title, format!("Unaligned matmuls take 50 % of the step: {}", kernel_name::brief(ODD)));
        let gain = found[0].gain.unwrap();
        // Nothing tells what is left of it.
        assert!(gain.by == GainBy::Bounded && gain.low == 0.0 && (gain.mid - 24.9).abs() < 1.0, "{gain:?}");
        assert!((gain.high - 49.8).abs() < 1.0, "{gain:?}");
        assert!(found[0].evidence[0].text.contains("aligned to 2 of 8 elements"));
    }

    #[test]
    fn shapes_name_the_side_and_give_the_time_that_is_left() {
        let op = "op aten::mm 0..30us dims 4096,4096/4096,30522 type c10::BFloat16/c10::BFloat16";
        let found = found(&UnalignedMatmul, &steps(ODD, op));
        assert!(found[0].title.ends_with(", 30522 columns"), "{}", found[0].title);
        assert!(found[0].actions[0].contains("30522 to 30528"), "{}", found[0].actions[0]);
        // 1.02 TFLOP at 72 % of 989 TFLOP/s is 1.4 of the 5 ms; at the data sheet's 1.0.
        let gain = found[0].gain.unwrap();
        assert!((gain.mid - 35.5).abs() < 1.0 && (gain.high - 39.4).abs() < 1.0 && gain.low == 0.0, "{gain:?}");
        assert!(gain.by == GainBy::Prior && found[0].evidence[2].text.contains("on an H200"), "{:?}", found[0]);
    }

    #[test]
    fn an_aligned_product_of_the_recording_says_what_is_left() {
        let op = |columns: u64| {
            format!("op aten::mm 0..30us dims 4096,4096/4096,{columns} type c10::BFloat16/c10::BFloat16")
        };
        // 0.14 TFLOP in 0.232 ms: 60 % of the data sheet.
        let even = format!(
            "{}\n api cudaLaunchKernel 31us..35us\n kernel nvjet_tst_128x256_64x4_h_bz_NTN 5ms..5232us",
            op(4096).replace("0..30us", "30us..40us")
        );
        let text = steps(ODD, &op(30522))
            .replace("\napi cudaStreamSynchronize 20us", &format!("\n{even}\n api cudaStreamSynchronize 50us"));
        let found = found(&UnalignedMatmul, &text);
        let gain = found[0].gain.unwrap();
        assert!(gain.by == GainBy::Replay && (gain.mid - 32.6).abs() < 1.0, "{gain:?}");
        assert!(found[0].evidence[2].text.contains("of this recording reaches 60 %"), "{:?}", found[0].evidence);
    }

    #[test]
    fn one_element_on_a_device_that_was_seen_has_a_prior_and_others_have_bounds() {
        let of = |device: &str| {
            let text = steps(&ODD.replace("align2", "align1"), "").replace("NVIDIA_H200", device);
            let one = found(&UnalignedMatmul, &text).remove(0);
            (one.gain.unwrap(), one.evidence[1].text.clone())
        };
        let (gain, said) = of("NVIDIA_H200");
        assert!(gain.by == GainBy::Prior && (gain.mid - 40.5).abs() < 1.0 && gain.low == 0.0, "{gain:?}");
        assert!(said.contains("measured on an H200: products 4,095 wide"), "{said}");
        for device in ["NVIDIA_A100-SXM4-80GB", "NVIDIA_X9"] {
            let (gain, said) = of(device);
            assert!(gain.by == GainBy::Bounded && (gain.mid - 24.9).abs() < 1.0 && !said.contains("H200"), "{said}");
        }
    }

    #[test]
    fn silent_when_aligned_and_without_a_gpu() {
        silent(&UnalignedMatmul, &steps(&ODD.replace("align2", "align8"), ""));
        silent(&UnalignedMatmul, &steps("nvjet_tst_128x256_64x4_h_bz_NTN", ""));
        silent(&UnalignedMatmul, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
