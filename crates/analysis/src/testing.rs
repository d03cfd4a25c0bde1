//! What the rules' tests share: a timeline as text, and what a rule says of it.

use crate::finding::Finding;
use crate::rule::{Case, Rule, Verdict};
use timeline::Timeline;

fn look(rule: &dyn Rule, text: &str) -> Verdict {
    let timeline = Timeline::from_text(text).unwrap();
    rule.look(&Case::new(&timeline, None))
}

#[track_caller]
pub fn found(rule: &dyn Rule, text: &str) -> Vec<Finding> {
    match look(rule, text) {
        Verdict::Found(found) => found,
        other => panic!("{} did not fire: {other:?}", rule.code()),
    }
}

#[track_caller]
pub fn silent(rule: &dyn Rule, text: &str) {
    let verdict = look(rule, text);
    assert_eq!(verdict, Verdict::Silent, "{} was not silent", rule.code());
}

#[track_caller]
pub fn abstains(rule: &dyn Rule, text: &str, why: &str) {
    match look(rule, text) {
        Verdict::Abstain(reason) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{} did not abstain: {other:?}", rule.code()),
    }
}
