//! `collectives-serialized`: short collectives run one after the other, where one would do.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::confidence;
use crate::measures::proof;
use crate::measures::{collectives, gap};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_name;
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use analysis::place::Place;
use replay::gain::Left;
use replay::gain::{Gain, GainBy};
use std::collections::HashSet;

pub const CODE: RuleCode = RuleCode::new("collectives-serialized");

pub struct CollectivesSerialized;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "merging collectives is a small change");
const MIN_COLLECTIVES: Threshold = Threshold::new(CODE, "min_collectives", 3.0, Unit::Count, "two in a row are normal");
const MAX_COLLECTIVE_NS: Threshold = Threshold::new(
    CODE,
    "max_collective_ns",
    100_000.0,
    Unit::Nanoseconds,
    "longer ones move so many bytes that merging saves little",
);

impl Rule for CollectivesSerialized {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_COLLECTIVES, MAX_COLLECTIVE_NS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "{min_collectives} or more collectives shorter than {max_collective_ns} in a row, with no other kernel in between, could save {min_share} of the step or more.",
            why: "A short collective takes as long as all ranks need to meet, whatever it moves. Several in a row with nothing between them in their stream can be merged: tensors concatenated into one message, or calls in one group. The time that all of a row have in common with the shortest may be that meeting, which only the first and the longest need; the rest is transfer, and stays. The gain is at most the recorded steps replayed without it; at worst nothing, because the shortest moves something too; half of it in the middle.",
            needs: "GPU operations.",
            example: "6 short collectives in a row take 9.2 % of the step: ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        }
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Merge the buffers and exchange once, or group the calls: ncclGroupStart(); ... ncclGroupEnd();"]
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some((device, _)) = collectives::most(case) else { return Verdict::Silent };
        let rows = Rows::find(case, device);
        if (rows.saved_ns as f64) < case.threshold(MIN_SHARE) * device.window_ns as f64 || rows.count == 0 {
            return Verdict::Silent;
        }
        let work = &case.timeline.gpu.work;
        let first = rows.saved[0] as usize;
        let kernel = case.timeline.names.text(timeline::NameIndex(work.name[first]));
        let each = rows.kernels as f64 / rows.count as f64;
        let share = rows.ns as f64 / device.window_ns.max(1) as f64;
        let those: HashSet<u32> = rows.saved.iter().copied().collect();
        let tally = device.tally(case, |index| those.contains(&(index as u32)));
        let moved = 1.0 - rows.saved_ns as f64 / tally.part.max(1.0);
        let gain = case.gain_of_work(device, vec![(rows.saved, Left::between(moved.clamp(0.0, 1.0), 1.0))]);
        let gain = Gain { by: GainBy::Bounded, ..gain };
        let finding = Finding {
            code: CODE,
            title: format!(
                "{} short collectives in a row take {} of {}: {}",
                gap::each(each),
                phrase::percent(share),
                case.the_step(),
                kernel_name::brief(kernel)
            ),
            place: Place { kernel: Some(kernel.to_owned()), ..Place::default() },
            gain: Some(gain),
            severity: Severity::of_gain(&gain),
            certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
            evidence: vec![
                Evidence::at("one of the first", None, work.start[first], work.end(first)),
                Evidence::new(format!(
                    "{} such rows per step",
                    gap::each(rows.count as f64 / case.steps.count().max(1) as f64)
                )),
            ],
            actions: vec![
                Action::torch(
                    "Merge the tensors and exchange once: torch.cat(...) before, views after; dist.all_reduce_coalesced(list).",
                ),
                Action::torch(
                    "Group the calls: with torch.distributed._coalescing_manager(): ...; use larger gradient buckets (bucket_cap_mb).",
                ),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

#[derive(Default)]
struct Rows {
    count: usize,
    kernels: usize,
    ns: u64,
    saved: Vec<u32>,
    /// Of their time, what the shortest of the row takes too.
    saved_ns: u64,
}

impl Rows {
    fn find(case: &Case, device: &StepKernels) -> Rows {
        let (mut rows, mut run): (Rows, Vec<u32>) = Default::default();
        let mut last = (usize::MAX, usize::MAX);
        let gpu = &case.timeline.gpu;
        device.each(case, |window, index| {
            let stream = gpu.streams.partition_point(|stream| stream.work.end <= index);
            let short = collectives::is_collective(case, device, index)
                && gpu.work.dur[index] < (case.threshold(MAX_COLLECTIVE_NS) as u64);
            if (stream, window) != last || !short {
                rows.take(case, &run);
                run.clear();
            }
            last = (stream, window);
            if short {
                run.push(index as u32);
            }
        });
        rows.take(case, &run);
        rows
    }

    fn take(&mut self, case: &Case, run: &[u32]) {
        let work = &case.timeline.gpu.work;
        let dur = |index: u32| work.dur[index as usize];
        let (Some(longest), true) =
            (run.iter().max_by_key(|index| dur(**index)), run.len() >= (case.threshold(MIN_COLLECTIVES) as usize))
        else {
            return;
        };
        let shortest = run.iter().map(|index| dur(*index)).min().unwrap_or(0);
        // Far apart in time they belong to different places of the program.
        let near = run.windows(2).all(|two| {
            work.start[two[1] as usize].saturating_sub(work.end(two[0] as usize))
                < (case.threshold(MAX_COLLECTIVE_NS) as u64)
        });
        if !near {
            return;
        }
        let ns: u64 = run.iter().map(|index| dur(*index)).fold(0, u64::saturating_add);
        self.count += 1;
        self.kernels += run.len();
        self.ns = self.ns.saturating_add(ns);
        // The first stays too: what it waited for in other streams the rest would have waited for.
        let others = run.iter().skip(1).filter(|index| *index != longest);
        self.saved_ns = self.saved_ns.saturating_add(shortest.saturating_mul(others.clone().count() as u64));
        self.saved.extend(others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn steps(count: usize, us: usize) -> String {
        steps_of(&vec![us; count])
    }

    fn steps_of(us: &[usize]) -> String {
        let mut text = String::from(
            "track main\n repeat 20 every 2ms\n step r 0..1ms\n stream 7\n api cudaLaunchKernel 0..1us\n kernel gemm 5us..300us\n stream 8\n",
        );
        let mut at = 300;
        for (number, us) in us.iter().enumerate() {
            text += &format!(
                "api cudaLaunchKernel {}us..{}us\n kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL {at}us..{}us\n",
                number + 1,
                number + 2,
                at + us
            );
            at += us;
        }
        text + &format!("api cudaStreamSynchronize 20us..{}us\n end", at + 10)
    }

    #[test]
    fn short_ones_in_a_row() {
        let found = found(&CollectivesSerialized, &steps(6, 40));
        assert_eq!(
            found[0].title,
            "6 short collectives in a row take 24 % of the step: ncclDevKernel_AllReduce_Sum_f32_…"
        );
        // Between nothing and four of the six.
        let gain = found[0].gain.unwrap();
        assert!(gain.by == GainBy::Bounded && gain.low == 0.0 && (gain.high - 16.0).abs() < 0.5, "{gain:?}");
        assert!((gain.mid - 8.0).abs() < 0.5 && found[0].confidence() > 0.9, "{:?}", found[0]);
    }

    #[test]
    fn what_longer_ones_move_stays() {
        // The shortest takes 20 µs: of the three that are neither first nor longest, so much each.
        let gain = found(&CollectivesSerialized, &steps_of(&[40, 80, 80, 90, 20]))[0].gain.unwrap();
        assert!((gain.high - 6.0).abs() < 0.5, "{gain:?}");
    }

    #[test]
    fn silent_for_two_for_long_ones_and_without_any() {
        silent(&CollectivesSerialized, &steps(2, 40));
        silent(&CollectivesSerialized, &steps(4, 150));
        silent(&CollectivesSerialized, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }
}
