//! `below-roofline`: operators that take far longer than the device needs for their arithmetic or their bytes, most to save first.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::compiled;
use crate::measures::confidence;
use crate::measures::proof;
use crate::measures::reach::{self, Reach, SHORT_NS};
use crate::measures::roofline;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Math;
use analysis::device::ops::{Group, What};
use analysis::device::peaks::Peaks;
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use analysis::place::Place;
use replay::gain::Left;
use replay::gain::{Gain, GainBy};
use std::collections::{HashMap, HashSet};

pub const CODE: RuleCode = RuleCode::new("below-roofline");

pub struct BelowRoofline;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "of the step, saved by all of them together: less is within the uncertainty of the peaks",
);

const MAX_SPEED_SHARE: Threshold = Threshold::new(
    CODE,
    "max_speed_share",
    0.5,
    Unit::Share,
    "of what good kernels reach: what good is differs by less from size to size",
);
const MIN_CALL_NS: Threshold = Threshold::new(
    CODE,
    "min_call_ns",
    SHORT_NS as f64,
    Unit::Nanoseconds,
    "shorter calls cost their start and their end, whatever they compute",
);
const MAX_SHOWN: usize = 5;

impl Rule for BelowRoofline {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MAX_SPEED_SHARE]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MIN_CALL_NS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Operators at less than {max_speed_share} of the speed that good kernels reach could save {min_share} of the step or more.",
            why: "Tensor sizes and dtypes give the operations and bytes an operator needs; the GPU's data sheet gives the least time for these. Good kernels reach the speed of the fastest operator of the same kind and dtype in the recording or, where there is none, the speed measured on an H200 (72 % of the arithmetic, 89 % of the bandwidth). Calls of {min_call_ns} or more that reach less than {max_speed_share} of that are listed, largest end-to-end saving first: the recorded steps are replayed with each at that speed; at best at the data sheet's, at worst as they are, because the trace does not show what limits them.",
            needs: "Operators with shapes (`--ops`, on by default for PyTorch, or torch.profiler with `record_shapes=True`), and a GPU in the table of peaks.",
            example: "aten::bmm [96, 50, 64] [96, 64, 50] runs at 11 % of the GPU's peak and takes 22 % of the step",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some(device) = case
            .kernels()
            .iter()
            .max_by_key(|device| device.rows.iter().map(|row| row.ns).fold(0, u64::saturating_add))
        else {
            return Verdict::Silent;
        };
        if case.ops().groups.is_empty() {
            return Verdict::NeedsTorch(
                "operator shapes not recorded (torch.profiler writes them with record_shapes=True)".into(),
            );
        }
        let Some(peaks) = device.peaks(case) else {
            return Verdict::Abstain("the GPU is not in the table of peaks".into());
        };
        // By what operators do, in which type, and what limits them: a recording may have thousands of groups.
        let mut reaches: HashMap<(What, Math, bool), Reach> = HashMap::new();
        let mut reach = |group: &Group, math: bool| {
            let key = (group.cost.what, group.cost.math, math);
            let find = || reach::of(case, &peaks, key.0, key.1, math, |_| true);
            reaches.entry(key).or_insert_with(find).clone()
        };
        let most = case.threshold(MAX_SPEED_SHARE);
        let groups = case.ops().groups.iter();
        let mut slow: Vec<Slow> = groups.filter_map(|group| Slow::of(group, &peaks, most, &mut reach)).collect();
        slow.sort_by(|a, b| b.saved_ns.total_cmp(&a.saved_ns));
        slow.truncate(MAX_SHOWN);
        let saved: f64 = slow.iter().map(|one| one.saved_ns).sum();
        match slow.first() {
            Some(first) if saved >= case.threshold(MIN_SHARE) * device.window_ns as f64 => {
                finding(case, device, &peaks, &slow, first).into()
            }
            _ => Verdict::Silent,
        }
    }
}

struct Slow<'a> {
    group: &'a Group,
    /// What is left at the speed of the data sheet, and of good kernels.
    peak: f64,
    good: f64,
    saved_ns: f64,
    reach: Reach,
}

impl<'a> Slow<'a> {
    fn of(
        group: &'a Group,
        peaks: &Peaks,
        most: f64,
        reach: &mut impl FnMut(&Group, bool) -> Reach,
    ) -> Option<Slow<'a>> {
        let (floor, math) = group.floor_ns(peaks)?;
        let peak = floor / group.ns.max(1) as f64;
        let reach = reach(group, math);
        let good = peak / reach.part;
        // A call takes no less than its start and its end.
        let good = good.max(SHORT_NS as f64 / 2.0 * group.calls as f64 / group.ns.max(1) as f64);
        let long = group.ns / group.calls.max(1) >= SHORT_NS;
        (long && good < most).then_some(Slow { group, peak, good, saved_ns: group.ns as f64 * (1.0 - good), reach })
    }
}

