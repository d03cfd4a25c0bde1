//! `dependent-chain`: a loop of many short operators in which every round needs what the one before gave: no batch can replace it.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::operators;
use crate::measures::proof;
use crate::measures::{capture, compiled};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::dataflow::{self, Rounds};
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("dependent-chain");

pub struct DependentChain;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.10,
    Unit::Share,
    "as much of the step as a loop has to take for batching to be worth a thought",
);
const MAX_OP_NS: Threshold =
    Threshold::new(CODE, "max_op_ns", 20_000.0, Unit::Nanoseconds, "longer operators are worth their call");
const MIN_ROUNDS: Threshold = Threshold::new(
    CODE,
    "min_rounds",
    24.0,
    Unit::Count,
    "few layers are how models are; many short ones look like a loop",
);

impl Rule for DependentChain {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MAX_OP_NS, MIN_ROUNDS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "{min_rounds} rounds or more of operators shorter than {max_op_ns} that each need the one before take {min_share} of the step or more.",
            why: "Launches in such a row look like a loop over elements, but its rounds are not independent: layers that feed each other, a recurrence, an iteration. The values that operators read and write show it. `torch.bmm` or `torch.vmap` would compute something else; fewer or cheaper calls (a compiled or captured step, a fused layer) are what helps. No gain is given: the rules of the launches give it.",
            needs: "Operators (`--ops`, on by default for PyTorch).",
            example: "Loop of 200 rounds cannot be batched: each needs the last one's result (model.py:22)",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(verdict) = operators::missing(case) {
            return verdict;
        }
        let short = |one: &&Rounds| one.ops.least_ns() as f64 <= case.threshold(MAX_OP_NS) * one.ops.count();
        let loops = case.rounds();
        let mut chains =
            loops.iter().filter(|one| one.depend == Some(true) && one.rounds as f64 >= case.threshold(MIN_ROUNDS));
        chains.find(short).and_then(|one| finding(case, one)).map_or(Verdict::Silent, Verdict::from)
    }
}

fn finding(case: &Case, one: &Rounds) -> Option<Finding> {
    let cost = operators::cost(case, &one.ops, 0.0);
    if cost.share.mid < case.threshold(MIN_SHARE) {
        return None;
    }
    let place = one.lines.first().map(|at| dataflow::place(at)).unwrap_or_default();
    Some(Finding {
        code: CODE,
        title: format!(
            "Loop of {} rounds cannot be batched: each needs the last one's result{}",
            one.rounds,
            operators::at(&place)
        ),
        place,
        gain: None,
        severity: Severity::Info,
        certainty: Certainty::seen(operators::confidence(&one.ops)),
        evidence: vec![
            Evidence::new(format!(
                "{} a round ({}), {} of {}; every round reads what the one before wrote",
                phrase::counted(one.body.len() as u64, "operator"),
                operators::names(case, one.body.iter().copied()),
                phrase::percent(cost.share.mid),
                case.the_step()
            ))
            .number("rounds", one.rounds as f64),
        ],
        actions: actions(case, cost.on_device),
        verify: proof::verify(case, 0.0),
    })
}

/// Cheaper calls, as far as the recording does not show that they are so already or cannot be.
fn actions(case: &Case, on_device: bool) -> Vec<Action> {
    let compile = Action::new("Make each round cheaper to call: torch.compile on the function that has the loop.")
        .needs([compiled::not_yet(case)]);
    let graph = case.kernels().first().filter(|_| on_device).map(|device| {
        Action::new("Launch all rounds at once: a CUDA graph of the step.").needs(capture::of_steps(case, device))
    });
    let more = "Do more in a round: a fused layer (torch.nn.LSTM for a recurrence), a larger batch.".into();
    [Some(compile), graph, Some(more)].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn program(rounds: u64, reads: impl Fn(u64) -> u64) -> String {
        let round = |at: u64| {
            format!(
                "op aten::tanh {}us..{}us args {{\"Input~Dims\":[[256]],\"device\":\"cpu\",\"in\":[{}],\"out\":[{}],\"at\":\"m.py:9~layers\",\"turn\":[0,0]}}\n",
                100_000 + 100 * at,
                100_010 + 100 * at,
                reads(at),
                101 + at
            )
        };
        let looked: String = (0..rounds).map(round).collect();
        format!("track main\n repeat 20 every 30ms\n step r 0..1ms\n end\n step r 100ms..190ms\n {looked}")
    }

    #[test]
    fn layers_that_feed_each_other() {
        let found = found(&DependentChain, &program(40, |at| 100 + at));
        assert_eq!(found[0].title, "Loop of 40 rounds cannot be batched: each needs the last one's result (m.py:9)");
        assert_eq!(found[0].gain, None);
        // On a CPU there is no graph to launch.
        assert!(found[0].actions.iter().all(|action| action.applies() == 1.0 && !action.contains("CUDA graph")));
    }

    #[test]
    fn silent_for_independent_rounds_and_for_few() {
        silent(&DependentChain, &program(40, |_| 1));
        silent(&DependentChain, &program(12, |at| 100 + at));
    }
}
