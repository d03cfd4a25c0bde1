//! What the rules found, each finding with its place, its gain, its proof and what to do; then the rules that were skipped.

use super::code::{code, place};
use super::words::prose;
use crate::units::{confidence, counted, duration};
use analysis::{StepSource, phrase};
use diagnosis::{Diagnosis, Evidence, Finding};
use replay::Gain;
use std::io::{self, Write};
use timeline::Timeline;

pub fn write(timeline: &Timeline, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "## Findings\n")?;
    if diagnosis.findings.is_empty() {
        writeln!(out, "None.\n")?;
    }
    let whole = if diagnosis.steps.source == StepSource::Whole { "the recording" } else { "the step" };
    for (place, finding) in diagnosis.findings.iter().enumerate() {
        one(timeline, place + 1, finding, whole, out)?;
    }
    considered(diagnosis, out)?;
    abstentions(diagnosis, out)
}

/// What else could be the cause, and what speaks against it.
fn considered(diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    if diagnosis.considered.is_empty() {
        return Ok(());
    }
    writeln!(out, "### Also considered\n")?;
    for one in &diagnosis.considered {
        writeln!(out, "- `{}`: {}", one.code, prose(&one.against))?;
    }
    writeln!(out)
}

fn one(timeline: &Timeline, number: usize, finding: &Finding, whole: &str, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "### {number}. {}\n", prose(&finding.title))?;
    let gain = match finding.gain {
        Some(gain) => format!("gain **{}** of {whole}{}", range(gain), gain.by.proviso()),
        None if analysis::memory::is_all(timeline) => "memory".into(),
        None => "gain unknown".into(),
    };
    let (severity, sure) = (finding.severity.name(), confidence(finding.confidence()));
    writeln!(out, "`{}` · severity {severity} · {gain} · confidence {sure}{}\n", finding.code, factors(finding))?;
    let at = places(finding);
    if !at.is_empty() {
        writeln!(out, "**Where:** {}\n", at.join(" · "))?;
    }
    writeln!(out, "**Evidence**\n")?;
    for evidence in &finding.evidence {
        writeln!(out, "- {}{}", prose(&evidence.text), when(timeline, evidence))?;
    }
    writeln!(out, "\n**What to do**\n")?;
    for action in &finding.actions {
        writeln!(out, "- {}", prose(action.text()))?;
    }
    writeln!(out, "\n**How to verify:** {}\n", prose(&finding.verify))
}

/// What the confidence is made of, where anything but how surely it was seen is in doubt.
fn factors(finding: &Finding) -> String {
    finding.certainty.factors_text().map(|said| format!(" ({said})")).unwrap_or_default()
}

/// `46 to 54 %`.
fn range(gain: Gain) -> String {
    phrase::percent_range(gain.share())
}

fn places(finding: &Finding) -> Vec<String> {
    let at = &finding.place;
    let mut all: Vec<String> = at.function.iter().map(|function| code(function)).collect();
    all.extend(at.file.iter().map(|file| place(file, at.line.unwrap_or(0))));
    let named = [("module", &at.module), ("kernel", &at.kernel), ("call", &at.api)];
    let named = named.iter().filter_map(|(what, name)| name.as_ref().map(|name| format!("{what} {}", code(name))));
    all.extend(named);
    all
}

/// When and on which thread, for somebody who opens the timeline beside it.
fn when(timeline: &Timeline, evidence: &Evidence) -> String {
    let (Some(start), Some(end)) = (evidence.start, evidence.end) else { return String::new() };
    let since = |time: u64| duration(time.saturating_sub(timeline.start));
    let track = evidence.track.and_then(|track| timeline.tracks.get(track.0 as usize));
    let thread = match track {
        Some(track) if track.name.is_empty() => format!(", thread {}", track.tid),
        Some(track) => format!(", thread {} ({})", code(&track.name), track.tid),
        None => String::new(),
    };
    match start == end {
        true => format!(" — {} after the start{thread}", since(start)),
        false => format!(" — {} to {} after the start{thread}", since(start), since(end)),
    }
}

fn abstentions(diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    if diagnosis.abstentions.is_empty() {
        return Ok(());
    }
    let rules = counted(diagnosis.abstentions.len() as u64, "rule");
    writeln!(out, "<details>\n<summary>{rules} skipped, and why</summary>\n")?;
    for abstention in &diagnosis.abstentions {
        writeln!(out, "- `{}`: {}", abstention.code, prose(&abstention.reason))?;
    }
    writeln!(out, "\n</details>\n")
}
