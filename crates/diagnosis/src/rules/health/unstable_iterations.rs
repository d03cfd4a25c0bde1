//! `unstable-iterations`: the steps changed their pace while they were recorded, so one number does not describe them.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::health_topic::HealthTopic;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::{self, share::Share};
use analysis::steps::{Step, StepSource};

pub const CODE: RuleCode = RuleCode::new("unstable-iterations");

pub struct UnstableIterations;

const MIN_RATIO: Threshold = Threshold::new(
    CODE,
    "min_ratio",
    1.2,
    Unit::Times,
    "medians that differ by a factor of {min_ratio} are different speeds",
);
const MAX_RATIO: Threshold = Threshold::new(
    CODE,
    "max_ratio",
    1.1,
    Unit::Times,
    "medians within a factor of {max_ratio} of each other are the same speed",
);

/// Parts of the recording whose medians are compared: fine enough to find the steady one. `CERTAIN` is for the pairs among so many.
const BLOCKS: usize = 8;
/// The two that differ most of eight always differ: 28 pairs, each with a chance. Bonferroni's correction of 5 %, and no level to choose.
const CERTAIN: f64 = 1.0 - 0.05 / 28.0;
const MIN_STEPS: Threshold =
    Threshold::new(CODE, "min_steps", 40.0, Unit::Count, "five for the median of each of eight blocks");

impl Rule for UnstableIterations {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_RATIO, MAX_RATIO, MIN_STEPS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Step time changed by a factor of {min_ratio} or more during the recording; the finding gives the steady window.",
            why: "The steps are divided into eight blocks in order of time. When the medians of the blocks differ by a factor of {min_ratio}, the program, its load or its machine changed, and a mean over all of them means little. The longest run of blocks within a factor of {max_ratio} of each other is the window to use.",
            needs: "At least {min_steps} steps.",
            example: "Step time rose from 41.2 ms to 63.0 ms; steady from 2.10 s to 9.80 s",
        }
    }

    fn health_topic(&self) -> Option<HealthTopic> {
        Some(HealthTopic::Pace)
    }

    fn look(&self, case: &Case) -> Verdict {
        let steps: Vec<&Step> = case.steps.measured().collect();
        if case.steps.source == StepSource::Whole || (steps.len() as f64) < case.threshold(MIN_STEPS) {
            return Verdict::Abstain(format!(
                "fewer than {} steps: a change of step time would not show",
                case.threshold_text(MIN_STEPS)
            ));
        }
        let edge = |block: usize| steps.len() * block / BLOCKS;
        let blocks: Vec<&[&Step]> = (0..BLOCKS).map(|block| &steps[edge(block)..edge(block + 1)]).collect();
        let medians: Vec<f64> = blocks.iter().map(|block| median(block)).collect();
        let (low, high) = range(&medians);
        let apart = Share { low: apart(&blocks, &medians, -1.0), mid: high - low, high: apart(&blocks, &medians, 1.0) };
        let sure = apart.surely_above((case.threshold(MIN_RATIO) - 1.0) / 2.0 * low);
        if low <= 0.0 || high / low < case.threshold(MIN_RATIO) || sure < CERTAIN {
            return Verdict::Silent;
        }
        finding(case, &blocks, &medians, sure).into()
    }
}

fn median(steps: &[&Step]) -> f64 {
    stats::median(steps.iter().map(|step| step.dur()).collect()).unwrap_or(0) as f64
}

fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), value| (low.min(*value), high.max(*value)))
}

/// The longest run of blocks of one pace.
fn steady(medians: &[f64], max_ratio: f64) -> std::ops::Range<usize> {
    let mut best = 0..1;
    for from in 0..medians.len() {
        for to in from + 1..=medians.len() {
            let (low, high) = range(&medians[from..to]);
            if high <= max_ratio * low && to - from > best.len() {
                best = from..to;
            }
        }
    }
    best
}

