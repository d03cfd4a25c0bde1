//! `kernel-drift`: the same kernel with the same grid takes longer at the end of the recording than at its start.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::measures::roofline;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Class;
use analysis::device::kernel_name;
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use analysis::stats::percentile;
use analysis::stats::share::again;
use analysis::steps::spans::Spans;
use replay::gain::Gain;
use std::collections::HashMap;
use timeline::counters;

pub const CODE: RuleCode = RuleCode::new("kernel-drift");

pub struct KernelDrift;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.02, Unit::Share, "of step time: less does not move the mean");
const MIN_RATIO: Threshold =
    Threshold::new(CODE, "min_ratio", 1.10, Unit::Times, "clocks and caches vary by less from one moment to the next");
const MIN_CALLS: Threshold = Threshold::new(
    CODE,
    "min_calls",
    20.0,
    Unit::Count,
    "with fewer calls in a quarter of the steps their median means little",
);
const MIN_STEPS: Threshold =
    Threshold::new(CODE, "min_steps", 20.0, Unit::Count, "with fewer steps there is no start and end to compare");

impl Rule for KernelDrift {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_RATIO, MIN_CALLS, MIN_STEPS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Kernels with the same name and grid take more than {min_ratio} times as long in the last quarter of the steps as in the first, and {min_share} of step time or more.",
            why: "The same work should take the same time. If it drifts, the clock drops (heat, power), a cache grows (attention over a longer and longer context), memory fragments, or another process uses the GPU. The median of the first quarter of the steps is compared with that of the last, for each kernel with {min_calls} calls in each. The gain is what all recorded calls take above the median of the first quarter; at least what the last quarter alone takes above it, at most what a run would that goes on as it ended, where that is more. Calls that overlap on several streams count for the time in which any of them runs.",
            needs: "{min_steps} steps or more, and GPU operations.",
            example: "attention_kernel slows down 1.8 times during the run: 412 µs at the end instead of 229 µs",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.kernels().is_empty() {
            return Verdict::Silent;
        }
        if case.steps.count() < (case.threshold(MIN_STEPS) as usize) {
            return Verdict::Abstain(format!(
                "fewer than {} steps: no start and end to compare",
                case.threshold_text(MIN_STEPS)
            ));
        }
        let drifts = case.kernels().iter().filter_map(|device| Some((device, worst(case, device)?)));
        let Some((device, drift)) = drifts.max_by(|a, b| a.1.saved.total_cmp(&b.1.saved)) else {
            return Verdict::Silent;
        };
        // Calls that run side by side on several streams take their time together.
        let apart = drift.apart(case, device);
        let of_steps = |ns: f64| (ns * apart / device.window_ns.max(1) as f64).min(1.0);
        let quarter = of_steps(drift.saved);
        let share = of_steps(drift.above).max(quarter);
        if share < case.threshold(MIN_SHARE) {
            return Verdict::Silent;
        }
        let row = device.rows.iter().find(|row| row.name.0 == drift.name);
        let place = row.map(|row| roofline::place(case, row)).unwrap_or_default();
        // Where the middle of the recording is slower than its end, going on as it ended is not the most.
        let gain = Gain::recorded(100.0 * quarter, 100.0 * share, 100.0 * share.max(4.0 * quarter));
        let clock = |from: usize| {
            let counter = case.readings.host(counters::GPU_SM_CLOCK_MHZ)?;
            let at = counter.time.partition_point(|time| *time <= device.windows[from].start);
            counter.value.get(at.checked_sub(1)?).copied()
        };
        let mut evidence = vec![Evidence::new(format!("{} calls in each quarter", phrase::count(drift.calls as u64)))];
        if let (Some(first), Some(last)) = (clock(0), clock(device.windows.len() - 1)) {
            evidence.push(Evidence::new(format!("the clock was {first} MHz at the first step and {last} at the last")));
        }
        let finding = Finding {
            code: CODE,
            title: format!(
                "{} slows down {:.1} times during the run: {} at the end instead of {}",
                kernel_name::brief(place.kernel.as_deref().unwrap_or("")),
                drift.last as f64 / drift.first.max(1) as f64,
                phrase::duration(drift.last),
                phrase::duration(drift.first)
            ),
            place,
            gain: Some(gain),
            severity: Severity::Low,
            certainty: Certainty::seen(again(drift.calls)),
            evidence,
            actions: vec![
                "Check whether its input grows: a cache or context that gets longer with every step makes attention slower.".into(),
                "Check whether the clock drops: nvidia-smi -q -d PERFORMANCE,CLOCK; compare runs only at a fixed clock (nvidia-smi -lgc).".into(),
            ],
            verify: proof::verify(case, share),
        };
        finding.into()
    }
}

struct Drift {
    name: u32,
    shape: Option<usize>,
    first: u64,
    last: u64,
    calls: usize,
    /// What its calls take above the median of the first quarter: in the last one, and in all steps.
    saved: f64,
    above: f64,
}

impl Drift {
    /// The time in which any of its calls runs, as a part of the sum of their times: 1 where no two overlap.
    fn apart(&self, case: &Case, device: &StepKernels) -> f64 {
        let (work, mut calls, mut sum) = (&case.timeline.gpu.work, Vec::new(), 0.0);
        device.each(case, |_, index| {
            if (work.name[index], work.shape(index)) == (self.name, self.shape) {
                calls.push((work.start[index], work.start[index].saturating_add(work.dur[index])));
                sum += work.dur[index] as f64;
            }
        });
        if sum > 0.0 { (Spans::union(calls).overlap(0, u64::MAX) as f64 / sum).min(1.0) } else { 1.0 }
    }
}

