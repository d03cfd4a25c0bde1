//! `work-from-before-window`: devices did work in the recording that was launched before it.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::health::dropped_records;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::GpuMetrics;
use analysis::phrase;
use analysis::place::Place;
use timeline::WorkKind;

pub const CODE: RuleCode = RuleCode::new("work-from-before-window");

pub struct WorkFromBeforeWindow;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.01, Unit::Share, "a queue holds less than this at the moment recording begins");

const OURS: &str = "Start recording before the work is launched: inferscope run -- ..., rather than attaching later.";
const TORCH: &str = "Synchronise before the profiler starts, torch.cuda.synchronize(), and let it warm up: schedule(wait=1, warmup=2, active=5).";
const NSIGHT: &str = "Synchronise where the recorded range begins: cudaDeviceSynchronize() before cudaProfilerStart().";

impl Rule for WorkFromBeforeWindow {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "GPUs spent {min_share} of their time or more on work whose launch was not recorded.",
            why: "Work is linked to the call that launched it by a number that both carry. Work without a call was launched before recording began, or its call was lost: it keeps the GPU busy, but belongs to no step, range, line or layer, so those are underestimated.",
            needs: "GPU operations with their launches (`--gpu-detail launch`, the default).",
            example: "12 % of GPU time has no recorded launch: steps, ranges and layers are underestimated",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        // Where the clock puts work before its launch, `clock-residual` says so.
        let known = |metrics: &&GpuMetrics| metrics.before_window > 0 && metrics.clock.early == 0;
        let Some(metrics) = case.gpu().filter(known) else { return Verdict::Silent };
        let work = &case.timeline.gpu.work;
        let (mut without, mut all, mut first, mut last) = (0u64, 0u64, u64::MAX, 0);
        for index in 0..work.len() {
            if !matches!(work.kind(index), WorkKind::Kernel | WorkKind::Memcpy | WorkKind::Memset) {
                continue;
            }
            all = all.saturating_add(work.dur[index]);
            if work.launch(index).is_none() {
                without = without.saturating_add(work.dur[index]);
                (first, last) = (first.min(work.start[index]), last.max(work.end(index)));
            }
        }
        let share = without as f64 / all.max(1) as f64;
        if share < case.threshold(MIN_SHARE) {
            return Verdict::Silent;
        }
        let pieces = phrase::counted(metrics.before_window, "GPU operation");
        let text = format!("{pieces}, {} of GPU time", phrase::duration(without));
        let finding = Finding {
            code: CODE,
            title: format!(
                "{} of GPU time has no recorded launch: steps, ranges and layers are underestimated",
                phrase::percent(share)
            ),
            place: Place::default(),
            gain: None,
            severity: Severity::Info,
            certainty: Certainty::seen(1.0), // Counted.
            evidence: vec![Evidence::at(text, None, first, last).number("ns", without as f64)],
            actions: vec![
                case.timeline.info.recorded_by.choose(OURS, TORCH, NSIGHT).into(),
                format!("If records were lost, see {}.", dropped_records::CODE).into(),
            ],
            verify: "Record again: Data quality should no longer mention work from before the recording.".into(),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    #[test]
    fn work_without_a_launch_is_said() {
        let found = found(
            &WorkFromBeforeWindow,
            "track main\n step r 0..1ms\n stream 7\n kernel old 0..100us corr 0\n api cudaLaunchKernel 1us..2us\n kernel k 100us..1ms",
        );
        assert!(found[0].title.starts_with("10 % of GPU time"), "{}", found[0].title);
    }

    #[test]
    fn silent_when_all_is_linked_when_no_launch_was_recorded_and_without_a_device() {
        silent(
            &WorkFromBeforeWindow,
            "track main\n step r 0..1ms\n api cudaLaunchKernel 1us..2us\n stream 7\n kernel k 100us..1ms",
        );
        silent(&WorkFromBeforeWindow, "track main\n step r 0..1ms\n stream 7\n kernel k 100us..1ms corr 0");
        silent(&WorkFromBeforeWindow, "track main\n step r 0..1ms");
    }

    #[test]
    fn silent_when_only_the_clock_puts_it_before() {
        silent(
            &WorkFromBeforeWindow,
            "track main\n step r 0..90ms\n api cudaLaunchKernel 1ms..2ms\n stream 7\n kernel k 3ms..4ms
             repeat 5 every 1ms\n api cudaLaunchKernel 60ms..60005us\n kernel early 10ms..11ms\n end",
        );
    }
}
