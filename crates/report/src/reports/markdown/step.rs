//! Where the time of a step goes: by function and line, which adds up to all of it, and by the scopes inside it, in the order
//! in which they begin.

use super::code::{code, short_place};
use super::picture;
use super::table::{Table, bar, stretch};
use super::words::prose;
use crate::percentages;
use crate::units::{count, counted, duration};
use analysis::{Breakdown, Part, StepSource};
use diagnosis::Diagnosis;
use diagnosis::wording;
use std::io::{self, Write};
use timeline::Timeline;

/// What is smaller is added up.
const MOST: usize = 15;

pub fn write(timeline: &Timeline, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let (steps, breakdown) = (&diagnosis.steps, &diagnosis.breakdown);
    match steps.source {
        StepSource::Whole => writeln!(out, "## Where the time of the recording goes\n")?,
        _ => writeln!(out, "## Where the time of a {} goes\n", code(&steps.name))?,
    }
    if breakdown.parts.is_empty() {
        return writeln!(out, "No timed events were recorded.\n");
    }
    picture::waterfall(timeline, diagnosis, out)?;
    let mean = duration(breakdown.step_ns);
    let mut said = match steps.source {
        StepSource::Whole => {
            let thread = steps.thread.as_ref().map_or_else(|| "its busiest thread".to_owned(), wording::steps::thread);
            let thread = prose(&thread);
            format!("No steps found: this covers all of {thread}, {mean}.")
        }
        _ if breakdown.overlapping => format!(
            "Steps overlap on a thread, so shares are of the time in which any step was open: {mean} for each of {}.",
            counted(steps.count() as u64, "step")
        ),
        _ if steps.count() == 1 => format!("One step, {mean}."),
        _ => format!("Mean of {}: {mean}.", counted(steps.count() as u64, "step")),
    };
    if breakdown.samples > 0 {
        said += &format!(" Based on {}.", counted(breakdown.samples, "stack sample"));
    }
    writeln!(out, "{said}\n")?;
    parts(breakdown, out)?;
    phases(breakdown, out)
}

fn parts(breakdown: &Breakdown, out: &mut impl Write) -> io::Result<()> {
    let shown = &breakdown.parts[..breakdown.parts.len().min(MOST)];
    let rest = &breakdown.parts[shown.len()..];
    let mut weights: Vec<u64> = shown.iter().map(|part| part.total_ns).collect();
    weights.push(rest.iter().fold(0, |sum, part| sum.saturating_add(part.total_ns)));
    let shares = percentages::texts(&weights);
    let mut table = Table::new([" share", "", " time", "what", "kind", "where"]);
    for (part, share) in shown.iter().zip(&shares) {
        table.row([
            share.clone(),
            bar(part.share),
            duration(part.ns),
            if nameless(part) { part.label.clone() } else { code(&part.label) },
            if nameless(part) { String::new() } else { kind(part) },
            short_place(&part.file, part.line),
        ]);
    }
    if !rest.is_empty() {
        let time = rest.iter().fold(0u64, |sum, part| sum.saturating_add(part.ns));
        let what = format!("{} smaller", count(rest.len() as u64));
        let share = rest.iter().map(|part| part.share).sum();
        table.row([shares[shown.len()].clone(), bar(share), duration(time), what, String::new(), String::new()]);
    }
    table.write(out)
}

/// What it does, with the native function that most of it is in.
fn kind(part: &Part) -> String {
    let native = part.native.as_ref().map(|native| format!(" ({})", code(&native.said())));
    format!("{}{}", part.kind.name(), native.unwrap_or_default())
}

/// A part that is a kind and nothing more.
fn nameless(part: &Part) -> bool {
    part.file.is_empty() && part.label == part.kind.name()
}

fn phases(breakdown: &Breakdown, out: &mut impl Write) -> io::Result<()> {
    if breakdown.phases.is_empty() {
        return Ok(());
    }
    writeln!(out, "Scopes, in order of their start:\n")?;
    let whole = breakdown.step_ns.max(1) as f64;
    let mut table = Table::new(["scope", "when", " starts after", " time", " count"]);
    for phase in breakdown.phases.iter().take(MOST) {
        let (from, takes) = (phase.offset_ns as f64, phase.ns as f64);
        table.row([
            "↳ ".repeat(phase.depth.saturating_sub(1) as usize) + &code(&phase.name),
            stretch(from / whole, (from + takes) / whole),
            duration(phase.offset_ns),
            duration(phase.ns),
            count(phase.count),
        ]);
    }
    table.write(out)?;
    match breakdown.phases.len().saturating_sub(MOST) {
        0 => Ok(()),
        more => writeln!(out, "{} more in the other reports.\n", count(more as u64)),
    }
}
