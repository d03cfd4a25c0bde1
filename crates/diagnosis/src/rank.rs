//! The order of findings: most to gain first, by the gain that is expected and how sure it is; and a cause before what is only the same time seen
//! from elsewhere (a loader without workers, and a slow line inside it), whatever each comes to.

use crate::certainty::Certainty;
use crate::finding::Finding;
use crate::relation::{Relation, Relations};
use crate::rules;

/// The places of the findings in their order.
pub fn order(findings: &[Finding], relations: &Relations) -> Vec<usize> {
    let own: Vec<f64> = findings.iter().map(expected_value).collect();
    let weights = weights(relations, own);
    // Without a gain: some say what sets the pace, the others only show it.
    let pace = |finding: &Finding| finding.gain.is_none() && sets_pace(finding);
    let mut order: Vec<usize> = (0..findings.len()).collect();
    order.sort_by(|at_a, at_b| {
        let (a, b) = (&findings[*at_a], &findings[*at_b]);
        let severe = pace(b).cmp(&pace(a)).then(b.severity.cmp(&a.severity));
        weights[*at_b].total_cmp(&weights[*at_a]).then(severe).then(b.confidence().total_cmp(&a.confidence()))
    });
    order
}

/// What a finding is worth by itself: what is expected of it times how sure it is. That others take the cores comes first where it is the most, whether or not
/// somebody can stop them: it says how far the rest can be trusted.
fn expected_value(finding: &Finding) -> f64 {
    let applies = finding.actions.first().map_or(1.0, |action| action.applies()).max(f64::MIN_POSITIVE);
    let known = finding.certainty;
    let fix = if is_of_others(finding) { known.fix / applies } else { known.fix };
    finding.expected_gain().map_or(-1.0, |gain| gain * Certainty { fix, ..known }.confidence())
}

pub fn is_of_others(finding: &Finding) -> bool {
    rules::find(finding.code).is_some_and(|rule| rule.is_of_others())
}

/// A cause weighs as much as what it explains, and a little more, through all that explains that.
fn weights(relations: &Relations, own: Vec<f64>) -> Vec<f64> {
    let (count, mut weights) = (own.len(), own);
    // A chain of causes is no longer than there are findings: rules that explain each other in a circle end here, too.
    for _ in 0..count {
        for at in 0..count {
            let first = |other: &usize| matches!(relations.get(at, *other), Relation::Explains | Relation::Whole);
            let explained = (0..count).filter(first);
            weights[at] = explained.map(|other| weights[other] + TIE_BREAK).fold(weights[at], f64::max);
        }
    }
    weights
}

/// Percent: enough to come first, too little to pass anything else.
const TIE_BREAK: f64 = 1e-6;

pub fn sets_pace(finding: &Finding) -> bool {
    rules::find(finding.code).is_some_and(|rule| rule.sets_pace())
}

#[cfg(test)]
mod tests;
