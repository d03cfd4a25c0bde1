//! `short-kernel-gaps`: between kernels that are queued already the GPU loses time, because there are so many of them.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::measures::gap::{self, GapWords};
use crate::measures::{capture, compiled};
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::step_kernels::StepKernels;
use analysis::idle::Measure;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::percentile;
use analysis::stats::share::Share;
use replay::Change;
use replay::gain::{Gain, GainBy};

pub const CODE: RuleCode = RuleCode::new("short-kernel-gaps");

pub struct ShortKernelGaps;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "gaps of a microsecond between kernels are unavoidable; a twentieth of the step is worth fusing kernels for",
);
const MIN_KERNELS: Threshold =
    Threshold::new(CODE, "min_kernels", 8.0, Unit::Count, "with fewer kernels per step there is nothing to merge");

impl Rule for ShortKernelGaps {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_KERNELS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The GPU is idle for {min_share} of the step or more between kernels that were already queued.",
            why: "Starting a kernel takes the GPU a moment even if it was launched long before. With many short kernels these moments add up. Fewer kernels have fewer gaps: the gain is at most all of them, and at least what would be saved if each gap were as short as the shortest twentieth in this recording.",
            needs: "GPU operations with their launch calls (`--gpu-detail launch`).",
            example: "GPU idle 14 % of the step between queued kernels: 212 gaps per step, 1.40 µs each (median)",
        }
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Launch)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Fuse small kernels, by hand or with the library's fused operations.",
            "Replay the step as a CUDA graph, whose kernels start closer together: cudaStreamBeginCapture, cudaGraphLaunch.",
        ]
    }

    fn edit(&self) -> Option<Edit> {
        Some(capture::EDIT)
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = gap::without_launches(case) {
            return Verdict::Abstain(reason);
        }
        let Some(gap) = gap::most(case, Measure::QueuedGap).filter(|gap| gap.share.mid >= case.threshold(MIN_SHARE))
        else {
            return Verdict::Silent;
        };
        let sums = &gap.device.sums;
        let mut gaps = sums.queued_gaps.clone();
        gaps.sort_unstable();
        let (each, median) = (sums.queued as f64 / case.steps.count().max(1) as f64, percentile(&gaps, 50));
        // Longer gaps are no start of a kernel: the queue waits for something that was not recorded.
        if each < case.threshold(MIN_KERNELS)
            || median >= case.kernels_in_steps(gap.device.process, gap.device.ordinal).median_ns
        {
            return Verdict::Silent;
        }
        let shortest = sums.queued as f64 * percentile(&gaps, 5) as f64 / gap.tally.whole.max(1.0);
        let low = (gap.share.low - shortest).max(0.0);
        let gain = Share { low, mid: low.midpoint(gap.share.high), high: gap.share.high };
        let title = format!(
            "GPU idle {} of {} between queued kernels: {} gaps per step, {} each (median)",
            phrase::percent(gap.share.mid),
            case.the_step(),
            gap::each(each),
            phrase::duration(median)
        );
        let gain = case.gain(&[Change::CloseGaps], gain);
        let gain = if case.replayed(&gain) { gain } else { Gain { by: GainBy::Bounded, ..gain } };
        let own = |one: &&StepKernels| (one.process, one.ordinal) == (gap.device.process, gap.device.ordinal);
        let needs = case.kernels().iter().find(own).map(|device| capture::of_steps(case, device)).unwrap_or_default();
        let words = GapWords {
            title,
            place: Place::default(),
            evidence: gap.evidence(case, "the next kernel was launched but had not started"),
            actions: vec![
                Action::torch("Fuse small kernels")
                    .by("torch.compile(model), or the library's fused operations.")
                    .needs([compiled::not_yet(case)]),
                Action::torch("Replay the step as a CUDA graph, whose kernels start closer together")
                    .by("torch.compile(model, mode=\"reduce-overhead\").")
                    .needs(needs),
            ],
        };
        gap.finding(case, CODE, gain, words).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    /// The host is far ahead; kernels of 8 µs start 2 µs after each other, now and then 1 µs.
    fn steps(kernels: usize) -> String {
        let mut text = String::from("track main\n repeat 20 every 2ms\n step token 0..1ms\n stream 7\n");
        let mut free = 100;
        for number in 0..kernels {
            let gap = if number % 8 == 0 { 1 } else { 2 };
            text += &format!(
                "api cudaLaunchKernel {0}us..{1}us\n kernel add {2}us..{3}us\n",
                number,
                number + 1,
                free + gap,
                free + gap + 8
            );
            free += gap + 8;
        }
        text + &format!("api cudaStreamSynchronize 90us..{}us\n end", free + 5)
    }

    #[test]
    fn many_gaps_between_queued_kernels() {
        let found = found(&ShortKernelGaps, &steps(80));
        assert_eq!(
            found[0].title,
            "GPU idle 15 % of the step between queued kernels: 79 gaps per step, 2.00 µs each (median)"
        );
        let gain = found[0].gain.unwrap();
        assert!(gain.low < gain.mid && gain.mid < gain.high && gain.mid > 5.0, "{gain:?}");
    }

    #[test]
    fn silent_with_few_kernels_with_one_graph_and_without_a_gpu() {
        silent(&ShortKernelGaps, &steps(6));
        silent(
            &ShortKernelGaps,
            "track main\n step r 0..1ms\n api cudaGraphLaunch 0..10us\n stream 7\n kernel k 20us..1ms",
        );
        silent(&ShortKernelGaps, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_launches() {
        abstains(
            &ShortKernelGaps,
            "track main\n step r 0..1ms\n stream 7\n kernel k 0..1us corr 0",
            "launch calls not recorded",
        );
    }
}
