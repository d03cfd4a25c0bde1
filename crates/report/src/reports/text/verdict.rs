//! The answer and the findings, before all numbers: what holds the program back, where, and what to do first.

use super::Page;
use crate::escape::visible;
use crate::style::{Ink, Style};
use crate::units;
use analysis::{StepSource, phrase};
use diagnosis::{Diagnosis, Finding, HealthState, HealthTopic, Severity};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// More are in the other formats.
const MOST: usize = 6;

impl Page<'_> {
    pub(super) fn answer(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        writeln!(out)?;
        for (place, sentence) in diagnosis.answer.iter().filter(|sentence| !sentence.is_empty()).enumerate() {
            let ink = if place == 0 { Ink::Heading } else { Ink::Plain };
            for line in wrapped(self.style, sentence, self.style.width) {
                writeln!(out, "{}", self.style.ink(ink, &line))?;
            }
        }
        Ok(())
    }

    pub(super) fn findings(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        if diagnosis.findings.is_empty() {
            return Ok(());
        }
        let note = match analysis::memory::is_all(self.timeline) {
            true => "most severe first".to_owned(),
            false => format!("largest gain first, in percent of {}", whole(diagnosis)),
        };
        self.heading(out, "Findings", &note)?;
        for finding in diagnosis.findings.iter().take(MOST) {
            self.finding(out, finding)?;
        }
        match diagnosis.findings.len().saturating_sub(MOST) {
            0 => {}
            more => writeln!(out, "  {}", self.style.ink(Ink::Faint, &format!("{more} more in the report")))?,
        }
        self.considered(out, diagnosis)
    }

    /// What else could be the cause, and what speaks against it: one line each.
    fn considered(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        if diagnosis.considered.is_empty() {
            return Ok(());
        }
        writeln!(out, "  Also considered")?;
        for one in &diagnosis.considered {
            let text = format!("{}: {}", one.code, one.against);
            for line in wrapped(self.style, &text, self.style.width.saturating_sub(4)) {
                writeln!(out, "    {}", self.style.ink(Ink::Faint, &line))?;
            }
        }
        Ok(())
    }

    fn finding(&self, out: &mut impl Write, finding: &Finding) -> io::Result<()> {
        let style = self.style;
        let width = style.width.saturating_sub(4);
        let ink = if finding.severity >= Severity::Medium { Ink::Warn } else { Ink::Plain };
        let bullet = if style.unicode { "•" } else { "-" };
        for (place, line) in wrapped(style, &finding.title, width).into_iter().enumerate() {
            let mark = if place == 0 { bullet } else { " " };
            writeln!(out, "  {mark} {}", style.ink(ink, &line))?;
        }
        let gain = finding.gain.map(|gain| format!("gain {}", phrase::saving(gain.share(), gain.by.proviso())));
        let sure = finding.gain.map(|_| format!("confidence {}", confidence(finding)));
        let about = [Some(finding.code.to_string()), gain, sure].into_iter().flatten().collect::<Vec<_>>();
        writeln!(out, "    {}", style.ink(Ink::Faint, &style.plain(&about.join(style.dot()))))?;
        for line in finding.actions.first().iter().flat_map(|action| wrapped(style, action.text(), width)) {
            writeln!(out, "    {line}")?;
        }
        Ok(())
    }
}

/// What the box of health says of the numbers; what is missing is said apart.
const TRUST: [HealthTopic; 9] = [
    HealthTopic::Start,
    HealthTopic::Steps,
    HealthTopic::Clock,
    HealthTopic::GpuClock,
    HealthTopic::Pace,
    HealthTopic::Overhead,
    HealthTopic::Recorder,
    HealthTopic::Rules,
    HealthTopic::Replay,
];

impl Page<'_> {
    pub(super) fn trust(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        self.heading(out, "Data quality", "")?;
        for line in diagnosis.health.iter().filter(|line| TRUST.contains(&line.topic)) {
            let (ink, mark) = match (line.state, self.style.unicode) {
                (HealthState::Ok, true) => (Ink::Good, "✓"),
                (HealthState::Ok, false) => (Ink::Good, "+"),
                (HealthState::Info, true) => (Ink::Faint, "·"),
                (HealthState::Info, false) => (Ink::Faint, "-"),
                (HealthState::Warn, _) => (Ink::Warn, "!"),
                (HealthState::Bad, true) => (Ink::Warn, "✗"),
                (HealthState::Bad, false) => (Ink::Warn, "x"),
            };
            let text = format!("{}: {}", line.label(), line.text);
            for (place, said) in wrapped(self.style, &text, self.style.width.saturating_sub(4)).iter().enumerate() {
                let mark = if place == 0 { mark } else { " " };
                writeln!(out, "  {} {said}", self.style.ink(ink, mark))?;
            }
        }
        Ok(())
    }
}

/// With what leaves the most doubt, where that is more than how surely it was seen.
fn confidence(finding: &Finding) -> String {
    let sure = units::confidence(finding.confidence());
    match finding.certainty.weakest() {
        Some((factor, chance)) => format!("{sure} ({factor} {:.0} %)", 100.0 * chance),
        None => sure,
    }
}

/// What gains are a part of.
fn whole(diagnosis: &Diagnosis) -> &'static str {
    if diagnosis.steps.source == StepSource::Whole { "the recording" } else { "the step" }
}

/// Words on as many lines as they need; nothing in them can move the cursor.
pub(super) fn wrapped(style: &Style, text: &str, width: usize) -> Vec<String> {
    let text = style.plain(&visible(text));
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if !line.is_empty() && line.width() + 1 + word.width() > width {
            lines.push(word.to_owned());
        } else {
            *line = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        }
    }
    lines
}
