//! `unaligned-matmul`: matrix products whose rows do not start at multiples of 16 bytes, so that slower kernels have to be used.

use super::roofline;
use crate::finding::{Evidence, Finding, Severity};
use crate::kernel_kind::{Class, Kind, Math};
use crate::ops::Group;
use crate::peaks::{Peaks, REACHED_MATH};
use crate::phrase;
use crate::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::step_kernels::{self, Left};

pub struct UnalignedMatmul;

const LEVEL: f64 = 0.05;

impl Rule for UnalignedMatmul {
    fn code(&self) -> &'static str {
        "unaligned-matmul"
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Matrix products whose operands are not aligned to 16 bytes take 5 % of the step or more.",
            why: "Tensor cores are fed with loads of 16 bytes: 8 elements of half precision, 4 of FP32. Where the inner side or the columns of a product are no multiple \
                  of that (a vocabulary of 30,522, a width of 1,023), libraries fall back to kernels that load piece by piece; their names say so (`align1`, `align2`). \
                  With shapes, the gain is what is above the data sheet's time for the same product (at the 80 % of it that good kernels reach); without them \
                  it is what such kernels lost where that was measured: on devices since Hopper four fifths of their time with an alignment of one element, three fifths with more; on older ones a half and a quarter. \
                  The recorded steps are replayed with that.",
            needs: "GPU work whose kernels' names say their alignment.",
            example: "Products with unaligned sides take 24 % of the step: cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2, 30522 columns",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let device = step_kernels::most(case, |row| unaligned(&row.kind)).filter(|(_, share)| *share >= LEVEL);
        let Some((device, share)) = device else { return Verdict::Silent };
        let fitting = |index: usize| unaligned(&device.kind(case, index));
        let Some(row) = device.rows.iter().find(|row| unaligned(&row.kind)) else { return Verdict::Silent };
        let groups: Vec<&Group> =
            case.ops().groups.iter().filter(|group| group.work.iter().any(|index| fitting(*index as usize))).collect();
        let left = device.peaks(case).and_then(|peaks| by_shapes(&groups, &peaks));
        let by_shapes = left.is_some();
        let left = left.unwrap_or_else(|| by_name(row.kind.align, device.peaks(case)));
        let gain = device.gain(case, vec![(device.pieces(case, fitting), left)]);
        let odd = groups.first().and_then(|group| odd_side(group));
        let place = roofline::place(case, row);
        let mut evidence = vec![
            Evidence::said(format!(
                "{} of them a step; rows are aligned to {} of {} elements",
                phrase::count(device.per_step(case, |row| unaligned(&row.kind)).round() as u64),
                row.kind.align.unwrap_or(1),
                row.kind.math.map_or(8, |math| 16 / math.bytes())
            ))
            .number("share", share),
        ];
        evidence.extend(
            groups
                .first()
                .map(|group| Evidence::said(format!("{} {}", case.timeline.names.text(group.name), group.shapes))),
        );
        let finding = Finding {
            code: self.code(),
            title: format!(
                "Products with unaligned sides take {} of {}: {}{}{}",
                phrase::percent(share),
                case.the_step(),
                step_kernels::short(case.timeline.names.text(row.name)),
                odd.map_or(String::new(), |(side, what)| format!(", {side} {what}")),
                roofline::launched(&place)
            ),
            place,
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            confidence: if by_shapes { 1.0 } else { 0.9 } * device.tally(case, fitting).repeats(),
            evidence,
            actions: actions(odd),
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

fn unaligned(kind: &Kind) -> bool {
    kind.class == Class::Matmul && kind.tensor_cores == Some(true) && kind.unaligned() == Some(true)
}

/// What is left by the alignment alone. Devices since Hopper feed their tensor cores by bulk copies, which know nothing but full alignment: on an
/// H200 products 4,095 wide took 5.4 times as long as 4,096 wide ones. Older devices only lose by smaller loads.
fn by_name(align: Option<u32>, peaks: Option<Peaks>) -> Left {
    let bulk = peaks.is_some_and(|peaks| peaks.math(Math::F8).is_some() && peaks.bandwidth > 2000.0);
    match (bulk, align) {
        (true, Some(0 | 1)) => Left { best: 0.15, usual: 0.18, worst: 0.5 },
        (true, _) => Left { best: 0.25, usual: 0.4, worst: 0.8 },
        (false, Some(0 | 1)) => Left { best: 0.3, usual: 0.5, worst: 0.9 },
        (false, _) => Left { best: 0.5, usual: 0.75, worst: 1.0 },
    }
}

/// What is left at the speed that good kernels reach. None: no shapes.
fn by_shapes(groups: &[&Group], peaks: &Peaks) -> Option<Left> {
    let ns: u64 = groups.iter().map(|group| group.ns).fold(0, u64::saturating_add);
    let floor = groups.iter().map(|group| group.floor_ns(peaks).map(|floor| floor.0)).sum::<Option<f64>>()?;
    let best = floor / ns.max(1) as f64;
    (ns > 0).then(|| Left {
        best: best.min(1.0),
        usual: (best / REACHED_MATH).min(1.0),
        worst: (1.5 * best / REACHED_MATH).min(1.0),
    })
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

fn actions(odd: Option<(u64, &str)>) -> Vec<String> {
    let next = odd.map(|(side, _)| format!(": {side} to {}", side.checked_next_multiple_of(64).unwrap_or(side)));
    vec![
        format!(
            "Pad the side to a multiple of 64 once, when the model is loaded{}; for a vocabulary model.resize_token_embeddings(n, pad_to_multiple_of=64).",
            next.unwrap_or_default()
        ),
        "Choose widths, heads and batches that are multiples of 8 (16 for FP8), and give F.linear contiguous tensors."
            .into(),
        "Let the compiler pad: torch._inductor.config.shape_padding = True, then torch.compile(model).".into(),
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
        assert_eq!(found[0].title, format!("Products with unaligned sides take 50 % of the step: {ODD}"));
        let gain = found[0].gain.unwrap();
        assert!(gain.low < gain.mid && (gain.mid - 29.9).abs() < 1.0 && gain.high < 40.0, "{gain:?}");
        assert!(found[0].evidence[0].text.contains("aligned to 2 of 8 elements"));
    }

    #[test]
    fn shapes_name_the_side_and_give_the_time_that_is_left() {
        let op = "op aten::mm 0..30us dims 4096,4096/4096,30522 type c10::BFloat16/c10::BFloat16";
        let found = found(&UnalignedMatmul, &steps(ODD, op));
        assert!(found[0].title.ends_with(", 30522 columns"), "{}", found[0].title);
        assert!(found[0].actions[0].contains("30522 to 30528"), "{}", found[0].actions[0]);
        // 1.02 TFLOP at 80 % of 989 TFLOP/s is 1.3 of the 5 ms.
        assert!((found[0].gain.unwrap().mid - 36.9).abs() < 1.0, "{:?}", found[0].gain);
    }

    #[test]
    fn silent_when_aligned_and_without_a_gpu() {
        silent(&UnalignedMatmul, &steps(&ODD.replace("align2", "align8"), ""));
        silent(&UnalignedMatmul, &steps("nvjet_tst_128x256_64x4_h_bz_NTN", ""));
        silent(&UnalignedMatmul, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
