//! Advice that fits: what the program is built on decides what can be changed in it, and how it can be tried. What to advise is said by the rules.

mod no_torch;

use crate::action::Action;
use crate::finding::{Abstention, Evidence, Finding, Severity};
use crate::rules;
use analysis::origin::{is_python, without_torch};
use timeline::Timeline;

/// The findings with what this program can do: without what the recording shows cannot be done, which is said as evidence; where the program shows
/// that it does not use PyTorch, without what only PyTorch could; where it is Python, with the fix that `inferscope verify` can switch.
pub fn fitted(timeline: &Timeline, findings: Vec<Finding>) -> Vec<Finding> {
    let (python, torch) = (is_python(timeline), !without_torch(timeline));
    let one = |finding: Finding| {
        // What is switched is what the first action says that can be.
        let by_hand = finding.actions.first().is_some_and(Action::is_by_hand);
        let switch = finding.actions.iter().find(|action| !action.is_by_hand());
        let fails = switch.is_some_and(|action| action.fails().is_some());
        let what = match switch.filter(|_| by_hand) {
            Some(action) => format!("another fix ({})", action.brief()),
            None => "it".to_owned(),
        };
        let finding = possible(finding);
        let actions = if torch { finding.actions } else { no_torch::instead(finding.code, &finding.actions) };
        let actions = actions.into_iter().map(Action::with_conditions).collect();
        let switched = python && !fails && rules::find(finding.code).is_some_and(|rule| rule.fix().is_some());
        let verify = match switched {
            true => format!(
                "{} Or try {what} without editing code: inferscope verify --fix {} -- COMMAND.",
                finding.verify, finding.code
            ),
            false => finding.verify,
        };
        Finding { actions, verify, ..finding }
    };
    findings.into_iter().map(one).collect()
}

/// The finding without actions whose preconditions fail. Where none is left, nothing is to be gained: what to do is left to other findings.
fn possible(finding: Finding) -> Finding {
    let (failed, actions): (Vec<Action>, Vec<Action>) =
        finding.actions.into_iter().partition(|one| one.fails().is_some());
    let said = |action: &Action| {
        Evidence::new(format!("not advised: {} ({})", action.brief(), action.fails().unwrap_or_default()))
    };
    let evidence = finding.evidence.into_iter().chain(failed.iter().map(said)).collect();
    match actions.is_empty() && !failed.is_empty() {
        true => {
            Finding { gain: None, severity: Severity::Info, actions: vec![NOTHING_APPLIES.into()], evidence, ..finding }
        }
        false => Finding { actions, evidence, ..finding },
    }
}

const NOTHING_APPLIES: &str =
    "Look at the other findings first: no known fix for this one applies here, as its evidence says.";

/// The abstentions, without asking a program that does not use PyTorch for what only PyTorch could record.
pub fn fitted_abstentions(timeline: &Timeline, abstentions: Vec<Abstention>) -> Vec<Abstention> {
    if !without_torch(timeline) {
        return abstentions;
    }
    let one = |abstention: Abstention| match abstention.needs_torch {
        true => Abstention { reason: "the program does not seem to use PyTorch".into(), ..abstention },
        false => abstention,
    };
    abstentions.into_iter().map(one).collect()
}
