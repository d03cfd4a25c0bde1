//! What memory comes to, and its risks, in lines.

use crate::units::{bytes, counted};
use telemetry::risk::{Figures, Risks};

/// What to do about each risk.
pub fn advice(risks: Risks) -> Vec<String> {
    let mut said = Vec::new();
    if risks.oom_occurred {
        said.push(
            "Memory ran out: hold less, or ask for less at once (a smaller batch, a shorter context).".to_owned(),
        );
    }
    if risks.high_utilization {
        said.push("The device is nearly full: leave room for the largest step, or the next one fails.".to_owned());
    }
    if risks.fragmentation {
        said.push(
            "Much of what is reserved is not handed out: take a memory snapshot, `inferscope analyze` says how it is split and which setting helps."
                .to_owned(),
        );
    }
    said
}

/// The figures, the risks, and what to do.
pub fn diagnosis(figures: &Figures, suggestions: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |what: &str, value: Option<String>| lines.extend(value.map(|value| format!("{what:<14}{value}")));
    line("memory of", Some(figures.backend.clone()).filter(|backend| !backend.is_empty()));
    line("allocated", figures.allocated.map(bytes));
    line("reserved", figures.reserved.map(bytes));
    line("peak", figures.peak.map(bytes));
    let share = |share: f64| format!("{:.0} %", share * 100.0);
    line("device in use", figures.utilization().map(|part| format!("{} at most", share(part))));
    line("not handed out", figures.fragmentation().map(|part| format!(" {} of what is reserved", share(part))));
    line("ran out", Some(counted(figures.ooms, "time")));
    let risks = figures.risks();
    let named = [
        (risks.oom_occurred, "memory ran out"),
        (risks.high_utilization, "device nearly full"),
        (risks.fragmentation, "reserved and not handed out"),
    ];
    let named: Vec<&str> = named.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    line("risks", Some(if named.is_empty() { "none".into() } else { named.join(", ") }));
    lines.extend(suggestions.iter().map(|suggestion| format!("  • {suggestion}")));
    lines
}
