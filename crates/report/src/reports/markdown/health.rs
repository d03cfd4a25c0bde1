//! How far the recording can be trusted: what was lost, how exact its times are, what was not recorded and why.

use super::table::Table;
use super::words::prose;
use crate::absent_words;
use crate::units::count;
use analysis::Metrics;
use diagnosis::{Diagnosis, HealthLine, HealthState, HealthTopic};
use std::io::{self, Write};

pub fn write(metrics: &Metrics, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "## Data quality\n")?;
    let mut table = Table::new(["", "", "what"]);
    // A collector that was off says less than what is missing for it; the reason that one left is said of the collector.
    let lacking = |line: &HealthLine| line.off.is_some_and(|off| metrics.absent.iter().any(|one| one.collector == off));
    for line in diagnosis.health.iter().filter(|line| !lacking(line)) {
        table.row([state(line.state), prose(line.label()), prose(&line.text)]);
    }
    for absent in metrics.absent.iter().filter(|one| !absent_words::is_reported(one)) {
        let text = format!("{}: {}", absent_words::what(absent), absent_words::why(absent));
        table.row([state(HealthState::Info), HealthTopic::NotRecorded.label().into(), prose(&text)]);
    }
    table.write(out)?;
    losses(metrics, out)
}

fn state(state: HealthState) -> String {
    match state {
        HealthState::Ok | HealthState::Info => state.name().to_owned(),
        HealthState::Warn | HealthState::Bad => format!("**{}**", state.name()),
    }
}

/// The health line has so many kinds of losses.
const SAID: usize = 3;
/// Rows of the table; a recording that lost in more ways than that says so in one number.
const MOST: usize = 15;

fn losses(metrics: &Metrics, out: &mut impl Write) -> io::Result<()> {
    if metrics.losses.len() <= SAID {
        return Ok(());
    }
    let mut table = Table::new([" lost", "by", "what"]);
    for loss in metrics.losses.iter().take(MOST) {
        table.row([count(loss.count), prose(&loss.collector), prose(loss.reason.said(loss.count))]);
    }
    let rest = metrics.losses.iter().skip(MOST).fold(0u64, |sum, loss| sum.saturating_add(loss.count));
    if rest > 0 {
        table.row([count(rest), String::new(), "of other kinds".into()]);
    }
    table.write(out)
}
