//! `h2d-spike`: in some steps far more is copied to the device than in the others, and they are slow for it.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::copies::copies_exposed;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::moved::{Copy, Moved};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::percentile;
use analysis::stats::share::{Share, Tally};
use analysis::steps::StepSource;
use replay::Change;
use timeline::gpu::detail;

pub const CODE: RuleCode = RuleCode::new("h2d-spike");

pub struct H2dSpike;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.01, Unit::Share, "of all steps: less does not move the mean");
const MIN_STEP_SHARE: Threshold =
    Threshold::new(CODE, "min_step_share", 0.10, Unit::Share, "a spike has to take a visible part of its own step");
const MIN_RATIO: Threshold = Threshold::new(CODE, "min_ratio", 3.0, Unit::Times, "steps vary by less on their own");
const MIN_STEPS: Threshold =
    Threshold::new(CODE, "min_steps", 10.0, Unit::Count, "with fewer steps there is no telling what is typical");

impl Rule for H2dSpike {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_STEP_SHARE, MIN_RATIO, MIN_STEPS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Some steps copy to the GPU for more than {min_ratio} times as long as the median step, and for {min_step_share} of their time or more.",
            why: "Weights moved in again, a cache being filled, an input of unusual size: such copies make the tail. Only exposed time counts. The gain is the time above the median, over all steps: the tail gains far more than the mean.",
            needs: "At least {min_steps} steps, and GPU copies.",
            example: "3 of 200 steps spend 41.0 ms copying to the GPU instead of 1.20 ms",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[copies_exposed::CODE]
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.steps.source == StepSource::Whole || case.steps.count() < (case.threshold(MIN_STEPS) as usize) {
            let why = format!("fewer than {} steps: no typical step to compare with", case.threshold_text(MIN_STEPS));
            return if case.gpu().is_some_and(|gpu| !gpu.copies.is_empty()) {
                Verdict::Abstain(why)
            } else {
                Verdict::Silent
            };
        }
        let found = case.moved().iter().filter_map(|moved| look(case, moved));
        let most = found.max_by(|a, b| a.0.mid.total_cmp(&b.0.mid));
        most.map_or(Verdict::Silent, |(_, finding)| finding.into())
    }
}

fn look(case: &Case, moved: &Moved) -> Option<(Share, Finding)> {
    let parts = moved.per_window(|copy| copy.is(detail::H2D).then_some(copy.exposed_ns));
    let mut sorted = parts.clone();
    sorted.sort_unstable();
    let usual = percentile(&sorted, 50);
    let spike = |part: u64, length: u64| {
        part as f64 > case.threshold(MIN_RATIO) * usual as f64
            && part as f64 >= case.threshold(MIN_STEP_SHARE) * length as f64
    };
    let (mut tally, mut spikes) = (Tally::default(), Vec::new());
    for (part, length) in parts.iter().zip(&moved.windows) {
        let above = if spike(*part, *length) { part - usual } else { 0 };
        tally.add(above.min(*length) as f64, *length as f64);
        if above > 0 {
            spikes.push(*part);
        }
    }
    let share = tally.measured();
    // Half of the steps are no exception.
    if share.mid < case.threshold(MIN_SHARE) || 2 * spikes.len() > parts.len() {
        return None;
    }
    spikes.sort_unstable();
    let worst = parts.iter().enumerate().max_by_key(|(_, part)| **part).map(|(place, _)| place as u32);
    let longest = moved
        .all
        .iter()
        .filter(|copy| Some(copy.window) == worst && copy.is(detail::H2D))
        .max_by_key(|copy| copy.exposed_ns);
    let title = format!(
        "{} of {} spend {} copying to the GPU instead of {}",
        phrase::count(spikes.len() as u64),
        phrase::counted(parts.len() as u64, "step"),
        phrase::duration(percentile(&spikes, 50)),
        phrase::duration(usual)
    );
    let mut evidence = vec![
        Evidence::new(format!("{} above the median over all steps", phrase::duration(tally.part as u64)))
            .number("ns", tally.part),
    ];
    evidence.extend(longest.map(|copy| {
        let text = format!("longest copy, {}", phrase::bytes(copy.piece.bytes));
        Evidence::at(text, None, copy.piece.start, copy.piece.end())
    }));
    let chosen = |copy: &&Copy| case.chosen().is_some_and(|chosen| chosen.has(copy.piece.start));
    let is_spike =
        |copy: &&Copy| copy.is(detail::H2D) && spike(parts[copy.window as usize], moved.windows[copy.window as usize]);
    let those: Vec<u32> = moved.all.iter().filter(is_spike).filter(chosen).map(|copy| copy.work).collect();
    let left = usual as f64 / percentile(&spikes, 50).max(1) as f64;
    let gain = case.gain(&[Change::Work(those, left)], share);
    let finding = Finding {
        code: CODE,
        title,
        place: Place::default(),
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        certainty: Certainty::seen(tally.repeats()),
        evidence,
        actions: vec![
            "Find what is copied with a scope around the copies of the step; keep it on the GPU if it fits.".into(),
            "Copy it ahead, from pinned memory in a separate stream, while earlier steps run.".into(),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    };
    Some((share, finding))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(count: u64, every: u64, slow: &str) -> String {
        let mut text = String::from("track main\n");
        for number in 0..count {
            let (step, copy) = if number % every == every - 1 { slow.split_once(' ').unwrap() } else { ("10", "1") };
            let at = number * 100;
            let end = |ms: &str| at + ms.parse::<u64>().unwrap();
            text += &format!(
                "step r {at}ms..{0}ms\n api cudaMemcpyAsync {at}ms..{at}.1ms\n stream 7\n copy h2d {at}ms..{1}ms 1000000 pinned\n api cudaStreamSynchronize {at}.2ms..{1}.1ms\n",
                end(step),
                end(copy)
            );
        }
        text
    }

    #[test]
    fn a_few_steps_that_copy_far_more() {
        let found = found(&H2dSpike, &steps(40, 20, "50 41"));
        assert_eq!(found[0].title, "2 of 40 steps spend 41.0 ms copying to the GPU instead of 1.00 ms");
        assert!((found[0].gain.unwrap().mid - 16.7).abs() < 0.1);
    }

    #[test]
    fn silent_when_all_copy_alike_and_when_it_is_no_part_of_the_step() {
        silent(&H2dSpike, &steps(40, 1, "50 41"));
        silent(&H2dSpike, &steps(40, 20, "10 1"));
        silent(&H2dSpike, &steps(40, 20, "90 4"));
        silent(&H2dSpike, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_with_few_steps() {
        abstains(&H2dSpike, &steps(4, 2, "50 41"), "fewer than 10 steps");
    }
}
