//! What else was considered for the answer, and what speaks against each: one line, from how the findings stand to each other and what they lack.

use crate::finding::Finding;
use crate::leading::{MIN_GAIN, leading};
use crate::relation::{Relation, Relations};
use crate::rule::Case;
use crate::rule_code::RuleCode;
use analysis::phrase;

#[derive(Clone, PartialEq, Debug)]
pub struct Considered {
    pub code: RuleCode,
    pub title: String,
    pub confidence: f64,
    /// What speaks against it as the cause, as a clause.
    pub against: String,
}

/// As many as somebody reads beside the answer.
const MAX_SHOWN: usize = 5;

/// Of findings in their order: those with something to gain that are not the answer.
pub fn for_the_answer(case: &Case, findings: &[Finding], relations: &Relations) -> Vec<Considered> {
    let Some(cause) = leading(case, findings) else { return Vec::new() };
    let at = findings.iter().position(|finding| std::ptr::eq(finding, cause)).unwrap_or(0);
    let worth_showing = |finding: &Finding| finding.gain.is_some_and(|gain| gain.high >= MIN_GAIN);
    let others = findings.iter().enumerate().filter(|(other, finding)| *other != at && worth_showing(finding));
    let considered = |(other, finding): (usize, &Finding)| Considered {
        code: finding.code,
        title: finding.title.clone(),
        confidence: finding.confidence(),
        against: against(cause, finding, relations.get(at, other)),
    };
    others.take(MAX_SHOWN).map(considered).collect()
}

fn against(cause: &Finding, other: &Finding, relation: Relation) -> String {
    let unsure = other.actions.first().and_then(|action| action.unknown().next().map(str::to_owned));
    let percent = |finding: &Finding| phrase::percent(finding.expected_gain().unwrap_or(0.0) / 100.0);
    let less = || match cause.gain {
        Some(_) => format!("smaller gain: {} vs. {}", percent(other), percent(cause)),
        None => format!("would save {}, but does not set the step time", percent(other)),
    };
    match (relation, unsure) {
        (Relation::Explains, _) => format!("the same time: {} explains it", cause.code),
        (Relation::Whole | Relation::Part, _) => "the same time in the same function".into(),
        (Relation::Rival, Some(what)) => format!("explains the same time; not known whether {what}"),
        (Relation::Rival | Relation::Explained, _) => {
            let sure = |finding: &Finding| phrase::percent(finding.confidence());
            let (own, first) = (sure(other), sure(cause));
            match other.confidence() < cause.confidence() && own != first {
                true => format!("explains the same time, with lower confidence ({own} vs. {first})"),
                false => format!("explains the same time (confidence {own} vs. {first})"),
            }
        }
        (Relation::Apart, Some(what)) => format!("{}; not known whether {what}", less()),
        (Relation::Apart, None) => less(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Action, Precondition};
    use crate::certainty::Certainty;
    use crate::finding::Severity;
    use crate::testing::finding;
    use replay::gain::Gain;

    fn of(code: &'static str, gain: f64) -> Finding {
        finding(code, Some(Gain::recorded(gain, gain, gain)), Severity::Medium)
    }

    #[test]
    fn each_says_what_speaks_against_it() {
        let (cause, other) = (of("sync-api", 40.0), of("launch-bound", 20.0));
        let said = |relation| against(&cause, &other, relation);
        assert_eq!(said(Relation::Explains), "the same time: sync-api explains it");
        assert_eq!(said(Relation::Apart), "smaller gain: 20 % vs. 40 %");
        assert_eq!(said(Relation::Whole), "the same time in the same function");
        assert_eq!(said(Relation::Rival), "explains the same time (confidence 90 % vs. 90 %)");
        let weaker = Finding { certainty: Certainty::seen(0.6), ..other.clone() };
        let less_sure = against(&cause, &weaker, Relation::Rival);
        assert!(less_sure.starts_with("explains the same time, with lower confidence ("), "{less_sure}");
        assert!(less_sure.ends_with(" vs. 90 %)"), "{less_sure}");
        let unknown = Precondition::Unknown("the iterations are independent of each other".into());
        let unsure = Finding { actions: vec![Action::new("Batch.").needs([unknown])], ..other.clone() };
        let what = "not known whether the iterations are independent of each other";
        assert_eq!(against(&cause, &unsure, Relation::Rival), format!("explains the same time; {what}"));
        assert!(against(&cause, &unsure, Relation::Apart).ends_with(&format!("; {what}")));
        let pace = finding("compute-bound", None, Severity::Info);
        assert_eq!(against(&pace, &other, Relation::Apart), "would save 20 %, but does not set the step time");
    }
}
