//! `per-element-loop`: a Python loop reads the elements of a tensor one by one, with a call for each.

use crate::action::{Action, Precondition};
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::element_reads::{self, ElementReads};
use crate::measures::operators;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::copies::implicit_sync;
use crate::rules::copies::sync_api;
use crate::rules::dataflow::dependent_chain;
use crate::rules::host::hot_line;
use crate::threshold::{Threshold, Unit};
use analysis::dataflow::{self, Rounds};
use analysis::phrase;
use analysis::stats::share::Share;
use analysis::steps::StepSource;
use timeline::SliceKind;

pub const CODE: RuleCode = RuleCode::new("per-element-loop");

pub struct PerElementLoop;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.10, Unit::Share, "rewriting a loop is work: a tenth of the step is worth it");
const MIN_READS: Threshold =
    Threshold::new(CODE, "min_reads", 16.0, Unit::Count, "fewer numbers are results that somebody asked for");
const MIN_CALL_READS: Threshold = Threshold::new(
    CODE,
    "min_call_reads",
    8.0,
    Unit::Count,
    "recorded calls count where the function makes this many in each of its calls: fewer are no loop",
);
/// As many as somebody reads of one rule.
const MAX_FINDINGS: usize = 3;

impl Rule for PerElementLoop {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_READS, MIN_CALL_READS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "A Python loop reads {min_reads} tensor elements or more one at a time in each step, and that takes {min_share} of it or more.",
            why: "`tensor[i].item()`, `float(tensor[i])` and `if tensor[i] > 0` each make a view, go through the dispatcher and make a Python number: a microsecond or more for what a vectorised operation does in a nanosecond. Operators show such a loop: the same line asks for a value again and again. Where the tensor was there before the loop, all of it can be read at once (`tolist()`) without changing anything else; where each iteration computes what it reads, that needs iterations that do not use the number for the next one, which no recording shows. A loop whose tensors come from the iteration before is a chain and is left to `{rule}`. The gain is at least the time of the operators, at most all that samples show at these lines but one iteration. On a GPU every read waits for the device as well: `{rule}` and `{rule}` name that.",
            needs: "Operators (`--ops`, on by default for PyTorch); stack samples for the Python between them.",
            example: "Python loop reads 4,096 tensor elements one at a time per step: 63 % of it (decode.py:10)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[hot_line::CODE]
    }

    fn mentions(&self) -> &'static [RuleCode] {
        &[dependent_chain::CODE, implicit_sync::CODE, sync_api::CODE]
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(verdict) = operators::missing(case) {
            return verdict;
        }
        let reads = |one: &&Rounds| one.host_reads.count > 0 && one.host_reads.depend != Some(true);
        let loops = case.rounds().iter().filter(reads).filter(|one| !waits_for_device(case, one));
        let found: Vec<Finding> = loops.filter_map(|one| finding(case, one)).take(MAX_FINDINGS).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

/// Whether a read calls the driver: its tensor is on a device.
fn waits_for_device(case: &Case, one: &Rounds) -> bool {
    let slices = &case.timeline.slices;
    let asks = |op: &usize| {
        let end = slices.get(*op).end();
        let mut inside = (op + 1..slices.len()).take_while(|at| slices.start[*at] < end);
        inside.any(|at| slices.kind(at) == SliceKind::ApiCall)
    };
    one.ops.slices.iter().take(2 * one.body.len()).any(asks)
}

