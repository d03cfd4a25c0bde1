//! What changing the host's code can gain at most: a step lasts at least as long as its devices are busy in it, so no finding
//! about the host may promise more than the rest.

use crate::finding::{Evidence, Finding};
use crate::rule::Case;
use crate::rules;
use analysis::phrase;
use replay::gain::Gain;
use std::collections::HashMap;
use timeline::ProcessIndex;

/// The findings, with no more to gain from changing the host than there is.
pub fn limited(case: &Case, findings: Vec<Finding>) -> Vec<Finding> {
    let Some(busy) = busiest(case) else { return findings };
    findings.into_iter().map(|finding| limited_one(case, busy, finding)).collect()
}

fn limited_one(case: &Case, busy: f64, finding: Finding) -> Finding {
    let most = 100.0 * (1.0 - busy);
    let of_the_device = rules::find(finding.code).is_some_and(|rule| rule.changes_device_work());
    // A replay knows what else holds the step back.
    let recorded = |gain: &Gain| !of_the_device && !case.replayed(gain) && gain.high > most;
    let Some(gain) = finding.gain.filter(recorded) else { return finding };
    let text = format!("GPU busy {} of it: changing CPU code can save at most the rest", phrase::percent(busy));
    let limit = Evidence::new(text).number("busy", busy);
    Finding {
        gain: Some(Gain { low: gain.low.min(most), mid: gain.mid.min(most), high: most, ..gain }),
        evidence: finding.evidence.into_iter().chain([limit]).collect(),
        ..finding
    }
}

/// The part of the steps in which a device of their process is busy; of several processes the least busy counts, for it
/// could gain the most. None: some process with steps has no device.
fn busiest(case: &Case) -> Option<f64> {
    let metrics = case.gpu()?;
    let mut most: HashMap<ProcessIndex, f64> = HashMap::new();
    for device in metrics.devices.iter().filter(|device| device.window_ns > 0) {
        let share = (device.busy_ns as f64 / device.window_ns as f64).min(1.0);
        let busy = most.entry(device.process).or_default();
        *busy = busy.max(share);
    }
    let processes = case.windows.tracks().map(|(track, _)| case.timeline.tracks[track.0 as usize].process);
    processes.map(|process| most.get(&process).copied()).try_fold(1.0, |least, busy| Some(f64::min(least, busy?)))
}
