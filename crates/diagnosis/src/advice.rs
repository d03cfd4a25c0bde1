//! Advice that fits: what the program is built on decides what can be changed in it, and how it can be tried. What to advise is said by the rules.

mod no_torch;

use crate::finding::{Abstention, Finding};
use crate::rules;
use analysis::origin::{is_python, without_torch};
use timeline::Timeline;

/// The findings with what this program can do: where it shows that it does not use PyTorch, without what only PyTorch could; where it is
/// Python, with the fix that `inferscope verify` can switch.
pub fn fitted(timeline: &Timeline, findings: Vec<Finding>) -> Vec<Finding> {
    let (python, torch) = (is_python(timeline), !without_torch(timeline));
    let one = |finding: Finding| {
        let actions = if torch { finding.actions } else { no_torch::instead(finding.code, &finding.actions) };
        let switched = python && rules::find(finding.code).is_some_and(|rule| rule.fix().is_some());
        let verify = match switched {
            true => format!(
                "{} Or try it without editing code: inferscope verify --fix {} -- COMMAND.",
                finding.verify, finding.code
            ),
            false => finding.verify,
        };
        Finding { actions, verify, ..finding }
    };
    findings.into_iter().map(one).collect()
}

/// The abstentions, without asking a program that does not use PyTorch for what only PyTorch could record.
pub fn fitted_abstentions(timeline: &Timeline, abstentions: Vec<Abstention>) -> Vec<Abstention> {
    if !without_torch(timeline) {
        return abstentions;
    }
    let of_torch = |reason: &str| reason.contains("torch.profiler") || reason.contains("--layers");
    let one = |abstention: Abstention| match of_torch(&abstention.reason) {
        true => Abstention { reason: "the program does not seem to use PyTorch".into(), ..abstention },
        false => abstention,
    };
    abstentions.into_iter().map(one).collect()
}
