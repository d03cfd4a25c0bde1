//! What took most, over the whole recording: functions and lines by samples, functions by calls, steps, scopes and pauses.

use super::code::{code, short_place};
use super::table::{Table, bar};
use crate::reports::step_times;
use crate::units::{count, counted, duration, percent_of};
use analysis::{CallMetrics, Metrics, SampleMetrics, Spread};
use diagnosis::Diagnosis;
use std::io::{self, Write};
use timeline::{NameIndex, Timeline};

/// Rows of a table: what is further down is in the other reports.
const TOP: usize = 15;

pub fn write(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "## The whole recording\n")?;
    let spreads = metrics.steps.len() + metrics.scopes.len() + metrics.pauses.len();
    if metrics.samples.is_none() && metrics.calls.is_none() && spreads == 0 {
        return writeln!(out, "No samples, calls, steps or scopes were recorded.\n");
    }
    if let Some(samples) = &metrics.samples {
        functions(timeline, samples, out)?;
        lines(timeline, samples, out)?;
    }
    if let Some(all) = &metrics.calls {
        calls(timeline, all, out)?;
    }
    if spreads > 0 {
        scopes(timeline, metrics, diagnosis, out)?;
    }
    Ok(())
}

fn section(out: &mut impl Write, title: &str, shown: usize, table: &Table, note: &str) -> io::Result<()> {
    let of = if shown > TOP { format!(": {TOP} of {}", count(shown as u64)) } else { String::new() };
    writeln!(out, "<details>\n<summary>{title}{of}</summary>\n")?;
    if !note.is_empty() {
        writeln!(out, "{note}\n")?;
    }
    table.write(out)?;
    writeln!(out, "</details>\n")
}

/// Bar and share of its own, share with all that it called, and the time that its own samples stand for.
fn shares(samples: &SampleMetrics, own: u64, total: u64) -> [String; 4] {
    let time = samples.interval_ns.map_or(String::new(), |interval| duration(own.saturating_mul(interval)));
    let share = own as f64 / samples.active.max(1) as f64;
    [percent_of(own, samples.active), bar(share), percent_of(total, samples.active), time]
}

fn functions(timeline: &Timeline, samples: &SampleMetrics, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new([" own", "", " total", " own time", "function", "file"]);
    for function in samples.functions.iter().take(TOP) {
        let name = timeline.names.get(function.name);
        let [own, bar, total, time] = shares(samples, function.own, function.total);
        table.row([own, bar, total, time, code(&name.text), short_place(&name.file, name.line)]);
    }
    if samples.unknown > 0 {
        let [own, bar, total, time] = shares(samples, samples.unknown, samples.unknown);
        table.row([own, bar, total, time, "(stack not recorded)".into(), String::new()]);
    }
    let note = format!(
        "{} of running threads ({} of waiting ones excluded); {} held the GIL.",
        counted(samples.active, "sample"),
        count(samples.idle),
        percent_of(samples.gil, samples.active)
    );
    section(out, "Functions, by samples", samples.functions.len(), &table, &note)
}

fn lines(timeline: &Timeline, samples: &SampleMetrics, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new([" own", "", " total", " own time", "function", "line"]);
    let own = samples.lines.iter().filter(|line| line.own > 0);
    for line in own.clone().take(TOP) {
        let name = timeline.names.get(line.name);
        let [own, bar, total, time] = shares(samples, line.own, line.total);
        table.row([own, bar, total, time, code(&name.text), short_place(&name.file, line.line)]);
    }
    section(out, "Lines, by samples", own.count(), &table, "")
}

fn calls(timeline: &Timeline, calls: &CallMetrics, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new([" calls", " own", " total", " own mean", "function", "defined at"]);
    for function in calls.functions.iter().take(TOP) {
        let name = timeline.names.get(function.name);
        table.row([
            count(function.count),
            duration(function.own),
            duration(function.total),
            duration(function.own / function.count.max(1)),
            code(&name.text),
            if function.c_function { "C function".into() } else { short_place(&name.file, name.line) },
        ]);
    }
    let mut note = format!("{}.", counted(calls.count, "call"));
    if let Some(least) = timeline.info.settings.min_us.filter(|least| *least > 0) {
        note += &format!(" Those under {least} µs count as their caller's own time.");
    }
    if calls.open > 0 {
        note += &format!(" {} unfinished when the recording ended.", count(calls.open));
    }
    section(out, "Functions, by calls", calls.functions.len(), &table, &note)
}

fn scopes(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let steps = step_times::of(timeline, metrics, diagnosis);
    let length = steps.len() + metrics.scopes.len() + metrics.pauses.len();
    let name = |name: NameIndex| code(timeline.names.text(name));
    let mut table = Table::new(["", "name", " times", " total", " mean", " p50", " p99", " longest", " unfinished"]);
    let kinds = [("step", &steps), ("scope", &metrics.scopes), ("pause", &metrics.pauses)];
    let mut all: Vec<(&str, &Spread)> =
        kinds.into_iter().flat_map(|(kind, all)| all.iter().map(move |one| (kind, one))).collect();
    all.sort_by_key(|(_, spread)| u64::MAX - spread.total);
    for (kind, spread) in all.into_iter().take(TOP) {
        // What never ended has no times.
        let time = |time: u64| if spread.count > 0 { duration(time) } else { String::new() };
        table.row([
            kind.into(),
            name(spread.name),
            count(spread.count),
            time(spread.total),
            time(spread.mean),
            time(spread.p50),
            time(spread.p99),
            time(spread.max),
            if spread.open > 0 { count(spread.open) } else { String::new() },
        ]);
    }
    section(out, "Steps, scopes and pauses", length, &table, &step_times::excluded(diagnosis))
}
