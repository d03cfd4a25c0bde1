//! The terminal summary: what was recorded, where its time went, what is missing. Beautiful on a terminal, plain in a
//! pipe, and as wide as the place it goes to.

mod gpu;
mod memory;
mod operators;
mod parts;
mod picture;
mod spark;
pub(crate) mod tables;
mod verdict;

use crate::absent_words;
use crate::reports::step_times;
use crate::style::{Ink, Style, left};
use crate::units::{bytes, counted, date, duration};
use analysis::{Curve, Metrics};
use diagnosis::{Diagnosis, HealthState};
use spark::sparkline;
use std::io::{self, Write};
use timeline::{Exit, State, Timeline};
use unicode_width::UnicodeWidthStr;

/// Writes the summary with at most `top` rows in each table.
pub fn write(
    timeline: &Timeline,
    metrics: &Metrics,
    diagnosis: &Diagnosis,
    top: usize,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let page = Page { timeline, metrics, top, style };
    if analysis::memory::is_all(timeline) {
        return page.memory_alone(out, diagnosis);
    }
    page.head(out)?;
    page.answer(out, diagnosis)?;
    page.waterfall(out, diagnosis)?;
    page.slow_steps(out, diagnosis)?;
    page.findings(out, diagnosis)?;
    page.parts(out, diagnosis)?;
    page.operators(out, diagnosis)?;
    page.host_layers(out, diagnosis)?;
    page.curves(out)?;
    if let Some(gpu) = &diagnosis.gpu {
        page.gpu(out, diagnosis, gpu)?;
    }
    page.memory(out, diagnosis)?;
    let steps = step_times::of(timeline, metrics, diagnosis);
    page.spreads(out, "Steps", &step_times::excluded(diagnosis), &steps)?;
    page.spreads(out, "Scopes", "", &metrics.scopes)?;
    // Of a handful no share is known.
    if let Some(samples) = metrics.samples.as_ref().filter(|_| !diagnosis.too_few_samples) {
        page.sampled_functions(out, samples)?;
        page.sampled_lines(out, samples)?;
    }
    if let Some(calls) = &metrics.calls {
        page.calls(out, calls)?;
    }
    page.spreads(out, "Garbage collection pauses", "", &metrics.pauses)?;
    page.marks(out)?;
    page.processes(out)?;
    page.threads(out)?;
    page.trust(out, diagnosis)?;
    page.missing(out)
}

struct Page<'a> {
    timeline: &'a Timeline,
    metrics: &'a Metrics,
    top: usize,
    style: &'a Style,
}

