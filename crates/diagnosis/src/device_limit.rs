//! What changing the host's code can gain at most: a step lasts at least as long as its devices are busy in it, so no finding
//! about the host may promise more than the rest.

use crate::finding::{Evidence, Finding};
use crate::rule::Case;
use crate::rules;
use analysis::phrase;
use replay::gain::Gain;
use std::collections::HashMap;
use timeline::ProcessIndex;

pub fn by_device(case: &Case, findings: &mut [Finding]) {
    let Some(busy) = busiest(case) else { return };
    let most = 100.0 * (1.0 - busy);
    let of_the_host = |finding: &Finding| !rules::find(finding.code).is_some_and(|rule| rule.changes_device_work());
    for finding in findings.iter_mut().filter(|finding| of_the_host(finding)) {
        // A replay knows what else holds the step back.
        let recorded = |gain: &Gain| !case.replayed(gain) && gain.high > most;
        let Some(gain) = finding.gain.filter(recorded) else { continue };
        finding.gain = Some(Gain { low: gain.low.min(most), mid: gain.mid.min(most), high: most, ..gain });
        let text = format!(
            "the device is at work in {} of it: changing the host's code can save the rest at most",
            phrase::percent(busy)
        );
        finding.evidence.push(Evidence::said(text).number("busy", busy));
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
