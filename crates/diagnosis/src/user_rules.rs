//! Rules of the user: a condition over the named metrics, and what to do when it holds. They look beside our own and
//! join their findings before these are ranked; reading them from a file is left to the command.

use crate::certainty::Certainty;
use crate::expression::{Condition, Undecided};
use crate::finding::{Abstention, Evidence, Finding, Severity};
use crate::named::{Figures, METRICS, Named};
use crate::rule_code::RuleCode;
use analysis::Metrics;
use analysis::place::Place;
use std::collections::BTreeSet;
use std::sync::Mutex;
use timeline::Timeline;

#[derive(Clone, PartialEq, Debug)]
pub struct UserRule {
    pub name: String,
    /// As it was written.
    pub text: String,
    pub condition: Condition,
    pub suggestions: Vec<String>,
    pub severity: Severity,
    /// Multiplies the confidence that the number of steps gives; the result stays between 0 and 1.
    pub confidence_weight: f64,
    /// Where it stands: `file:line`.
    pub origin: String,
}

/// The rules of the user with what their conditions are over.
#[derive(Clone, Copy, Debug)]
pub struct UserRules<'a> {
    pub rules: &'a [UserRule],
    pub metrics: &'a Metrics,
}

impl UserRules<'_> {
    /// What they find, and which could not look.
    pub fn look(&self, timeline: &Timeline, figures: Figures) -> (Vec<Finding>, Vec<Abstention>) {
        let (mut found, mut abstained) = (Vec::new(), Vec::new());
        if self.rules.is_empty() {
            return (found, abstained);
        }
        let named = Named::new(timeline, self.metrics, figures);
        let steps = figures.steps.count() as f64;
        for rule in self.rules {
            let code = RuleCode::new(lasting(&rule.name));
            match rule.condition.holds(&named) {
                Ok(true) => found.push(finding(rule, code, &named, (steps + 1.0) / (steps + 2.0))),
                Ok(false) => {}
                Err(Undecided(reason)) => abstained.push(Abstention { code, reason, needs_torch: false }),
            }
        }
        (found, abstained)
    }
}

fn finding(rule: &UserRule, code: RuleCode, named: &Named, sure: f64) -> Finding {
    let mut evidence = Evidence::new(format!("{} ({})", rule.text, rule.origin));
    let mut values = Vec::new();
    for place in rule.condition.metrics() {
        if let Ok(measured) = named.get(place) {
            let metric = &METRICS[place];
            values.push(format!("{} = {}", metric.name, metric.unit.say(measured.value)));
            evidence = evidence.number(metric.name, measured.value);
        }
    }
    let title = match values.is_empty() {
        true => format!("{} holds: {}", rule.name, rule.text),
        false => format!("{} holds: {} ({})", rule.name, rule.text, values.join(", ")),
    };
    Finding {
        code,
        title,
        place: Place::default(),
        gain: None,
        severity: rule.severity,
        certainty: Certainty::seen((sure * rule.confidence_weight).clamp(0.0, 1.0)),
        evidence: vec![evidence],
        actions: rule.suggestions.iter().map(|text| text.as_str().into()).collect(),
        verify: format!("Record again: `{}` no longer holds.", rule.text),
    }
}

/// Findings carry codes that last as long as the program. Each name is kept once, and a file has a bounded number of them.
fn lasting(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(|broken| broken.into_inner());
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    kept
}