impl Page<'_> {
    fn heading(&self, out: &mut impl Write, title: &str, note: &str) -> io::Result<()> {
        let gap = if note.is_empty() { "" } else { "  " };
        let note = self.style.fit(&self.style.plain(note), self.style.width.saturating_sub(title.width() + 2));
        writeln!(out, "\n{}{gap}{}", self.style.ink(Ink::Heading, title), self.style.ink(Ink::Faint, &note))
    }

    /// A snapshot: there is nothing else to say of it.
    fn memory_alone(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        let (info, style) = (&self.timeline.info, self.style);
        writeln!(out, "{}", style.ink(Ink::Heading, &style.fit(&info.command, style.width)))?;
        let mut facts = vec![counted(self.timeline.memory.events.len() as u64, "allocator event")];
        facts.extend(
            (self.timeline.duration() > 0 && !self.timeline.memory.ordered_only)
                .then(|| duration(self.metrics.duration)),
        );
        facts.extend((info.created_unix_ns > 0).then(|| date(info.created_unix_ns)));
        self.facts(out, &facts)?;
        self.answer(out, diagnosis)?;
        self.findings(out, diagnosis)?;
        self.memory(out, diagnosis)?;
        self.spreads(out, "Ranges", "", &self.metrics.scopes)?;
        self.trust(out, diagnosis)?;
        if self.timeline.notes.is_empty() { Ok(()) } else { self.missing(out) }
    }

    fn head(&self, out: &mut impl Write) -> io::Result<()> {
        let (info, style) = (&self.timeline.info, self.style);
        let command = if info.command.is_empty() { "a recording" } else { &info.command };
        writeln!(out, "{}", style.ink(Ink::Heading, &style.fit(command, style.width)))?;
        let mut facts = vec![format!("{} recorded", duration(self.metrics.duration))];
        facts.extend(info.exit.map(ended));
        facts.push(counted(self.metrics.processes.len() as u64, "process"));
        facts.push(counted(self.metrics.threads.len() as u64, "thread"));
        facts.extend(self.metrics.samples.as_ref().map(|s| counted(s.taken, "sample")));
        if self.metrics.slices > 0 {
            facts.push(counted(self.metrics.slices as u64, "slice"));
        }
        if !self.timeline.gpu.is_empty() {
            // The records of waits are none.
            let work = &self.timeline.gpu.work;
            let operations = (0..work.len()).filter(|index| work.kind(*index).is_busy()).count();
            facts.push(counted(operations as u64, "GPU operation"));
        }
        self.facts(out, &facts)?;
        let mut facts = Vec::new();
        if info.created_unix_ns > 0 {
            facts.push(date(info.created_unix_ns));
        }
        facts.extend((!info.host.hostname.is_empty()).then(|| info.host.hostname.clone()));
        let cores = info.host.cpu_count.map(|cores| counted(cores, "core"));
        facts.extend(cores);
        facts.extend((!info.host.cpu_model.is_empty()).then(|| info.host.cpu_model.clone()));
        // A recorder that was killed had not measured it.
        facts.extend(
            (!info.clock.source.is_empty() && info.clock.residual_ns > 0)
                .then(|| format!("clock ±{}", duration(info.clock.residual_ns))),
        );
        self.facts(out, &facts)
    }

    /// Facts on as many lines as they need.
    fn facts(&self, out: &mut impl Write, facts: &[String]) -> io::Result<()> {
        for line in self.style.lines(facts, self.style.width) {
            writeln!(out, "{}", self.style.ink(Ink::Faint, &line))?;
        }
        Ok(())
    }

    fn curves(&self, out: &mut impl Write) -> io::Result<()> {
        let cores = self.timeline.info.host.cpu_count;
        let cpu = self.metrics.cpu.as_ref().map(|curve| {
            let of = cores.map(|cores| format!(" of {cores}")).unwrap_or_default();
            let text = format!("mean {:.2} cores, peak {:.2}{of}", curve.mean, curve.peak.value);
            ("CPU", curve, text)
        });
        let memory = self.metrics.memory.as_ref().map(|curve| {
            let text = format!("peak {} after {}", bytes(curve.peak.value as u64), duration(curve.peak.at));
            ("Memory", curve, text)
        });
        let curves: Vec<(&str, &Curve, String)> = [cpu, memory].into_iter().flatten().collect();
        if curves.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let text = curves.iter().map(|curve| curve.2.width()).max().unwrap_or(0);
        let width = self.style.width.saturating_sub(8 + 2 + text).max(20);
        for (label, curve, text) in curves {
            // CPU against its own peak, so that one busy core of 128 still shows.
            let line = sparkline(&curve.buckets, curve.peak.value, width, self.style);
            let label = self.style.ink(Ink::Heading, &left(label, 8));
            let line = self.style.ink(Ink::Bar, &left(&line, width));
            writeln!(out, "{label}{line}  {}", self.style.plain(&text))?;
        }
        Ok(())
    }

    /// Everything that the numbers above do not show.
    fn missing(&self, out: &mut impl Write) -> io::Result<()> {
        let mut lines: Vec<(Ink, String)> = Vec::new();
        lines.extend(diagnosis::losses::totals(self.timeline).iter().map(|loss| (Ink::Warn, loss.text())));
        for note in &self.timeline.notes {
            let plain = diagnosis::health::note_state(note) == HealthState::Info;
            lines.push((if plain { Ink::Plain } else { Ink::Warn }, note.said()));
        }
        let absent =
            self.metrics.absent.iter().map(|one| format!("no {}: {}", absent_words::what(one), absent_words::why(one)));
        lines.extend(absent.map(|line| (Ink::Plain, line)));
        let complete = matches!(self.timeline.info.state, State::Complete | State::Recovered);
        // Others' files do not say so of themselves.
        let ours = self.timeline.info.recorded_by.is_ours();
        if self.metrics.losses.is_empty() && self.timeline.notes.is_empty() && complete && ours {
            lines.insert(0, (Ink::Good, "no events lost".into()));
        }
        self.heading(out, "Not recorded or lost", "")?;
        for (ink, line) in lines {
            let line = self.style.plain(&crate::escape::visible(&line));
            for (place, part) in wrap(&line, self.style.width.saturating_sub(4)).into_iter().enumerate() {
                let lead = if place == 0 { "  " } else { "    " };
                writeln!(out, "{lead}{}", self.style.ink(ink, &part))?;
            }
        }
        Ok(())
    }
}

/// How the program ended.
pub(crate) fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("killed by signal {signal}"),
    }
}

/// Breaks a line at spaces.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("never empty");
        if !last.is_empty() && last.width() + 1 + word.width() > width {
            lines.push(word.into());
        } else {
            *last = if last.is_empty() { word.into() } else { format!("{last} {word}") };
        }
    }
    lines
}
