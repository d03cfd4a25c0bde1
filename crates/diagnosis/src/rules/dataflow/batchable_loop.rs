//! `batchable-loop`: rounds of a Python loop run the same operators on the same sizes, and none needs what another gave.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::operators;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::dataflow::per_element_loop;
use crate::rules::host::hot_line;
use crate::rules::launch::{host_wait, launch_bound, queue_never_builds, short_kernel_gaps};
use crate::rules::pipeline::python_loop_over_tensors;
use crate::threshold::{Threshold, Unit};
use analysis::dataflow::{self, LEAST_ROUNDS, Rounds};
use analysis::phrase;
use analysis::stats::share::Share;
use analysis::steps::StepSource;
use replay::Change;
use replay::gain::Gain;

pub const CODE: RuleCode = RuleCode::new("batchable-loop");

pub struct BatchableLoop;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.10, Unit::Share, "rewriting a loop is work: a tenth of the step is worth it");
const MIN_ROUNDS: Threshold =
    Threshold::new(CODE, "rounds", LEAST_ROUNDS as f64, Unit::Count, "fewer are rarely worth a batch");
const MAX_FINDINGS: usize = 3;

impl Rule for BatchableLoop {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MIN_ROUNDS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "A loop of {rounds} rounds or more that do not depend on each other takes {min_share} of the step or more.",
            why: "A loop over rows, heads, experts or requests pays per round what one batched operation pays once: Python, the dispatcher, the launch. That its rounds are alike and independent is seen by the operators: the same ones at the same lines on the same sizes, and none reads a value that another round wrote. Filling rows of one buffer counts as independent, adding to one does not; where a value goes to the program in between (`.item()`) it is not known, and `{rule}` speaks of it. The gain is one round's share of the calls in place of all; at worst the arithmetic stays as it is, because a batch has to do all of it.",
            needs: "Operators (`--ops`, on by default for PyTorch); on a CPU stack samples for the Python between them.",
            example: "Loop of 48 independent rounds takes 63 % of the step: mul, relu and 2 more (moe.py:31)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[
            python_loop_over_tensors::CODE,
            hot_line::CODE,
            launch_bound::CODE,
            host_wait::CODE,
            queue_never_builds::CODE,
            short_kernel_gaps::CODE,
        ]
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Launch)
    }

    fn mentions(&self) -> &'static [RuleCode] {
        &[per_element_loop::CODE]
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(verdict) = operators::missing(case) {
            return verdict;
        }
        let loops = case.rounds();
        let independent = loops.iter().filter(|one| one.depend == Some(false)).take(MAX_FINDINGS);
        let found: Vec<Finding> = independent.filter_map(|one| finding(case, one)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn finding(case: &Case, one: &Rounds) -> Option<Finding> {
    let (share, gain) = saved(case, one)?;
    if share.mid < case.threshold(MIN_SHARE) {
        return None;
    }
    let place = one.lines.first().map(|at| dataflow::place(at)).unwrap_or_default();
    Some(Finding {
        code: CODE,
        title: format!(
            "Loop of {} independent rounds takes {} of {}: {}{}",
            one.rounds,
            phrase::percent(share.mid),
            case.the_step(),
            operators::names(case, one.body.iter().copied()),
            operators::at(&place)
        ),
        place,
        gain: Some(gain),
        severity: Severity::of_gain(&gain),
        certainty: Certainty::seen(operators::confidence(&one.ops)),
        evidence: vec![
            Evidence::new(format!(
                "{} a round, the first on {}; no round reads what another wrote",
                phrase::counted(one.body.len() as u64, "operator"),
                operators::sizes(&one.sizes)
            ))
            .number("rounds", one.rounds as f64),
            Evidence::new(format!(
                "{} such loops per step with recorded operators, operators {}",
                crate::measures::gap::each(one.runs),
                phrase::duration(one.ops.ns())
            ))
            .number("ns", one.ops.ns() as f64),
        ],
        actions: vec![
            Action::torch(
                "Run all rounds as one operation over a leading dimension: the operators as they are on the stacked tensor, torch.bmm for products.",
            ),
            Action::torch(
                "Or let PyTorch do it: torch.vmap(function)(tensors); torch._foreach_mul(list, other) for lists of tensors.",
            ),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    })
}

/// What the loop takes of the steps, and what is gained where one round's calls are left.
fn saved(case: &Case, one: &Rounds) -> Option<(Share, Gain)> {
    if case.steps.source == StepSource::Whole || case.steps.p50() == 0 {
        return None;
    }
    let gone = 1.0 - 1.0 / one.rounds.max(1) as f64;
    let pieces = case.chosen_work(case.launched().by(&one.again.slices));
    let step = case.steps.p50() as f64;
    let computing = Share::exactly((one.ops.least_ns() as f64 / step).clamp(0.0, 1.0));
    let all = operators::sampled_at(case, &one.lines).unwrap_or(computing);
    if !pieces.is_empty() {
        let launches = Change::Stretches(operators::launches(case, &pieces), 0.0);
        let gain = case.gain(&[Change::Work(pieces, 0.0), launches.clone()], all.scaled(gone));
        return Some((all, case.at_worst(gain, &[launches], Share::default())));
    }
    // On a CPU a call costs at least what the shortest operator takes, whatever it computes; the rest of its time is arithmetic that stays.
    let ops = case.dataflow().looks.iter().flat_map(|look| &look.ops).filter(|op| !op.is_view);
    let call = ops.map(|op| op.ns()).min().unwrap_or(0) as f64 / step;
    let between = (all.mid - computing.mid).max(0.0);
    let saved = Share {
        low: gone * between,
        mid: (gone * between + call * one.again.count()).min(gone * all.mid),
        high: gone * all.high.max(all.mid),
    };
    Some((all, operators::gain_at(case, &one.lines, saved)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    /// Twelve rounds of one operator; `reads` says what each reads.
    pub fn program(rounds: u64, reads: impl Fn(u64) -> u64) -> String {
        let round = |at: u64| {
            format!(
                "op aten::relu {}us..{}us args {{\"Input~Dims\":[[256]],\"device\":\"cpu\",\"in\":[{}],\"out\":[{}],\"at\":\"m.py:9~rows\",\"turn\":[0,0]}}\n",
                100_000 + 100 * at,
                100_010 + 100 * at,
                reads(at),
                101 + at
            )
        };
        let looked: String = (0..rounds).map(round).collect();
        format!(
            "track main\n repeat 20 every 30ms\n step r 0..1ms\n samples 0..600us every 10us active gil main@m.py:20>rows@m.py:9\n samples 600us..1ms every 10us active gil main@m.py:21\n end\n step r 100ms..190ms\n {looked}"
        )
    }

    #[test]
    fn rows_that_could_be_a_batch() {
        let found = found(&BatchableLoop, &program(12, |_| 1));
        assert_eq!(found[0].title, "Loop of 12 independent rounds takes 60 % of the step: relu (m.py:9)");
        let gain = found[0].gain.unwrap();
        assert!(gain.low > 30.0 && gain.low < gain.mid && gain.high <= 60.0, "{gain:?}");
    }

    #[test]
    fn silent_for_rounds_that_need_each_other_and_for_few() {
        silent(&BatchableLoop, &program(12, |at| 100 + at));
        silent(&BatchableLoop, &program(12, |_| 0));
        silent(&BatchableLoop, &program(5, |_| 1));
    }
}
