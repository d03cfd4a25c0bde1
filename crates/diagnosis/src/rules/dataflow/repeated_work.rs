//! `repeated-work`: operators give the same result every step, because all that goes into them is the same.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::operators::{self, Cost};
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::compute::{below_roofline, kernel_hotspot, memory_bandwidth_bound, unfused_elementwise};
use crate::rules::host::hot_line;
use crate::rules::launch::{host_wait, launch_bound};
use crate::threshold::{Threshold, Unit};
use analysis::dataflow::{self, Repeated};
use analysis::phrase;
use timeline::NameIndex;

pub const CODE: RuleCode = RuleCode::new("repeated-work");

pub struct RepeatedWork;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "computing it once is a small edit: little is worth it");
/// More than this of the time is most of it.
const MAJORITY: f64 = 0.5;
/// More of them say the same.
const MAX_FINDINGS: usize = 3;

impl Rule for RepeatedWork {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Operators whose inputs are the same every step take {min_share} of the step or more.",
            why: "In two steps in a row every operator is recorded with the values that it reads and writes. One that runs at the same line, on the same sizes and scalars, and reads only values that are the same in both steps (parameters, what was there before and nobody wrote to, constants such as `torch.ones`, and results of operators like itself) gives the same result: a mask built anew, weights converted again. What draws random numbers, what changes state that lives on, and what is changed afterwards does not count. Where a program gives the same input in every step, only what comes from parameters and constants counts. The gain is the recorded steps without these operators.",
            needs: "Operators (`--ops`, on by default for PyTorch), recorded in two steps in a row.",
            example: "Same result every step: ones, triu and 1 more take 12 % of the step (model.py:31)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[
            hot_line::CODE,
            unfused_elementwise::CODE,
            memory_bandwidth_bound::CODE,
            kernel_hotspot::CODE,
            below_roofline::CODE,
            launch_bound::CODE,
            host_wait::CODE,
        ]
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(verdict) = operators::missing(case) {
            return verdict;
        }
        let groups = case.dataflow().repeated();
        let priced = groups.iter().map(|group| (group, operators::cost(case, &group.ops, 0.0)));
        let mut found: Vec<_> = priced.filter(|(_, cost)| cost.share.mid >= case.threshold(MIN_SHARE)).collect();
        found.sort_by(|a, b| b.1.share.mid.total_cmp(&a.1.share.mid));
        let found: Vec<Finding> =
            found.iter().take(MAX_FINDINGS).map(|(group, cost)| finding(case, group, cost)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn finding(case: &Case, group: &Repeated, cost: &Cost) -> Finding {
    let place = group.lines.first().map(|(at, _)| dataflow::place(at)).unwrap_or_default();
    let names = operators::names(case, group.names.iter().map(|(name, _)| *name));
    let mut evidence = vec![
        Evidence::new(format!(
            "{} with the same inputs in both of two steps in a row, in {}",
            phrase::counted(group.ops.count().round() as u64, "operator"),
            phrase::counted(group.ops.turns().count() as u64, "recorded step")
        ))
        .number("operators", group.ops.count())
        .number("ns", group.ops.ns() as f64),
    ];
    evidence.extend(group.lines.iter().take(MAX_FINDINGS).map(|(at, ns)| {
        Evidence::new(format!("{}: {} per step", phrase::place(&dataflow::place(at)), phrase::duration(*ns)))
            .number("ns", *ns as f64)
    }));
    evidence.extend(group.names.iter().take(MAX_FINDINGS).filter_map(|(name, signature)| {
        let sizes = operators::sizes(&analysis::operators::sizes(signature, "Output Dims"));
        (!sizes.is_empty()).then(|| Evidence::new(format!("{} of {sizes}", case.timeline.names.text(*name))))
    }));
    if group.same_input {
        evidence.push(Evidence::new(
            "every step has the same input here: only what comes from parameters and constants is counted",
        ));
    }
    let gain = cost.gain;
    Finding {
        code: CODE,
        title: format!(
            "Same result every step: {names} take {} of {}{}",
            phrase::percent(cost.share.mid),
            case.the_step(),
            operators::at(&place)
        ),
        place,
        gain,
        severity: Severity::of(gain.map_or(cost.share, |gain| gain.share())),
        certainty: Certainty::seen(operators::confidence(&group.ops)),
        evidence,
        actions: actions(converts(case, group)),
        verify: proof::verify(case, gain.map_or(0.0, |gain| gain.mid / 100.0)),
    }
}

/// The share of its time that converts weights to another type.
fn converts(case: &Case, group: &Repeated) -> f64 {
    let slices = &case.timeline.slices;
    let ns = |of: &[usize]| of.iter().map(|slice| slices.dur[*slice] as f64).sum::<f64>();
    let is_conversion = |slice: &usize| dataflow::converts(case.timeline.names.text(NameIndex(slices.name[*slice])));
    let conversions: Vec<usize> = group.of_params.slices.iter().copied().filter(is_conversion).collect();
    ns(&conversions) / ns(&group.ops.slices).max(1.0)
}

/// What most of the time needs comes first.
fn actions(converts: f64) -> Vec<Action> {
    let once = "Compute it once and keep it: self.register_buffer(\"mask\", mask, persistent=False) in __init__, and slice it in forward.";
    let convert = Action::torch(
        "Convert weights once after loading, model.to(torch.bfloat16), instead of in every forward or by autocast.",
    );
    let state = "If it depends on a size, cache it by that size: functools.lru_cache on the function that builds it.";
    match converts {
        part if part > MAJORITY => vec![convert, once.into(), state.into()],
        part if part > 0.0 => vec![once.into(), state.into(), convert],
        _ => [once, state].map(Action::from).to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    /// Twenty steps of 1 ms, and two looked-at ones that build a mask in `us` µs each.
    fn program(us: u64, second_out: u32) -> String {
        let turn = |turn: u64, at: u64, x: u32, base: u32| {
            format!(
                "step r {at}us..{}us
                 op aten::ones {}us..{}us args {{\"Input~Dims\":[[]],\"Output~Dims\":[[64,64]],\"device\":\"cpu\",\"in\":[],\"out\":[{base}],\"at\":\"m.py:3~mask\",\"turn\":[0,{turn}]}}
                 op aten::mm {}us..{}us args {{\"Input~Dims\":[[64,64],[64,64]],\"device\":\"cpu\",\"in\":[{x},{base}],\"out\":[{}],\"at\":\"m.py:5~forward\",\"turn\":[0,{turn}]}}\n",
                at + 2000, at + 10, at + 10 + us, at + 900, at + 1200, base + 1
            )
        };
        format!(
            "track main\n repeat 20 every 3ms\n step r 0..1ms\n end\n{}{}",
            turn(0, 100_000, 1, 10),
            turn(1, 103_000, 2, second_out)
        )
    }

    #[test]
    fn a_mask_that_is_built_every_step() {
        let found = found(&RepeatedWork, &program(120, 20));
        assert_eq!(found[0].title, "Same result every step: ones take 12 % of the step (m.py:3)");
        assert!((found[0].gain.unwrap().mid - 12.0).abs() < 0.1, "{:?}", found[0].gain);
        assert_eq!(found[0].place.function.as_deref(), Some("mask"));
    }

    /// A conversion among what builds a mask, and one of a weight that takes most of the time.
    #[test]
    fn begins_with_what_most_of_the_time_needs() {
        let of = |us: u64, params: &str| {
            let turn = |turn: u64, at: u64| {
                let op = |name: &str, at: u64, us: u64, of: &str, out: u64| {
                    format!(
                        "op aten::{name} {at}us..{}us args {{\"Output~Dims\":[[64,64]],\"device\":\"cpu\",{of},\"out\":[{out}],\"at\":\"m.py:3~mask\",\"turn\":[0,{turn}]}}\n",
                        at + us
                    )
                };
                let base = 10 + 10 * turn;
                format!(
                    "step r {at}us..{}us\n {}{}{}",
                    at + 2000,
                    op("ones", at + 10, 100, "\"in\":[]", base),
                    op("_to_copy", at + 200, us, &format!("\"in\":[7]{params}"), base + 1),
                    op("mul", at + 900, 20, &format!("\"in\":[{base},{}]", base + 1), base + 2)
                )
            };
            let last = |turn: u64, at: u64| {
                format!(
                    "op aten::mm {at}us..{}us args {{\"device\":\"cpu\",\"in\":[{}],\"out\":[{}],\"at\":\"m.py:9~forward\",\"turn\":[0,{turn}]}}\n",
                    at + 90,
                    50 + turn,
                    60 + turn
                )
            };
            let text = format!(
                "track main\n repeat 20 every 3ms\n step r 0..1ms\n end\n{}{}{}{}",
                turn(0, 100_000),
                last(0, 101_500),
                turn(1, 103_000),
                last(1, 104_500)
            );
            let found = found(&RepeatedWork, &text).remove(0);
            found.actions.iter().map(|one| one.text().split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(300, ",\"params\":[7]"), ["Convert", "Compute", "If"]);
        assert_eq!(of(20, ",\"params\":[7]"), ["Compute", "If", "Convert"]);
        // No weight is converted.
        assert_eq!(of(300, ""), ["Compute", "If"]);
    }

    #[test]
    fn silent_where_it_is_little_where_nothing_repeats_and_without_operators() {
        silent(&RepeatedWork, &program(20, 20));
        silent(&RepeatedWork, &program(120, 20).replacen("aten::ones", "aten::rand", 1));
        silent(&RepeatedWork, "track main\n repeat 20 every 3ms\n step r 0..1ms\n end");
    }

    #[test]
    fn abstains_where_a_look_was_not_possible() {
        abstains(
            &RepeatedWork,
            "collector ops failed torch.compile~is~used\n track main\n step r 0..1ms",
            "torch.compile",
        );
    }
}