fn finding(case: &Case, one: &Rounds) -> Option<Finding> {
    if case.steps.source == StepSource::Whole || case.steps.p50() == 0 {
        return None;
    }
    let share = share(case, one);
    let place = one.lines.first().map(|at| dataflow::place(at)).unwrap_or_default();
    // Recorded calls count every step to its end.
    let exact = element_reads::by_calls(case, &place, case.threshold(MIN_CALL_READS)).filter(|reads| reads.per_step);
    let looked_at = element_reads::of_loop(one);
    let ElementReads { count, is_cut, .. } = exact.unwrap_or(looked_at);
    if share.mid < case.threshold(MIN_SHARE) || (count as f64) < case.threshold(MIN_READS) {
        return None;
    }
    let gain = operators::gain_at(case, &one.lines, saved(case, one, share));
    let said = if is_cut { format!("at least {}", phrase::count(count)) } else { phrase::count(count) };
    let needs = match one.host_reads.of_earlier {
        true => Precondition::Holds,
        false => Precondition::Unknown("no iteration needs a number that an earlier one read".into()),
    };
    let all = if one.host_reads.of_earlier {
        "Read all values once, before the loop, and loop over the list: values = tensor.tolist()."
    } else {
        "Compute all rows first, then read all values once: torch.stack(results).tolist()."
    };
    Some(Finding {
        code: CODE,
        title: format!(
            "Python loop reads {said} tensor elements one at a time per step: {} of it{}",
            phrase::percent(share.mid),
            operators::at(&place)
        ),
        place,
        gain: Some(gain),
        severity: Severity::of_gain(&gain),
        certainty: Certainty::seen(operators::confidence(&one.ops)),
        evidence: vec![
            Evidence::new(format!(
                "{} reads of single elements by {} in a step with recorded operators, operators {}",
                phrase::count(looked_at.count),
                operators::names(case, one.body.iter().copied()),
                phrase::duration(one.ops.ns())
            ))
            .number("reads", count as f64)
            .number("ns", one.ops.ns() as f64),
            Evidence::new(match one.host_reads.of_earlier {
                true => "no iteration writes what is read: the values are there before the loop",
                false => "each iteration computes what it reads",
            }),
        ],
        actions: vec![
            Action::new(format!(
                "Vectorise the loop: one operation over the whole tensor (argmax, topk, where, sum, comparison masks) in place of {said} Tensor.item() calls per step."
            ))
            .needs([needs.clone()]),
            Action::new(all).needs([needs]),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    })
}

/// What the loop takes of the steps.
fn share(case: &Case, one: &Rounds) -> Share {
    operators::sampled_at(case, &one.lines).unwrap_or_else(|| {
        let part = one.ops.least_ns() as f64 / case.steps.p50().max(1) as f64;
        Share::exactly(part.clamp(0.0, 1.0))
    })
}

/// At worst only the operators go, at best all that runs at these lines but one round of it.
fn saved(case: &Case, one: &Rounds, share: Share) -> Share {
    let gone = 1.0 - 1.0 / one.rounds.max(1) as f64;
    let operators = one.ops.least_ns() as f64 / case.steps.p50().max(1) as f64;
    Share { low: gone * operators.min(share.low), mid: gone * share.mid, high: gone * share.high }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    /// Rounds of one read each; `before` stands in front of each, `value` is what it reads.
    fn program(rounds: u64, before: impl Fn(u64) -> String, value: impl Fn(u64) -> u64) -> String {
        let round = |at: u64| {
            let (from, to) = (100_000 + 100 * at, 100_010 + 100 * at);
            let read = value(at);
            let args = |line: u32, ids: &str| {
                format!(
                    "args {{\"Input~Dims\":[[]],\"device\":\"\",{ids},\"at\":\"m.py:{line}~decode\",\"turn\":[0,0]}}"
                )
            };
            let before = before(at);
            let computes = match before.is_empty() {
                true => String::new(),
                false => format!("op aten::exp {}us..{}us {}\n", from - 20, from - 10, args(9, &before)),
            };
            format!("{computes} op aten::item {from}us..{to}us {}\n", args(9, &format!("\"in\":[{read}],\"out\":[]")))
        };
        let looked: String = (0..rounds).map(round).collect();
        format!(
            "track main\n repeat 20 every 30ms\n step r 0..1ms\n samples 0..600us every 10us active gil main@m.py:20>decode@m.py:9\n samples 600us..1ms every 10us active gil main@m.py:21\n end\n step r 100ms..190ms\n {looked} op aten::exp 189ms..189.1ms args {{\"in\":[1],\"out\":[2],\"at\":\"m.py:21~main\",\"turn\":[0,0]}}"
        )
    }

    fn elements(rounds: u64) -> String {
        program(rounds, |_| String::new(), |_| 5)
    }

    #[test]
    fn elements_of_one_tensor() {
        let found = found(&PerElementLoop, &elements(64));
        assert_eq!(found[0].title, "Python loop reads 64 tensor elements one at a time per step: 60 % of it (m.py:9)");
        assert!(
            found[0].actions[0].starts_with("Vectorise") && found[0].actions.iter().all(|one| one.applies() == 1.0)
        );
        assert!(found[0].actions[1].contains("before the loop"));
        let gain = found[0].gain.unwrap();
        assert!(gain.low > 0.0 && gain.mid > 50.0 && gain.high < 75.0, "{gain:?}");
    }

    #[test]
    fn what_an_iteration_computes_needs_iterations_that_do_not_use_it() {
        let computed = |at: u64| format!("\"in\":[1],\"out\":[{}]", 100 + at);
        let found = found(&PerElementLoop, &program(64, computed, |at| 100 + at));
        assert!(found[0].actions.iter().all(|one| one.applies() == 0.5), "{found:?}");
    }

    #[test]
    fn silent_for_chains_for_few_reads_and_for_values_of_a_device() {
        let chain = |at: u64| format!("\"in\":[{}],\"out\":[{}]", 99 + at, 100 + at);
        silent(&PerElementLoop, &program(64, chain, |at| 100 + at));
        silent(&PerElementLoop, &elements(12));
        let copies: String = (0..64)
            .map(|at| format!(" api cudaMemcpyAsync {}us..{}us\n", 100_002 + 100 * at, 100_008 + 100 * at))
            .collect();
        silent(&PerElementLoop, &(elements(64) + "\n" + &copies));
    }

    #[test]
    fn a_look_that_ended_in_the_loop_has_not_seen_all_of_it() {
        let text = elements(64);
        let cut = &text[..text.rfind("op aten::exp").unwrap()];
        assert!(found(&PerElementLoop, cut)[0].title.contains("reads at least 64 tensor elements"));
    }
}
