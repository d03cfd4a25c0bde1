//! `dtype-churn`: a tensor is converted to another type and back, or to the same type again and again.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::operators;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::compute::{kernel_hotspot, memory_bandwidth_bound, unfused_elementwise};
use crate::rules::host::hot_line;
use crate::threshold::{Threshold, Unit};
use analysis::dataflow::{self, Conversions, Why};
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("dtype-churn");

pub struct DtypeChurn;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "a conversion less is a small edit: little is worth it");
const MAX_FINDINGS: usize = 3;

impl Rule for DtypeChurn {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Conversions that undo or repeat another take {min_share} of the step or more.",
            why: "A conversion reads and writes the whole tensor and computes nothing. One of a value that was converted from that very type right before is undone; one of a value that was converted to the same type earlier in the step is there already. Both are seen by the values that operators read and write. The gain is the recorded steps without these conversions, and without the first of a pair where nothing else reads what lies between. A way through a narrower type rounds: there the results change a little.",
            needs: "Operators (`--ops`, on by default for PyTorch).",
            example: "Converting float to c10::Half and back takes 7.0 % of the step (norm.py:18)",
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
        let found = case.dataflow().conversions(case.timeline);
        let found: Vec<Finding> = found.iter().take(MAX_FINDINGS).filter_map(|one| finding(case, one)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn finding(case: &Case, one: &Conversions) -> Option<Finding> {
    let cost = operators::cost(case, &one.ops, 0.0);
    if cost.share.mid < case.threshold(MIN_SHARE) {
        return None;
    }
    let place = dataflow::place(one.at);
    let (share, at, gain) = (phrase::percent(cost.share.mid), operators::at(&place), cost.gain);
    let (from, to) = (one.from, one.to);
    let title = match one.why {
        Why::Back => format!("Converting {to} to {from} and back takes {share} of {}{at}", case.the_step()),
        Why::Again => format!("Converting the same tensor to {to} again takes {share} of {}{at}", case.the_step()),
    };
    Some(Finding {
        code: CODE,
        title,
        place,
        gain,
        severity: Severity::of(gain.map_or(cost.share, |gain| gain.share())),
        certainty: Certainty::seen(operators::confidence(&one.ops)),
        evidence: vec![
            Evidence::new(format!(
                "{} per step with recorded operators, {}",
                phrase::counted(one.ops.count().round() as u64, "conversion"),
                phrase::duration(one.ops.ns())
            ))
            .number("conversions", one.ops.count())
            .number("ns", one.ops.ns() as f64),
        ],
        actions: match one.why {
            Why::Back => vec![
                format!("Keep the tensor in {to} between the two lines: drop both conversions.").into(),
                Action::torch(
                    "Give the model one type, model.to(dtype), and let torch.autocast choose where another is needed.",
                ),
            ],
            Why::Again => vec![
                Action::torch(format!("Convert once and pass the result on: y = x.to({to}) before its first use.")),
                "Store it in the type that it is used in.".into(),
            ],
        },
        verify: proof::verify(case, gain.map_or(0.0, |gain| gain.mid / 100.0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    fn program(second_reads: u32, from: &str, to: &str) -> String {
        let to_op = |at: u64, reads: u32, out: u32, from: &str, to: &str, line: u32| {
            format!(
                "op aten::_to_copy {at}us..{}us args {{\"Input~Dims\":[[64]],\"Input~type\":[\"{from}\"],\"Output~type\":[\"{to}\"],\"device\":\"cpu\",\"in\":[{reads}],\"out\":[{out}],\"at\":\"n.py:{line}~norm\",\"turn\":[0,0]}}\n",
                at + 50
            )
        };
        format!(
            "track main\n repeat 20 every 3ms\n step r 0..1ms\n end\n step r 100ms..102ms\n {}{}",
            to_op(100_010, 1, 10, "half", "float", 17),
            to_op(100_100, second_reads, 11, from, to, 18)
        )
    }

    #[test]
    fn there_and_back_and_again() {
        let back = found(&DtypeChurn, &program(10, "float", "half"));
        assert_eq!(back[0].title, "Converting half to float and back takes 10 % of the step (n.py:18)");
        let again = found(&DtypeChurn, &program(1, "half", "float"));
        assert_eq!(again[0].title, "Converting the same tensor to float again takes 5.0 % of the step (n.py:18)");
    }

    #[test]
    fn silent_for_conversions_that_are_needed() {
        silent(&DtypeChurn, &program(2, "half", "float"));
        silent(&DtypeChurn, &program(10, "float", "double"));
    }
}
