//! `straggler-rank`: in collectives the ranks wait for one that comes last.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::collectives;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::{again, wilson};
use replay::gain::Gain;

pub const CODE: RuleCode = RuleCode::new("straggler-rank");

pub struct StragglerRank;

const MIN_SHARE: Threshold = Threshold::new(CODE, "min_share", 0.05, Unit::Share, "ranks vary by less on their own");
const MIN_LAST_SHARE: Threshold = Threshold::new(
    CODE,
    "min_last_share",
    0.6,
    Unit::Share,
    "with two ranks, by chance each is last in half of the collectives",
);
const MIN_COLLECTIVES: Threshold =
    Threshold::new(CODE, "min_collectives", 10.0, Unit::Count, "with fewer collectives, chance decides who is last");

impl Rule for StragglerRank {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_LAST_SHARE, MIN_COLLECTIVES]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "One rank arrives last in {min_last_share} of the collectives or more, and the others wait for it for {min_share} of the step or more.",
            why: "A collective kernel runs from its rank's arrival until all ranks have arrived. The rank with the shortest one arrived last: the others waited as much longer as theirs took. Collectives of all ranks are compared in order, which needs no common clock. The gain is what would be saved if it arrived together with the rank before it, over the collectives in which it is last; at most what the others wait on average in all of them.",
            needs: "Two or more ranks in one recording (a folder with one file each), with the same number of collectives in the steps.",
            example: "Rank 3 arrives last in 92 % of 480 collectives: the others wait for 21 % of the step",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let ranks: Vec<(&StepKernels, Vec<u32>)> = case
            .kernels()
            .iter()
            .map(|device| (device, device.pieces(case, |index| collectives::is_collective(case, device, index))))
            .filter(|(_, pieces)| !pieces.is_empty())
            .collect();
        match ranks.len() {
            0 => return Verdict::Silent,
            1 => {
                return Verdict::Abstain(
                    "only one rank with collectives recorded: put the files of all ranks into one folder".into(),
                );
            }
            _ => {}
        }
        let count = ranks[0].1.len();
        if ranks.iter().any(|(_, pieces)| pieces.len() != count) || count < (case.threshold(MIN_COLLECTIVES) as usize) {
            return Verdict::Abstain(format!(
                "ranks have different numbers of collectives in their steps, or fewer than {}: not comparable",
                case.threshold_text(MIN_COLLECTIVES)
            ));
        }
        let dur = |rank: usize, place: usize| case.timeline.gpu.work.dur[ranks[rank].1[place] as usize];
        // How often each comes last, and how long the one before it waits then.
        let (mut last, mut waited) = (vec![0usize; ranks.len()], 0u64);
        let mut saved = vec![0u64; ranks.len()];
        for place in 0..count {
            let all: Vec<u64> = (0..ranks.len()).map(|rank| dur(rank, place)).collect();
            let shortest = all.iter().copied().min().unwrap_or(0);
            let slow = all.iter().position(|one| *one == shortest).unwrap_or(0);
            let next = all.iter().enumerate().filter(|(rank, _)| *rank != slow).map(|(_, one)| *one).min();
            last[slow] += 1;
            saved[slow] = saved[slow].saturating_add(next.unwrap_or(shortest) - shortest);
            waited = u64::saturating_add(
                waited,
                all.iter().map(|one| one - shortest).fold(0, u64::saturating_add) / (ranks.len() as u64 - 1),
            );
        }
        let (slowest, times) =
            last.iter().enumerate().max_by_key(|(_, times)| **times).map_or((0, 0), |(rank, times)| (rank, *times));
        let share = (waited as f64 / ranks[0].0.window_ns.max(1) as f64).min(1.0);
        let often = times as f64 / count as f64;
        if share < case.threshold(MIN_SHARE) || often < case.threshold(MIN_LAST_SHARE) {
            return Verdict::Silent;
        }
        let name = |rank: usize| {
            let process = ranks[rank].0.process;
            let number = case.timeline.processes.get(process.0 as usize).and_then(|process| process.rank);
            number.map_or(format!("device {} of process {}", ranks[rank].0.ordinal, process.0), |number| {
                format!("rank {number}")
            })
        };
        let said = name(slowest);
        let surely = 100.0 * (saved[slowest] as f64 / ranks[0].0.window_ns.max(1) as f64).min(share);
        let gain = Gain::recorded(surely, surely, 100.0 * share);
        let busy = |rank: usize| phrase::percent(case.busy(ranks[rank].0));
        let finding = Finding {
            code: CODE,
            title: format!(
                "{}{} arrives last in {} of {} collectives: the others wait for {} of {}",
                said[..1].to_uppercase(),
                &said[1..],
                phrase::percent(often),
                phrase::count(count as u64),
                phrase::percent(share),
                case.the_step()
            ),
            place: Place::default(),
            gain: Some(gain),
            severity: Severity::of(gain.share()),
            // More often last than not, by the number of collectives.
            certainty: Certainty::seen(wilson(often, count as f64).surely_above(0.5) * again(times)),
            evidence: (0..ranks.len()).take(8).map(|rank| Evidence::new(format!("{}: last in {} of them, busy {} of its steps", name(rank), last[rank], busy(rank)))).collect(),
            actions: vec![
                "Compare it with another rank: inferscope diff of both traces; look for more tokens, another clock, a shared core or link.".into(),
                "Balance the ranks: pad or sort requests by length, spread experts evenly, one process per GPU with cores of its own.".into(),
            ],
            verify: proof::verify(case, share),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn ranks(first: &str, second: &str) -> String {
        let rank = |span: &str| {
            format!(
                "process rank\n track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..5us\n stream 7\n\
                 kernel ncclDevKernel_AllReduce_Sum_f32_RING_LL {span}\n end\n"
            )
        };
        rank(first) + &if second.is_empty() { String::new() } else { rank(second) }
    }

    #[test]
    fn the_others_wait_for_the_last() {
        let found = found(&StragglerRank, &ranks("5ms..8ms", "7.9ms..8ms"));
        assert!(
            found[0].title.contains("arrives last in 100 % of 20 collectives: the others wait for 29 % of the step"),
            "{}",
            found[0].title
        );
        assert!(found[0].title.starts_with("Device 0 of process 1"), "{}", found[0].title);
        let gain = found[0].gain.unwrap();
        assert!((gain.mid - 29.0).abs() < 0.1 && (gain.low, gain.high) == (gain.mid, gain.mid), "{gain:?}");
    }

    #[test]
    fn no_more_is_gained_than_until_the_next_one_comes() {
        let mut text = ranks("5ms..8ms", "7.5ms..8ms");
        text += &ranks("7ms..8ms", "");
        let gain = found(&StragglerRank, &text)[0].gain.unwrap();
        // The next one waits 0.5 ms, the two others 1.5 ms on the average.
        assert!((gain.mid - 5.0).abs() < 0.1 && (gain.high - 15.0).abs() < 0.1, "{gain:?}");
    }

    #[test]
    fn silent_when_they_come_together_and_without_collectives() {
        silent(&StragglerRank, &ranks("5ms..8ms", "5ms..8ms"));
        silent(&StragglerRank, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_with_one_rank() {
        abstains(&StragglerRank, &ranks("5ms..8ms", ""), "only one rank");
    }
}
