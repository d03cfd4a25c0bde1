//! `launch-bound`: kernels are shorter than it takes to launch them, so the GPU waits for each launch.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::measures::gap::{self, GapWords};
use crate::measures::{capture, compiled};
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::step_kernels::StepKernels;
use analysis::idle::pace::USUAL_NS;
use analysis::idle::{Cause, Measure, Zone};
use analysis::phrase;
use analysis::stats::percentile;
use analysis::stats::share::Share;
use replay::Change;
use replay::gain::{Gain, GainBy};

pub const CODE: RuleCode = RuleCode::new("launch-bound");

pub struct LaunchBound;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.10, Unit::Share, "less comes and goes with the first kernels of every step");
const MIN_KERNELS: Threshold =
    Threshold::new(CODE, "min_kernels", 8.0, Unit::Count, "with fewer kernels per step there is nothing to merge");
const MAX_GAP: Threshold = Threshold::new(
    CODE,
    "max_gap",
    USUAL_NS as f64,
    Unit::Nanoseconds,
    "between two launches: longer ones are no launch overhead",
);

impl Rule for LaunchBound {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_KERNELS]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MAX_GAP]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Kernels are shorter than the time to launch them, and the GPU idles for {min_share} of the step or more waiting for launches.",
            why: "When the CPU needs longer to launch a kernel than the GPU needs to run it, the queue is empty whenever a kernel ends. A gap shorter than {max_gap} (or than four launches, where launching is slower) counts if the next launch came after the GPU was done, minus the cost of a synchronisation before it. A CUDA graph launches all kernels with one call, which needs launches that repeat from step to step with no wait and no copy of pageable memory between them: where the recording shows otherwise, the graph is not advised, and only an upper bound of the gain is given. What remains are the gaps between kernels that are already queued, measured in this recording: they are subtracted from the low end of the gain.",
            needs: "GPU operations with their launch calls (`--gpu-detail launch`).",
            example: "GPU idle 61 % of the step: kernels take 3.10 µs but are launched every 9.80 µs",
        }
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Launch)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Launch the step as one CUDA graph: capture it once with cudaStreamBeginCapture, then cudaGraphLaunch.",
            "Fuse small kernels, by hand or with the framework's compiler.",
        ]
    }

    fn edit(&self) -> Option<Edit> {
        Some(capture::EDIT)
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = gap::without_launches(case) {
            return Verdict::Abstain(reason);
        }
        let Some(gap) = gap::most(case, Measure::LaunchGap).filter(|gap| gap.share.mid >= case.threshold(MIN_SHARE))
        else {
            return Verdict::Silent;
        };
        let kernels = case.kernels_in_steps(gap.device.process, gap.device.ordinal);
        let (kernel, launch) = (kernels.median_ns, gap.device.between_launches_ns);
        let each = kernels.count as f64 / case.steps.count().max(1) as f64;
        if each < case.threshold(MIN_KERNELS) || kernel >= launch {
            return Verdict::Silent;
        }
        let sums = &gap.device.sums;
        let mut queued = sums.queued_gaps.clone();
        queued.sort_unstable();
        let left = sums.late as f64 * percentile(&queued, 50) as f64 / gap.tally.whole.max(1.0);
        let gain = Share {
            low: (gap.share.low - left).max(0.0),
            mid: gap.share.mid - (left / 2.0).min(gap.share.mid),
            ..gap.share
        };
        let fits = |zone: Zone, cause: Cause| {
            zone == Zone::Middle && matches!(cause, Cause::Python | Cause::Native | Cause::Launch)
        };
        let (place, _) = gap.top(case, fits).unwrap_or_default();
        let title = format!(
            "GPU idle {} of {}: kernels take {} but are launched every {}{}",
            phrase::percent(gap.share.mid),
            case.the_step(),
            phrase::duration(kernel),
            phrase::duration(launch),
            if place.file.is_some() { format!(" ({})", phrase::line(&place)) } else { String::new() }
        );
        let what = format!("{} gaps in which the next operation was not launched yet", phrase::count(sums.late));
        let gain = case.gain(&[Change::GraphSteps], gain);
        let gain = if case.replayed(&gain) { gain } else { Gain { by: GainBy::Bounded, ..gain } };
        let own = |one: &&StepKernels| (one.process, one.ordinal) == (gap.device.process, gap.device.ordinal);
        let needs = case.kernels().iter().find(own).map(|device| capture::of_steps(case, device)).unwrap_or_default();
        let graph = Action::torch("Launch the step as one CUDA graph")
            .by("model = torch.compile(model, mode=\"reduce-overhead\"), or torch.cuda.graph(g).")
            .needs(needs);
        // Where it cannot be one graph, fewer launches are the way: how many fewer is not known.
        let gain = if graph.fails().is_some() { gain.at_most() } else { gain };
        let words = GapWords {
            title,
            place,
            evidence: gap.evidence(case, &what),
            actions: vec![
                graph,
                Action::torch("Fuse small operations").by("torch.compile(model).").needs([compiled::not_yet(case)]),
                "Increase the batch, if requests can share a step: more work per kernel costs little while launches are the limit.".into(),
            ],
        };
        gap.finding(case, CODE, gain, words).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(kernel_us: u64, calls: bool) -> String {
        let mut text = String::from("track main\n repeat 30 every 1ms\n step token 0..400us\n stream 7\n");
        let mut free = 0;
        for number in 0..40 {
            let at = number * 10;
            let start = free.max(at + 5);
            free = start + kernel_us;
            let call = if calls { format!("api cudaLaunchKernel {at}us..{}us\n", at + 4) } else { String::new() };
            let corr = if calls { "" } else { " corr 0" };
            text += &format!("{call} kernel add {start}us..{free}us{corr}\n");
        }
        text + "samples 0..400us every 50us active gil main>decode@engine.py:9\n end"
    }

    #[test]
    fn small_kernels_launched_one_by_one() {
        let found = found(&LaunchBound, &steps(3, true));
        assert!(
            found[0]
                .title
                .starts_with("GPU idle 68 % of the step: kernels take 3.00 µs but are launched every 10.0 µs"),
            "{}",
            found[0].title
        );
        assert_eq!(found[0].place.line, Some(9));
        let gain = found[0].gain.unwrap();
        assert!(gain.low <= gain.mid && gain.mid > 60.0 && gain.high < 72.0, "{gain:?}");
    }

    #[test]
    fn silent_when_the_gpu_is_the_slower_one_and_without_one() {
        silent(&LaunchBound, &steps(12, true));
        silent(&LaunchBound, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    /// A graph cannot hold a wait: what else makes fewer launches is advised, and no more is promised than the bound.
    #[test]
    fn no_graph_is_advised_where_the_step_synchronises() {
        let plain = found(&LaunchBound, &steps(3, true));
        assert!(plain[0].actions[0].contains("CUDA graph") && plain[0].actions[0].applies() == 1.0);
        let waits = steps(3, true)
            .replace("kernel add 105us..108us", "kernel add 105us..108us\n api cudaStreamSynchronize 108.5us..109us");
        let found = found(&LaunchBound, &waits);
        let gain = found[0].gain.unwrap();
        assert_eq!(found[0].actions[0].fails(), Some("the step waits for the GPU once between its launches"));
        assert!(gain.by == GainBy::Bounded && gain.low == 0.0 && gain.mid < plain[0].gain.unwrap().mid, "{gain:?}");
    }

    #[test]
    fn abstains_without_launches() {
        abstains(&LaunchBound, &steps(3, false), "launch calls not recorded");
    }
}
