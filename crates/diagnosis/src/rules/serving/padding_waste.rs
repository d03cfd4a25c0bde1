//! `padding-waste`: many of the tokens that a model computes are padding.

use crate::action::{Action, Precondition};
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::operators;
use crate::measures::proof;
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::hot_line;
use crate::threshold::{Threshold, Unit};
use analysis::dataflow::{self, Padding};
use analysis::device::gpu::Graphs;
use analysis::phrase;
use analysis::steps::StepSource;
use replay::gain::{Gain, GainBy};

pub const CODE: RuleCode = RuleCode::new("padding-waste");

pub struct PaddingWaste;

const MIN_PADDING: Threshold =
    Threshold::new(CODE, "min_padding", 0.20, Unit::Share, "rows of one batch always differ a little in length");
const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.05, Unit::Share, "a twentieth of a step is worth an hour of work");
const MAX_FINDINGS: usize = 3;

impl Rule for PaddingWaste {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_PADDING, MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "{min_padding} of a model's tokens or more are padding, and computing them takes {min_share} of the step or more.",
            why: "A model computes every token of a batch, padding too. In steps with recorded operators the runs of one id at the end or the beginning of each row are counted, where ids are in the CPU's memory: when an embedding reads them, or when they are copied to a GPU. The operators that follow from that embedding and still have all tokens are what padding makes larger. The gain is their time in proportion: at least without the padding that all rows share (padded to the longest of the batch), at most without any (packed rows). Attention grows with the square of the length and gains more. A run of one id is padding where the embedding says so (`padding_idx`); else the advice says what to check and is half as sure.",
            needs: "Operators (`--ops`, on by default for PyTorch), with ids that pass through the CPU's memory.",
            example: "88 % of the tokens are padding: 16 rows padded to 4,096; they take 71 % of the step (serve.py:31)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[hot_line::CODE]
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit { what: "pad each batch to its own longest row, or sort requests by length first", whatif: None })
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(verdict) = operators::missing(case) {
            return verdict;
        }
        let all = case.dataflow().padding(case.timeline);
        let found: Vec<Finding> = all.iter().take(MAX_FINDINGS).filter_map(|one| finding(case, one)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn finding(case: &Case, one: &Padding) -> Option<Finding> {
    let ids = one.ids;
    let part = |of: u64| of as f64 / ids.tokens.max(1) as f64;
    let (padding, common) = (part(ids.padding), part(ids.common));
    if padding < case.threshold(MIN_PADDING) || case.steps.source == StepSource::Whole {
        return None;
    }
    // What the first action takes away: with most of it in every row, padding to the longest is enough; else half of the rest is reached by sorting.
    let shared = 2.0 * common > padding;
    let usual = if shared { common } else { common + (padding - common) / 2.0 };
    let [low, mid, high] = [common, usual, padding].map(|gone| operators::cost(case, &one.ops, 1.0 - gone).gain);
    let (low, mid, high) = (low?, mid?, high?);
    let gain = Gain { low: low.low.min(mid.mid), high: high.high.max(mid.mid), by: GainBy::Bounded, ..mid };
    let whole = operators::cost(case, &one.ops, 0.0).share;
    if gain.mid / 100.0 < case.threshold(MIN_SHARE) {
        return None;
    }
    let place = dataflow::place(one.at);
    let [rows, length] = one.shape;
    Some(Finding {
        code: CODE,
        title: format!(
            "{} of the tokens are padding: {} padded to {}; all take {} of {}{}",
            phrase::percent(padding),
            phrase::counted(rows, "row"),
            phrase::count(length),
            phrase::percent(whole.mid),
            case.the_step(),
            operators::at(&place)
        ),
        place,
        gain: Some(gain),
        severity: Severity::of_gain(&gain),
        certainty: Certainty::seen(operators::confidence(&one.ops)),
        evidence: vec![
            Evidence::new(format!(
                "{} of {} tokens in steps with recorded operators are a run of id {} at the end or beginning of their row; {} of all are in every row",
                phrase::count(ids.padding),
                phrase::count(ids.tokens),
                ids.id,
                phrase::percent(common)
            ))
            .number("padding", ids.padding as f64)
            .number("tokens", ids.tokens as f64),
            Evidence::new(format!(
                "{} operators per step compute on them, {}",
                crate::measures::gap::each(one.ops.count()),
                phrase::duration(one.ops.ns())
            ))
            .number("ns", one.ops.ns() as f64),
        ],
        actions: actions(case, one, shared),
        verify: proof::verify(case, gain.mid / 100.0),
    })
}

fn actions(case: &Case, one: &Padding, shared: bool) -> Vec<Action> {
    let is_padding = match one.is_said {
        true => Precondition::Holds,
        false => Precondition::Unknown(format!("id {} at the end of rows is padding", one.ids.id)),
    };
    // What was captured or compiled for one length runs for that length.
    let lengths = match Graphs::new(case.timeline).any() {
        true => Precondition::Unknown("the CUDA graph is captured for several lengths".into()),
        false => Precondition::Holds,
    };
    let longest = Action::new(
        "Pad each batch to its longest row, not to a fixed length (transformers: tokenizer(..., padding=\"longest\")).",
    )
    .needs([is_padding.clone(), lengths]);
    let sort = Action::new("Sort requests by length before they are batched, so that rows of one batch are alike.")
        .needs([is_padding.clone()]);
    let packed = Action::new("Or pack rows without padding: nested tensors (torch.nested, layout=torch.jagged) or variable-length attention (flash_attn_varlen_func).")
        .needs([is_padding, Precondition::Unknown("the model's attention takes packed rows".into())]);
    if shared { vec![longest, sort, packed] } else { vec![sort, longest, packed] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    /// Two turns of an embedding and a product of all tokens; `padded` is what the recorder counted.
    fn program(padded: &str, padding_idx: &str) -> String {
        let turn = |turn: u64| {
            let at = 700_000 + 30_000 * turn;
            let args = |dims: &str, more: &str| {
                format!(
                    "args {{\"Input~Dims\":[{dims}],\"Concrete~Inputs\":[\"\",\"\",\"{padding_idx}\"],\"device\":\"cpu\",{more},\"at\":\"m.py:9~serve\",\"turn\":[0,{turn}]}}\n"
                )
            };
            let v = 100 * (turn + 1);
            format!(
                "step r {at}us..{}us\n op aten::embedding {}us..{}us {} op aten::linear {}us..{}us {}",
                at + 20_000,
                at + 100,
                at + 200,
                args("[9,8],[4,32]", &format!("\"in\":[7,{v}],\"out\":[{}]{padded}", v + 1)),
                at + 300,
                at + 900,
                args("[4,32,8],[8,8]", &format!("\"in\":[{},6],\"out\":[{}]", v + 1, v + 2))
            )
        };
        format!(
            "track main\n repeat 20 every 30ms\n step r 0..1ms\n samples 0..800us every 10us active serve@m.py:9\n samples 800us..1ms every 10us active gil main@m.py:21\n end\n {}{}",
            turn(0),
            turn(1)
        )
    }

    #[test]
    fn rows_padded_to_a_fixed_length() {
        let found = found(&PaddingWaste, &program(",\"padded\":[128,100,96,0]", "0"));
        assert_eq!(
            found[0].title,
            "78 % of the tokens are padding: 4 rows padded to 32; all take 80 % of the step (m.py:9)"
        );
        assert!(found[0].actions[0].starts_with("Pad each batch") && found[0].actions[0].applies() == 1.0);
        let gain = found[0].gain.unwrap();
        assert!(
            gain.low > 45.0 && gain.low <= gain.mid && (55.0..65.0).contains(&gain.mid) && gain.high < 75.0,
            "{gain:?}"
        );
    }

    #[test]
    fn rows_of_different_lengths_are_sorted_and_what_is_padding_may_not_be_known() {
        let found = found(&PaddingWaste, &program(",\"padded\":[128,80,8,5]", "-1"));
        assert!(found[0].actions[0].starts_with("Sort requests") && found[0].actions[0].applies() == 0.5);
        assert!(found[0].gain.unwrap().high > 1.5 * found[0].gain.unwrap().low);
    }

    #[test]
    fn silent_for_little_padding_and_where_nothing_was_counted() {
        silent(&PaddingWaste, &program(",\"padded\":[128,20,0,0]", "0"));
        silent(&PaddingWaste, &program("", "0"));
    }
}
