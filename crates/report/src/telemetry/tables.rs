//! Telemetry as tables: what it comes to by session, rank or device, and single events.

use crate::style::{Ink, Style};
use crate::table::Table;
use crate::units::{bytes, count, date, duration};
use std::collections::BTreeMap;
use std::io::{self, Write};
use telemetry::Event;
use telemetry::query::Summary;

fn cell(bytes_or_none: Option<u64>) -> (Ink, String) {
    (Ink::Plain, bytes_or_none.map_or("-".into(), bytes))
}

pub fn summaries(found: &BTreeMap<String, Summary>, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let headings =
        ["events", "alerts", "OOMs", "lasted", "peak allocated", "peak reserved", "peak used", "of total", "what"];
    let mut table = Table::new(headings);
    for (name, summary) in found {
        let share = summary.peak_share.map_or("-".into(), |share| format!("{:.0} %", share * 100.0));
        let alerts = if summary.alerts > 0 { Ink::Warn } else { Ink::Plain };
        let cells = [
            (Ink::Plain, count(summary.events)),
            (alerts, count(summary.alerts)),
            (alerts, count(summary.ooms)),
            (Ink::Plain, duration(summary.last_ns.saturating_sub(summary.first_ns))),
            cell(summary.peak_allocated),
            cell(summary.peak_reserved),
            cell(summary.peak_used),
            (Ink::Plain, share),
        ];
        table.row(cells, &style.plain(name), &format!("from {}", date(summary.first_ns)));
    }
    table.write(out, style)
}

/// What a folder comes to: its sessions, and below them the alerts and errors.
pub fn overview(
    place: &str,
    found: &BTreeMap<String, Summary>,
    alerts: &[Event],
    style: &Style,
    mut out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "Memory telemetry: {}\n", style.plain(place))?;
    summaries(found, style, &mut out)?;
    let ooms: u64 = found.values().map(|summary| summary.ooms).sum();
    writeln!(out)?;
    if alerts.is_empty() {
        return writeln!(out, "No alerts, and memory never ran out.");
    }
    let ran_out = if ooms == 0 { "memory never ran out".into() } else { format!("memory ran out {}", times(ooms)) };
    let all: u64 = found.values().map(|summary| summary.alerts).sum();
    let shown = if all > alerts.len() as u64 { format!(", the newest {} shown", alerts.len()) } else { String::new() };
    writeln!(out, "Alerts and errors: {}{shown}; {ran_out}.", count(all))?;
    events(alerts, style, &mut out)
}

fn times(number: u64) -> String {
    if number == 1 { "once".into() } else { format!("{} times", count(number)) }
}

/// A line for each event.
pub fn events(found: &[Event], style: &Style, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(["allocated", "reserved", "used", "total", "time", "what"]);
    for event in found {
        let counters = &event.counters;
        let cells = [
            cell(counters.allocated),
            cell(counters.reserved),
            cell(counters.used),
            cell(counters.total),
            (Ink::Plain, date(event.time_ns)),
        ];
        let device = match event.source.device_id {
            ..0 => "host".to_owned(),
            device => format!("device {device}"),
        };
        let context = event.context.as_deref().map_or(String::new(), |context| format!(": {context}"));
        let name = format!("{} ({device}, pid {}){context}", event.kind.name(), event.source.pid);
        table.row(cells, &style.plain(&name), "");
    }
    table.write(out, style)
}
