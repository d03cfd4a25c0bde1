//! Telemetry as tables: what it comes to by session, rank or device, and single events.

use crate::style::{Ink, Style};
use crate::table::Table;
use crate::units::{bytes, count, date, duration};
use std::collections::BTreeMap;
use std::io::{self, Write};
use telemetry::Event;
use telemetry::query::{MissingRanks, Summary};

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

/// What is to be known before any of it is believed: times that go back, ranks of which there is nothing.
pub fn doubts(found: &BTreeMap<String, Summary>, missing: &[MissingRanks]) -> Vec<String> {
    let back: u64 = found.values().map(|summary| summary.out_of_order).sum();
    let mut said: Vec<String> = missing.iter().take(MOST_JOBS).map(absent).collect();
    if missing.len() > MOST_JOBS {
        said.push(format!("{} more jobs lack ranks.", count((missing.len() - MOST_JOBS) as u64)));
    }
    if back > 0 {
        said.push(format!(
            "{} earlier than one before: the clock was set back, or files of several programs are mixed.",
            if back == 1 { "1 event is".into() } else { format!("{} events are", count(back)) }
        ));
    }
    said
}

/// Jobs that are named one by one.
const MOST_JOBS: usize = 5;

fn absent(job: &MissingRanks) -> String {
    let first: Vec<String> = job.first.iter().map(u32::to_string).collect();
    let more = if job.missing as usize > first.len() { ", …" } else { "" };
    let of = job.job.as_ref().map_or(String::new(), |name| format!(" of job {name}"));
    let (seen, size) = (count(u64::from(job.world_size - job.missing)), count(u64::from(job.world_size)));
    let ranks = if job.missing == 1 { "rank" } else { "ranks" };
    format!("Only {seen} of {size} ranks{of} are here: no event of {ranks} {}{more}.", first.join(", "))
}

/// What a folder comes to: its sessions, and below them the alerts and errors.
pub fn overview(
    place: &str,
    found: &BTreeMap<String, Summary>,
    alerts: &[Event],
    doubts: &[String],
    style: &Style,
    mut out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "Memory telemetry: {}\n", style.plain(place))?;
    summaries(found, style, &mut out)?;
    doubts.iter().try_for_each(|doubt| writeln!(out, "{}", style.plain(doubt)))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_go_back_and_missing_ranks_are_said() {
        let of = |out_of_order| BTreeMap::from([("s".to_owned(), Summary { out_of_order, ..Summary::default() })]);
        assert!(doubts(&of(0), &[]).is_empty());
        let job =
            |world_size, missing, first: &[u32]| MissingRanks { job: None, world_size, missing, first: first.into() };
        let said = doubts(&of(2), &[job(4, 1, &[2]), job(16, 9, &[1, 2, 3, 4, 5, 6, 7, 8])]);
        assert_eq!(said[0], "Only 3 of 4 ranks are here: no event of rank 2.");
        assert_eq!(said[1], "Only 7 of 16 ranks are here: no event of ranks 1, 2, 3, 4, 5, 6, 7, 8, ….");
        assert!(said[2].starts_with("2 events are earlier than one before"), "{said:?}");
        assert_eq!(doubts(&of(0), &vec![job(2, 1, &[0]); 9])[5], "4 more jobs lack ranks.");
    }
}