fn finding(case: &Case, device: &StepKernels, peaks: &Peaks, slow: &[Slow], first: &Slow) -> Finding {
    let name = case.timeline.names.text(first.group.name);
    let ns: u64 = slow.iter().map(|one| one.group.ns).fold(0, u64::saturating_add);
    let changes =
        slow.iter().map(|one| (one.group.work.clone(), Left { best: one.peak, usual: one.good, worst: 1.0 })).collect();
    let gain = case.gain_of_work(device, changes);
    let gain =
        if slow.iter().any(|one| one.reach.by == GainBy::Prior) { Gain { by: GainBy::Prior, ..gain } } else { gain };
    let pieces: HashSet<u32> = slow.iter().flat_map(|one| one.group.work.iter().copied()).collect();
    let tally = device.tally(case, |index| pieces.contains(&(index as u32)));
    let mut evidence: Vec<Evidence> = slow
        .iter()
        .map(|one| {
            let math = peaks.math(one.group.cost.math).unwrap_or(0.0);
            let text = format!(
                "{}; {} calls",
                roofline::speed(case, one.group, math, peaks.bandwidth),
                phrase::count(one.group.calls)
            );
            let at = one.group.work.first().map_or(0, |index| *index as usize);
            Evidence::at(text, None, case.timeline.gpu.work.start[at], case.timeline.gpu.work.end(at))
        })
        .collect();
    evidence.push(Evidence::new(first.reach.words.clone()).number("reach", first.reach.part));
    Finding {
        code: CODE,
        title: format!(
            "{name} {} runs at {} of the GPU's peak and takes {} of {}{}",
            first.group.shapes,
            phrase::percent(first.peak),
            phrase::percent(first.group.ns as f64 / device.window_ns.max(1) as f64),
            case.the_step(),
            if slow.len() > 1 {
                format!(
                    " (with {} more operators: {})",
                    slow.len() - 1,
                    phrase::percent(ns as f64 / device.window_ns.max(1) as f64)
                )
            } else {
                String::new()
            }
        ),
        place: Place { kernel: Some(case.timeline.names.text(first.group.kernel).to_owned()), ..Place::default() },
        gain: Some(gain),
        severity: Severity::of_gain(&gain),
        certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
        evidence,
        actions: vec![
            Action::torch(
                "Batch more work per call: a larger batch, or one call for several (torch.bmm, grouped products).",
            ),
            Action::torch("Let the compiler choose another kernel: torch.compile(model, mode=\"max-autotune\").")
                .needs([compiled::not_yet(case)]),
            format!(
                "Profile the kernel: ncu --set full --kernel-name regex:\"{}\" <command>.",
                case.timeline
                    .names
                    .text(first.group.kernel)
                    .chars()
                    .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_')
                    .collect::<String>()
            )
            .into(),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(device: &str, end: &str, op: &str) -> String {
        format!(
            "device 0 {device}\n track main\n repeat 20 every 10ms\n step r 0..10ms\n {op}\n api cudaLaunchKernel 10us..20us\n stream 7\n\
             kernel nvjet_tst_128x256_64x4_h_bz_NTN 40us..{end}\n api cudaStreamSynchronize 40us..9.9ms\n end"
        )
    }
    const MM: &str = "op aten::mm 0..30us dims 4096,4096/4096,4096 type c10::BFloat16/c10::BFloat16";

    #[test]
    fn a_product_at_a_small_part_of_the_peak() {
        // 0.14 TFLOP: 0.14 ms at the peak, 0.19 at the 72 % of it that were seen elsewhere.
        let found = found(&BelowRoofline, &steps("NVIDIA_H200", "5040us", MM));
        assert_eq!(
            found[0].title,
            "aten::mm [4096, 4096] [4096, 4096] runs at 2.8 % of the GPU's peak and takes 50 % of the step"
        );
        let gain = found[0].gain.unwrap();
        assert!((gain.mid - 48.0).abs() < 1.5 && gain.low == 0.0 && gain.by == GainBy::Prior, "{gain:?}");
        assert!(found[0].evidence[1].text.contains("713 of 989 TFLOP/s (72 %) on an H200"), "{:?}", found[0].evidence);
        assert!(found[0].evidence[0].text.contains("27 of 989 TFLOP/s"), "{}", found[0].evidence[0].text);
    }

    #[test]
    fn the_fastest_of_the_same_kind_in_the_recording_is_the_measure() {
        // The same sizes in 0.28 ms: half of the data sheet.
        let steps = |fast: &str| {
            format!(
                "device 0 NVIDIA_H200\n track main\n repeat 20 every 10ms\n step r 0..10ms\n {MM}\n api cudaLaunchKernel 10us..20us\n stream 7\n\
                 kernel nvjet_tst_slow 40us..5040us\n {fast}\n api cudaStreamSynchronize 100us..9.9ms\n end"
            )
        };
        let fast = "op aten::mm 40us..70us dims 4096,8192/8192,2048 type c10::BFloat16/c10::BFloat16\n api cudaLaunchKernel 50us..60us\n\
                    kernel nvjet_tst_fast 5100us..5378us";
        let found = found(&BelowRoofline, &steps(fast));
        let gain = found[0].gain.unwrap();
        assert!(gain.by == GainBy::Replay && (gain.mid - 47.2).abs() < 1.0 && gain.low == 0.0, "{gain:?}");
        let said = &found[0].evidence.last().unwrap().text;
        assert!(said.starts_with("aten::mm [4096, 8192] [8192, 2048] of this recording reaches 50 %"), "{said}");
    }

    #[test]
    fn silent_at_the_speed_that_good_kernels_reach() {
        silent(&BelowRoofline, &steps("NVIDIA_H200", "230us", MM));
        silent(&BelowRoofline, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_shapes_and_without_peaks() {
        abstains(&BelowRoofline, &steps("NVIDIA_H200", "5ms", ""), "record_shapes=True");
        abstains(&BelowRoofline, &steps("NVIDIA_X9", "5ms", MM), "not in the table");
    }
}
