//! How long the named steps took, with the steps of the diagnosis as it counts them: without warm-up, so that a report has one p99.

use analysis::stats::spread::Spread;
use analysis::{Metrics, StepSource};
use diagnosis::Diagnosis;
use timeline::Timeline;

/// The spreads of all named steps.
pub fn of(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis) -> Vec<Spread> {
    let steps = &diagnosis.steps;
    let chosen = |spread: &Spread| {
        steps.source == StepSource::Step && steps.count() > 0 && timeline.names.text(spread.name) == steps.name
    };
    let one = |spread: &Spread| match chosen(spread) {
        true => Spread::of(spread.name, steps.measured().map(|step| step.dur()).collect(), spread.open),
        false => spread.clone(),
    };
    metrics.steps.iter().map(one).collect()
}

/// What is not in them: `1 warm-up step excluded`. Empty: nothing.
pub fn excluded(diagnosis: &Diagnosis) -> String {
    match diagnosis.steps.warmups() {
        0 => String::new(),
        warmups => format!("{} excluded", analysis::phrase::counted(warmups as u64, "warm-up step")),
    }
}
