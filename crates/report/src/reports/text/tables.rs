//! The tables of the summary, one a function. A number that was not recorded is `-`.

use super::Page;
use super::spark::bar;
use crate::style::Ink;
use crate::table::Table;
use crate::units::{bytes, count, counted, duration, percent_of};
use analysis::{CallMetrics, SampleMetrics, Spread};
use std::io::{self, Write};
use timeline::{CollectorCode, NameIndex, Timeline};

/// Where a function is defined, as in a traceback.
fn place(timeline: &Timeline, name: NameIndex, line: u32) -> String {
    let name = timeline.names.get(name);
    match (name.file.is_empty(), line) {
        (true, _) => String::new(),
        (false, 0) => name.file.to_string(),
        (false, line) => format!("{}:{line}", name.file),
    }
}

impl Page<'_> {
    pub(super) fn spreads(&self, out: &mut impl Write, title: &str, note: &str, spreads: &[Spread]) -> io::Result<()> {
        if spreads.is_empty() {
            return Ok(());
        }
        let notes = [note.to_owned(), self.more(spreads.len(), "names")];
        let notes: Vec<String> = notes.into_iter().filter(|note| !note.is_empty()).collect();
        self.heading(out, title, &notes.join("; "))?;
        let mut table = Table::new(["count", "total", "min", "mean", "p50", "p99", "max", "name"]);
        for spread in spreads.iter().take(self.top) {
            let mut cells = vec![(Ink::Plain, count(spread.count))];
            let times = [spread.total, spread.min, spread.mean, spread.p50, spread.p99, spread.max];
            let time = |time: u64| if spread.count > 0 { self.time(time) } else { "-".into() };
            cells.extend(times.map(|nanos| (Ink::Plain, time(nanos))));
            let open = if spread.open > 0 { format!("{} unfinished", count(spread.open)) } else { String::new() };
            table.row(cells, self.timeline.names.text(spread.name), &open);
        }
        table.write(out, self.style)
    }

    pub(super) fn sampled_functions(&self, out: &mut impl Write, samples: &SampleMetrics) -> io::Result<()> {
        let dot = self.style.dot();
        let held = percent_of(samples.gil, samples.active);
        let note = format!(
            "{} running{dot}{} idle, excluded{dot}{held} held the GIL",
            counted(samples.active, "sample"),
            count(samples.idle)
        );
        self.heading(out, "Whole recording: functions by samples", &note)?;
        let mut table = Table::new(["", "own", "total", "own time", "function"]);
        for function in samples.functions.iter().take(self.top) {
            let name = self.timeline.names.get(function.name);
            let cells = self.shares(samples, function.own, function.total);
            table.row(cells, &name.text, &place(self.timeline, function.name, name.line));
        }
        if samples.unknown > 0 {
            table.row(self.shares(samples, samples.unknown, samples.unknown), "(stack not recorded)", "");
        }
        table.write(out, self.style)
    }

    pub(super) fn sampled_lines(&self, out: &mut impl Write, samples: &SampleMetrics) -> io::Result<()> {
        self.heading(out, "Whole recording: lines by samples", "")?;
        let mut table = Table::new(["", "own", "total", "own time", "line"]);
        for line in samples.lines.iter().filter(|line| line.own > 0).take(self.top) {
            let cells = self.shares(samples, line.own, line.total);
            let at = place(self.timeline, line.name, line.line);
            table.row(cells, self.timeline.names.text(line.name), &at);
        }
        table.write(out, self.style)
    }

    fn shares(&self, samples: &SampleMetrics, own: u64, total: u64) -> [(Ink, String); 4] {
        let share = own as f64 / samples.active.max(1) as f64;
        // Samples times interval: an estimate, and only where the interval is known.
        let time = samples.interval_ns.map_or("-".into(), |interval| self.time(own.saturating_mul(interval)));
        [
            (Ink::Bar, bar(share, 10, self.style)),
            (Ink::Plain, percent_of(own, samples.active)),
            (Ink::Plain, percent_of(total, samples.active)),
            (Ink::Plain, time),
        ]
    }

    pub(super) fn calls(&self, out: &mut impl Write, calls: &CallMetrics) -> io::Result<()> {
        let mut note = format!("{} recorded", counted(calls.count, "call"));
        if let Some(least) = self.timeline.info.settings.min_us.filter(|least| *least > 0) {
            note += &format!("; those under {least} µs count as their caller's own time");
        }
        if self
            .metrics
            .losses
            .iter()
            .any(|loss| loss.collector == CollectorCode::Calls || loss.collector == CollectorCode::Recorder)
        {
            note += "; lost calls count as their caller's own time";
        }
        if calls.open > 0 {
            note += &format!("; {} unfinished", count(calls.open));
        }
        self.heading(out, "Whole recording: functions by calls", &note)?;
        let mut table = Table::new(["count", "own", "total", "own mean", "function"]);
        for function in calls.functions.iter().take(self.top) {
            let name = self.timeline.names.get(function.name);
            let cells = [
                count(function.count),
                self.time(function.own),
                self.time(function.total),
                self.time(function.own / function.count.max(1)),
            ];
            let at =
                if function.c_function { "C function".into() } else { place(self.timeline, function.name, name.line) };
            table.row(cells.map(|cell| (Ink::Plain, cell)), &name.text, &at);
        }
        table.write(out, self.style)
    }

    pub(super) fn marks(&self, out: &mut impl Write) -> io::Result<()> {
        if self.metrics.marks.is_empty() {
            return Ok(());
        }
        self.heading(out, "Marks", &self.more(self.metrics.marks.len(), "names"))?;
        let mut table = Table::new(["count", "name"]);
        for (name, number) in self.metrics.marks.iter().take(self.top) {
            table.row([(Ink::Plain, count(*number))], self.timeline.names.text(*name), "");
        }
        table.write(out, self.style)
    }

    pub(super) fn processes(&self, out: &mut impl Write) -> io::Result<()> {
        self.heading(out, "Processes", &self.more(self.metrics.processes.len(), "processes"))?;
        let mut table = Table::new(["pid", "threads", "CPU", "peak RSS", "peak PSS", "program"]);
        for metrics in self.metrics.processes.iter().take(self.top) {
            let process = &self.timeline.processes[metrics.process.0 as usize];
            let size = |size: Option<u64>| size.map_or("-".into(), bytes);
            let cells = [
                if process.pid > 0 { process.pid.to_string() } else { "-".into() },
                metrics.threads.to_string(),
                metrics.cpu_ns.map_or("-".into(), |cpu| self.time(cpu)),
                size(metrics.peak_rss),
                size(metrics.peak_pss),
            ];
            let python = if process.python.is_empty() { String::new() } else { format!("Python {}", process.python) };
            table.row(cells.map(|cell| (Ink::Plain, cell)), &process.program, &python);
        }
        table.write(out, self.style)
    }

    pub(super) fn threads(&self, out: &mut impl Write) -> io::Result<()> {
        if self.metrics.threads.is_empty() {
            return Ok(());
        }
        self.heading(out, "Threads", &self.more(self.metrics.threads.len(), "threads"))?;
        let mut table = Table::new(["tid", "CPU", "runnable, not scheduled", "switches", "running", "thread"]);
        for thread in self.metrics.threads.iter().take(self.top) {
            let track = &self.timeline.tracks[thread.track.0 as usize];
            let switches = match (thread.voluntary_switches, thread.involuntary_switches) {
                (None, None) => None,
                (own, forced) => Some(own.unwrap_or(0).saturating_add(forced.unwrap_or(0))),
            };
            let cells = [
                track.tid.to_string(),
                thread.cpu_ns.map_or("-".into(), |time| self.time(time)),
                thread.waited_ns.map_or("-".into(), |time| self.time(time)),
                switches.map_or("-".into(), count),
                if thread.samples > 0 { percent_of(thread.active_samples, thread.samples) } else { "-".into() },
            ];
            let name = if track.name.is_empty() { "(unnamed)" } else { &track.name };
            let process = self.timeline.process(track);
            let place =
                if self.timeline.processes.len() > 1 { format!("process {}", process.pid) } else { String::new() };
            table.row(cells.map(|cell| (Ink::Plain, cell)), name, &place);
        }
        table.write(out, self.style)
    }

    pub(super) fn time(&self, nanos: u64) -> String {
        self.style.plain(&duration(nanos))
    }

    /// Says that a table shows only a part.
    pub(super) fn more(&self, length: usize, what: &str) -> String {
        if length > self.top { format!("{} of {} {what}", self.top, count(length as u64)) } else { String::new() }
    }
}
