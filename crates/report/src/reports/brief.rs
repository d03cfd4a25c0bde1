//! The few lines after a recording: how long, how much, what took most, and whether something is missing.

use crate::gpu_words;
use crate::reports::step_times;
use crate::style::{Ink, Style};
use crate::units::{count, counted, duration, percent_of};
use analysis::Metrics;
use diagnosis::Diagnosis;
use std::io::{self, Write};
use timeline::{Exit, Timeline};

/// Notes beyond this are in the report.
const MOST_NOTES: usize = 4;

pub fn write(
    timeline: &Timeline,
    metrics: &Metrics,
    diagnosis: &Diagnosis,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut facts = vec![duration(metrics.duration)];
    // That it ended as it should need not be said.
    let failed = timeline.info.exit.filter(|exit| *exit != Exit::Code(0));
    facts.extend(failed.map(crate::reports::text::ended));
    facts.push(counted(metrics.processes.len() as u64, "process"));
    facts.push(counted(metrics.threads.len() as u64, "thread"));
    facts.extend(metrics.samples.as_ref().map(|samples| counted(samples.taken, "sample")));
    if metrics.slices > 0 {
        facts.push(counted(metrics.slices as u64, "slice"));
    }
    let facts: Vec<String> = facts.iter().map(|fact| style.plain(fact)).collect();
    line(out, style, Ink::Heading, "recorded", &facts.join(style.dot()))?;
    for sentence in diagnosis.answer.iter().filter(|sentence| !sentence.is_empty()) {
        line(out, style, Ink::Heading, "answer", sentence)?;
    }
    let steps = step_times::of(timeline, metrics, diagnosis);
    let steps = steps.iter().filter(|step| step.count > 0).map(|step| ("step", step)).take(1);
    let scopes = metrics.scopes.iter().filter(|scope| scope.count > 0).map(|scope| ("scope", scope)).take(2);
    for (kind, spread) in steps.chain(scopes) {
        let (p50, p99) = (duration(spread.p50), duration(spread.p99));
        let name = style.fit(timeline.names.text(spread.name), 40);
        line(out, style, Ink::Plain, kind, &text(&name, spread.count, &p50, &p99))?;
    }
    if let Some((samples, hottest)) = metrics.samples.as_ref().and_then(|s| s.lines.first().map(|line| (s, line))) {
        let name = timeline.names.get(hottest.name);
        let place = if hottest.line > 0 { format!("{}:{}", name.file, hottest.line) } else { name.file.to_string() };
        let share = match diagnosis.too_few_samples {
            true => format!("{} of {}", hottest.own, samples.active),
            false => percent_of(hottest.own, samples.active) + " of",
        };
        let text = format!("{} {} ({share} running samples)", style.fit(&name.text, 40), style.fit_end(&place, 60));
        line(out, style, Ink::Plain, "hottest", &text)?;
    }
    // What a module runs when it is imported is start-up.
    let imports = |name: &str| name == "<module>";
    let called = metrics.calls.iter().flat_map(|calls| &calls.functions);
    let mut called = called.filter(|function| !imports(timeline.names.text(function.name)));
    if let Some(function) = called.next() {
        let name = style.fit(timeline.names.text(function.name), 40);
        let text = format!("{name}: {} of its own in {}", duration(function.own), counted(function.count, "call"));
        line(out, style, Ink::Plain, "calls", &text)?;
    }
    for device in diagnosis.gpu.iter().flat_map(|gpu| &gpu.devices).take(MOST_NOTES) {
        let busy = percent_of(device.busy_ns, device.window_ns);
        let text = format!(
            "{}: busy {busy} {}, {}",
            gpu_words::title(timeline, device),
            gpu_words::window(diagnosis.steps.source),
            counted(device.kernels, "kernel")
        );
        line(out, style, Ink::Plain, "gpu", &text)?;
    }
    for loss in diagnosis::losses::totals(timeline).iter().take(MOST_NOTES) {
        line(out, style, Ink::Warn, "lost", &loss.text())?;
    }
    for note in timeline.notes.iter().take(MOST_NOTES) {
        line(out, style, Ink::Warn, "note", &note.said())?;
    }
    match timeline.notes.len().saturating_sub(MOST_NOTES) {
        0 => Ok(()),
        more => line(out, style, Ink::Warn, "note", &format!("{more} more in the report")),
    }
}

/// One time has no percentiles.
fn text(name: &str, times: u64, p50: &str, p99: &str) -> String {
    match times {
        1 => format!("{name}: once, {p50}"),
        times => format!("{name}: {} times, p50 {p50}, p99 {p99}", count(times)),
    }
}

fn line(out: &mut impl Write, style: &Style, ink: Ink, label: &str, text: &str) -> io::Result<()> {
    let text = style.plain(&crate::escape::visible(text));
    writeln!(out, "{} {}", style.ink(Ink::Faint, &format!("{label:8}")), style.ink(ink, &text))
}