/// Of one kernel with one grid.
#[derive(Default)]
struct Times {
    /// Of the first quarter of the steps, and of the last.
    ends: [Vec<u64>; 2],
    /// Of all steps, in nanoseconds, with the number of calls.
    sum: f64,
    count: f64,
}

fn worst(case: &Case, device: &StepKernels) -> Option<Drift> {
    let (work, quarter) = (&case.timeline.gpu.work, device.windows.len() / 4);
    let (mut all, mut places) =
        (Vec::<(u32, Option<usize>, Times)>::new(), HashMap::<(u32, Option<usize>), usize>::new());
    // The places of the shapes that each kernel had last: most launches repeat one, and need no hash.
    let mut recent: Vec<Option<(Option<usize>, usize)>> = vec![None; case.timeline.names.len()];
    device.each(case, |window, index| {
        if device.kind(case, index).class == Class::Collective {
            return;
        }
        let (name, shape) = (work.name[index], work.shape(index));
        let known = recent[name as usize].filter(|(last, _)| *last == shape).map(|(_, place)| place);
        let place = known.unwrap_or_else(|| {
            let place = *places.entry((name, shape)).or_insert(all.len());
            if place == all.len() {
                all.push((name, shape, Times::default()));
            }
            place
        });
        recent[name as usize] = Some((shape, place));
        let of = &mut all[place].2;
        (of.sum, of.count) = (of.sum + work.dur[index] as f64, of.count + 1.0);
        match window {
            _ if window < quarter => of.ends[0].push(work.dur[index]),
            _ if window >= device.windows.len() - quarter => of.ends[1].push(work.dur[index]),
            _ => {}
        }
    });
    let drifts = all.into_iter().filter_map(|(name, shape, Times { ends: mut times, sum, count })| {
        times.iter_mut().for_each(|times| times.sort_unstable());
        let [first, last] = [&times[0], &times[1]].map(|times| percentile(times, 50));
        let enough = times.iter().all(|times| times.len() >= (case.threshold(MIN_CALLS) as usize))
            && last as f64 > case.threshold(MIN_RATIO) * first as f64;
        // The slow quarter is slow as a whole.
        let apart = percentile(&times[1], 10) > percentile(&times[0], 90);
        let saved = (last.saturating_sub(first)) as f64 * times[1].len() as f64;
        let above = sum - count * first as f64;
        (enough && apart).then_some(Drift { name, shape, first, last, calls: times[1].len(), saved, above })
    });
    drifts.max_by(|a, b| a.saved.total_cmp(&b.saved).then(b.name.cmp(&a.name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(count: u64, us: impl Fn(u64) -> u64) -> String {
        let mut text = String::from("track main\n stream 7\n");
        for step in 0..count {
            let at = step * 1000;
            text += &format!("step r {at}us..{}us\n", at + 1000);
            text += &format!(
                "api cudaLaunchKernel {at}us..{}us\n kernel attention {}us..{}us grid 64\n",
                at + 5,
                at + 10,
                at + 10 + us(step)
            );
        }
        text
    }

    #[test]
    fn the_same_kernel_gets_slower() {
        let found = found(&KernelDrift, &steps(100, |step| 200 + 4 * step));
        assert_eq!(
            found[0].title,
            "attention slows down 2.2 times during the run: 548 µs at the end instead of 248 µs"
        );
        // It grows evenly: at the first quarter's speed all steps together would save 15 %.
        let gain = found[0].gain.unwrap();
        assert_eq!([gain.low, gain.mid, gain.high].map(f64::round), [8.0, 15.0, 30.0]);
        assert!((0.95..1.0).contains(&found[0].confidence()), "{}", found[0].confidence());
    }

    #[test]
    fn what_all_calls_take_above_the_start_is_the_gain() {
        // Only the last third is slow: 34 steps of 300 µs more.
        let gain = found(&KernelDrift, &steps(100, |step| if step < 66 { 200 } else { 500 }))[0].gain.unwrap();
        assert!((gain.mid - 10.2).abs() < 0.2, "{gain:?}");
    }

    /// Twenty streams that slow down side by side: each step of the last quarter is 800 µs longer, not twenty times that.
    #[test]
    fn calls_side_by_side_are_no_more_than_the_steps() {
        let mut text = String::from("track main\n");
        for step in 0..40 {
            let (at, us) = (step * 1000, if step < 30 { 100 } else { 900 });
            text += &format!("step r {at}us..{}us\n", at + 1000);
            for stream in 7..27 {
                let launch = at + stream;
                text += &format!("stream {stream}\n api cudaLaunchKernel {launch}us..{}us\n", launch + 1);
                text += &format!(" kernel attention {}us..{}us grid 64\n", at + 50, at + 50 + us);
            }
        }
        let gain = found(&KernelDrift, &text)[0].gain.unwrap();
        assert_eq!([gain.low, gain.mid, gain.high].map(f64::round), [20.0, 20.0, 80.0]);
    }

    #[test]
    fn a_recording_that_is_slowest_in_its_middle_has_its_gain_in_order() {
        let slowest = |step| {
            if step < 20 {
                100
            } else if step < 60 {
                900
            } else {
                200
            }
        };
        let gain = found(&KernelDrift, &steps(80, slowest))[0].gain.unwrap();
        assert!(gain.low < gain.mid && gain.mid == gain.high && gain.mid > 40.0, "{gain:?}");
    }

    #[test]
    fn silent_when_it_stays_and_when_it_only_varies() {
        silent(&KernelDrift, &steps(100, |_| 300));
        silent(&KernelDrift, &steps(100, |step| 200 + step * 7 % 100));
        silent(&KernelDrift, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_with_few_steps() {
        abstains(&KernelDrift, &steps(10, |_| 300), "fewer than 20 steps");
    }
}