fn finding(case: &Case, blocks: &[&[&Step]], medians: &[f64], sure: f64) -> Finding {
    let window = steady(medians, case.threshold(MAX_RATIO));
    let since = |time: u64| phrase::duration(time.saturating_sub(case.timeline.start));
    let start = blocks[window.start].first().map_or(0, |step| step.start);
    let end = blocks[window.clone()].iter().flat_map(|block| block.iter()).map(|step| step.end).max().unwrap_or(start);
    let (first, last) = (medians[0], medians[medians.len() - 1]);
    let (low, high) = range(medians);
    let pace = match first.max(last) / first.min(last).max(1.0) >= case.threshold(MIN_RATIO) {
        true => {
            let way = if last > first { "rose" } else { "fell" };
            format!("{way} from {} to {}", phrase::duration(first as u64), phrase::duration(last as u64))
        }
        false => format!("varied between {} and {}", phrase::duration(low as u64), phrase::duration(high as u64)),
    };
    let evidence = blocks.iter().zip(medians).map(|(block, median)| {
        let text = format!(
            "{}, typical step {}",
            phrase::counted(block.len() as u64, "step"),
            phrase::duration(*median as u64)
        );
        let end = block.iter().map(|step| step.end).max().unwrap_or(0);
        Evidence::at(text, None, block.first().map_or(0, |step| step.start), end).number("ns", *median)
    });
    Finding {
        code: CODE,
        title: format!("Step time {pace}; steady from {} to {}", since(start), since(end)),
        place: Place::default(),
        gain: None,
        severity: Severity::Low,
        certainty: Certainty::seen(sure),
        evidence: evidence.collect(),
        actions: vec![
            format!("Analyse the steady window only: select {} to {} in the timeline.", since(start), since(end))
                .into(),
            "Send constant load, or record long enough for step time to settle.".into(),
            "If it slows down steadily, check the memory curve and growing caches or queues.".into(),
        ],
        verify: "Record again with constant load: this finding should disappear.".into(),
    }
}

/// How far the slowest and the fastest block are apart, less or more the error of both medians (95 %).
fn apart(blocks: &[&[&Step]], medians: &[f64], sign: f64) -> f64 {
    let by = |a: &usize, b: &usize| medians[*a].total_cmp(&medians[*b]);
    let (Some(slow), Some(fast)) = ((0..medians.len()).max_by(by), (0..medians.len()).min_by(by)) else { return 0.0 };
    // Not `hypot`: it is the one call that would need glibc 2.35, and with it a newer system than anything else here.
    let error = (error(blocks[slow]).powi(2) + error(blocks[fast]).powi(2)).sqrt();
    medians[slow] - medians[fast] + sign * 1.96 * error
}

/// The standard error of a median: 1.2533 times that of a mean, its deviation taken from the quartiles (1.349 apart).
fn error(steps: &[&Step]) -> f64 {
    let mut durations: Vec<u64> = steps.iter().map(|step| step.dur()).collect();
    durations.sort_unstable();
    let at = |quarter: usize| durations.get(durations.len() * quarter / 4).copied().unwrap_or(0) as f64;
    1.2533 * (at(3) - at(1)) / 1.349 / (durations.len().max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    #[test]
    fn a_change_of_pace_gives_the_steady_window() {
        let found = found(
            &UnstableIterations,
            "track main\n repeat 30 every 50ms\n step r 0..20ms\n end\n repeat 50 every 50ms\n step r 2s..2.04s\n end",
        );
        assert_eq!(found[0].title, "Step time rose from 20.0 ms to 40.0 ms; steady from 2.00 s to 4.49 s");
        assert!(found[0].confidence() > 0.9);
    }

    #[test]
    fn silent_when_the_pace_holds() {
        silent(&UnstableIterations, "track main\n repeat 80 every 50ms\n step r 0..40ms\n end");
        silent(&UnstableIterations, "track main\n repeat 80 every 50ms\n step r 0..0\n end");
    }

    #[test]
    fn abstains_with_few_steps() {
        abstains(&UnstableIterations, "track main\n repeat 30 every 50ms\n step r 0..40ms\n end", "fewer than 40");
    }
}
