//! What the rules' tests share: a timeline as text, and what a rule says of it.

use crate::certainty::Certainty;
use crate::finding::{Finding, Severity};
use crate::rule::{Case, Rule, Verdict};
use crate::rule_code::RuleCode;
use analysis::place::Place;
use replay::gain::Gain;
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
        let actions = finding.actions.iter().map(|action| action.text());
        let said = actions.chain([title.as_str(), &finding.verify]).find(|text| text.contains(phrase));
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
        Verdict::Abstain(reason) | Verdict::NeedsTorch(reason) => assert!(reason.contains(why), "{reason}"),
        other => panic!("{} did not abstain: {other:?}", rule.code()),
    }
}

/// A finding of a rule that nothing more is known of.
pub fn finding(code: &'static str, gain: Option<Gain>, severity: Severity) -> Finding {
    Finding {
        code: RuleCode::new(code),
        title: String::new(),
        place: Place::default(),
        gain,
        severity,
        certainty: Certainty::seen(0.9),
        evidence: Vec::new(),
        actions: Vec::new(),
        verify: String::new(),
    }
}

/// `steps` has a kernel that ends at 3 ms, a wait for it, and the next launch at 5 ms: no rule of a wait speaks where the GPU has
/// work by then, where the step ends with the wait (it is for the result), or without a GPU; without launches they abstain.
#[track_caller]
pub fn waits_that_cost_nothing(rule: &dyn Rule, steps: &str) {
    let busy = steps.replace("kernel forward 5.01ms..8ms", "kernel forward 3.05ms..8ms");
    silent(rule, &busy.replace("5ms..5.01ms", "11us..12us"));
    silent(rule, &steps.replace("step token 0..8ms", "step token 0..3.05ms"));
    silent(rule, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    let unlaunched = "track main\n step r 0..1ms\n stream 7\n kernel k 0..1us corr 0";
    abstains(rule, unlaunched, "launch calls not recorded");
}
