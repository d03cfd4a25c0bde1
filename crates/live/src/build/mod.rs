//! A window of a recording, analysed, as a [`Model`]. Every number is of the window, and comes from its events.

mod devices;
mod memory;
mod tracks;
mod work;

use crate::model::{Clock, Finding, Gain, Health, Model, State, VERSION};
use analysis::phrase;
use diagnosis::{Diagnosis, HealthState, Options};
use timeline::Timeline;

/// More is in a report.
const MOST_FINDINGS: usize = 20;

/// `clock`: when the window is; what it took is filled in by the caller.
pub fn model(timeline: &Timeline, options: &Options, trace: &str, state: State, clock: Clock) -> Model {
    let metrics = analysis::measure(timeline);
    let diagnosis = diagnosis::diagnose(timeline, options);
    let zero = timeline.start.saturating_sub(clock.start_ns);
    Model {
        live_version: VERSION,
        trace: trace.to_owned(),
        command: timeline.info.command.clone(),
        state,
        clock,
        answer: diagnosis.answer.iter().filter(|sentence| !sentence.is_empty()).cloned().collect(),
        findings: diagnosis.findings.iter().take(MOST_FINDINGS).map(finding).collect(),
        steps: work::steps(timeline, &diagnosis, zero),
        functions: work::functions(timeline, &metrics, &diagnosis),
        devices: devices::devices(timeline, &diagnosis),
        kernels: devices::kernels(timeline, &diagnosis),
        memory: memory::memory(timeline, &metrics, &diagnosis),
        processes: work::processes(timeline, &metrics),
        threads: work::threads(timeline, &metrics),
        tracks: tracks::tracks(timeline, &metrics),
        health: health(timeline, &diagnosis),
    }
}

fn finding(finding: &diagnosis::Finding) -> Finding {
    Finding {
        code: finding.code.to_string(),
        title: finding.title.clone(),
        place: phrase::line(&finding.place),
        severity: finding.severity.name(),
        gain_percent: finding.gain.map(|gain| Gain { low: gain.low, mid: gain.mid, high: gain.high }),
        confidence: finding.confidence(),
        action: finding.actions.first().map(|action| action.text().to_owned()).unwrap_or_default(),
        for_ns: 0,
        gone_ns: None,
    }
}

/// What is not as it should be, and what was lost; what is fine needs no line while one watches.
fn health(timeline: &Timeline, diagnosis: &Diagnosis) -> Vec<Health> {
    let lines = diagnosis.health.iter().filter(|line| matches!(line.state, HealthState::Warn | HealthState::Bad));
    let mut all: Vec<Health> = lines
        .map(|line| Health { state: line.state.name(), text: format!("{}: {}", line.label(), line.text) })
        .collect();
    let losses = diagnosis::losses::totals(timeline);
    all.extend(losses.iter().map(|loss| Health { state: HealthState::Warn.name(), text: loss.text() }));
    all
}
