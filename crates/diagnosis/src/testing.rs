//! What the rules' tests share: a timeline as text, and what a rule says of it.

use crate::finding::Finding;
use crate::rule::{Case, Rule, Verdict};
use timeline::Timeline;

fn look(rule: &dyn Rule, text: &str) -> Verdict {
    let timeline = Timeline::from_text(text).unwrap();
    rule.look(&Case::new(&timeline, None))
}

/// Twenty steps of these kernels, one behind the other, which fill half of a step if they are five.
pub fn kernels_in_a_row(names: &[&str]) -> String {
    let mut text = String::from("device 0 NVIDIA_H200\n track main\n repeat 20 every 2ms\n step r 0..1ms\n stream 7\n");
    for (place, name) in names.iter().enumerate() {
        let at = 20 + 100 * place;
        text += &format!("api cudaLaunchKernel {place}us..{}us\n kernel {name} {at}us..{}us\n", place + 1, at + 100);
    }
    text + &format!("api cudaStreamSynchronize 15us..{}us\n end", 25 + 100 * names.len())
}

/// Every title that a rule's test sees is one clause of what, how much and where, in words of the field.
#[track_caller]
fn plain(finding: &Finding) {
    let (title, banned) = (&finding.title, include_str!("../tests/plain_words.txt"));
    assert!(title.chars().count() <= 110 && !title.ends_with('.'), "{} letters: {title}", title.chars().count());
    for phrase in banned.lines().filter(|line| !line.starts_with('#')) {
        let said = finding.actions.iter().chain([title, &finding.verify]).find(|text| text.contains(phrase));
        assert!(said.is_none(), "\"{phrase}\" in: {said:?}");
    }
}

#[track_caller]
pub fn found(rule: &dyn Rule, text: &str) -> Vec<Finding> {
    match look(rule, text) {
        Verdict::Found(found) => {
            found.iter().for_each(plain);
            found
        }
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
