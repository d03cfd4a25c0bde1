//! `growing-concat`: a tensor grows by concatenation, and all of it is copied each time.

use crate::action::{Action, Precondition};
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::operators;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::compute::{kernel_hotspot, memory_bandwidth_bound, unfused_elementwise};
use crate::rules::host::hot_line;
use crate::threshold::{Threshold, Unit};
use analysis::dataflow::{self, Growing, Growth};
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("growing-concat");

pub struct GrowingConcat;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.03,
    Unit::Share,
    "it grows with every step: what is little in a short recording is not in a long run",
);
const MAX_FINDINGS: usize = 3;

impl Rule for GrowingConcat {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Concatenating what an earlier concatenation gave takes {min_share} of the step or more.",
            why: "`x = torch.cat([x, new])` allocates a new tensor and copies all of the old one to add a little: the cost of a step grows with the number of steps before it (a key-value cache, a history, a list of results). It is seen by the data: the input of a concatenation is the very result of an earlier one at the same line, in the same step or in the one before. Where the recorded steps hold one round only, it is enough that what a device copies was there before the round; then the fix is named with what to check. The gain is the recorded steps with only the new part copied, as into a buffer that was allocated once.",
            needs: "Operators (`--ops`, on by default for PyTorch).",
            example: "torch.cat re-copies a growing tensor: 18 % of the step, 98 % of each copy unchanged (cache.py:22)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[hot_line::CODE, unfused_elementwise::CODE, memory_bandwidth_bound::CODE, kernel_hotspot::CODE]
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(verdict) = operators::missing(case) {
            return verdict;
        }
        let found = case.dataflow().growing(case.timeline);
        let found: Vec<Finding> = found.iter().take(MAX_FINDINGS).filter_map(|one| finding(case, one)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn finding(case: &Case, one: &Growing) -> Option<Finding> {
    let cost = operators::cost(case, &one.ops, one.new_part);
    if cost.share.mid < case.threshold(MIN_SHARE) {
        return None;
    }
    let place = dataflow::place(one.at);
    let (what, seen, needs) = match one.growth {
        Growth::WithinStep => {
            ("a growing tensor", "its output is its own next input, within a step", Precondition::Holds)
        }
        Growth::BetweenSteps => {
            ("a growing tensor", "its output is its own next input, from step to step", Precondition::Holds)
        }
        Growth::Kept => (
            "a kept tensor",
            "the larger input was on the device before the step",
            Precondition::Unknown("the larger input is an earlier result of this line".into()),
        ),
    };
    let gain = cost.gain;
    Some(Finding {
        code: CODE,
        title: format!(
            "torch.cat re-copies {what}: {} of {}, {} of each copy unchanged{}",
            phrase::percent(cost.share.mid),
            case.the_step(),
            phrase::percent(1.0 - one.new_part),
            operators::at(&place)
        ),
        place,
        gain,
        severity: Severity::of(gain.map_or(cost.share, |gain| gain.share())),
        certainty: Certainty::seen(operators::confidence(&one.ops)),
        evidence: vec![
            Evidence::new(format!("{seen}: {} when last recorded", operators::sizes(std::slice::from_ref(&one.size))))
                .number("new_part", one.new_part),
            Evidence::new(format!("{} such concatenations per step with recorded operators, {}", crate::measures::gap::each(one.ops.count()), phrase::duration(one.ops.ns())))
                .number("ns", one.ops.ns() as f64),
        ],
        actions: vec![
            Action::new("Allocate it once for the longest it gets and write into it: buffer = x.new_empty(most, ...); buffer[n:n + k] = new; use buffer[:n + k].").needs([needs]),
            Action::torch("For a key-value cache use a static one: cache_implementation=\"static\" in transformers. For results, append to a list and torch.cat once at the end."),
        ],
        verify: proof::verify(case, gain.map_or(0.0, |gain| gain.mid / 100.0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    /// Two looked-at steps that concatenate for 200 µs; the second reads the value `reads`.
    fn program(reads: u32) -> String {
        let cat = |at: u64, turn: u32, reads: u32, out: u32| {
            format!(
                "step r {at}us..{}us\n op aten::cat {}us..{}us args {{\"Input~Dims\":[[[98,4],[2,4]],[]],\"Output~Dims\":[[100,4]],\"device\":\"cpu\",\"in\":[{reads},5],\"out\":[{out}],\"at\":\"c.py:7~add\",\"turn\":[0,{turn}]}}\n",
                at + 2000,
                at + 10,
                at + 210
            )
        };
        format!(
            "track main\n repeat 20 every 3ms\n step r 0..1ms\n end\n {}{}",
            cat(100_000, 0, 1, 10),
            cat(103_000, 1, reads, 11)
        )
    }

    #[test]
    fn a_cache_that_is_copied_every_step() {
        let found = found(&GrowingConcat, &program(10));
        assert_eq!(
            found[0].title,
            "torch.cat re-copies a growing tensor: 20 % of the step, 98 % of each copy unchanged (c.py:7)"
        );
        assert!((found[0].gain.unwrap().mid - 19.6).abs() < 0.1, "{:?}", found[0].gain);
    }

    #[test]
    fn silent_for_concatenations_of_new_tensors() {
        silent(&GrowingConcat, &program(2));
        silent(&GrowingConcat, "track main\n repeat 20 every 3ms\n step r 0..1ms\n end");
    }
}
