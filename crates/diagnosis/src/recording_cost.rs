//! Says with a gain what recording itself cost in the steps, where that is enough to matter: the replay has taken it out.

use crate::finding::{Evidence, Finding};
use crate::rule::Case;
use crate::wording;

/// A part of the step: less than this changes no gain by a point that anybody reads.
const MIN_SHARE: f64 = 0.01;

/// The findings whose gains were replayed, with what was taken out of their steps.
pub fn with_cost(case: &Case, findings: Vec<Finding>) -> Vec<Finding> {
    let cost = case.player().ok().and_then(|player| player.recording()).filter(|cost| cost.share >= MIN_SHARE);
    let Some(cost) = cost else { return findings };
    let evidence = || {
        Evidence::new(wording::replay::recording_cost(&cost))
            .number("recording_ns_per_call", cost.call.ns)
            .number("recording_share", cost.share)
    };
    let one = |finding: Finding| match finding.gain.is_some_and(|gain| case.replayed(&gain)) {
        true => Finding { evidence: finding.evidence.into_iter().chain([evidence()]).collect(), ..finding },
        false => finding,
    };
    findings.into_iter().map(one).collect()
}
