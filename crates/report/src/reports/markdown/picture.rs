//! The median step as lanes of letters in a table, and what made the slow steps slow.

use super::code::{code, short_place};
use super::table::Table;
use super::words::prose;
use crate::picture::{drawn, legend, said, several, title};
use crate::units::{count, duration};
use analysis::phrase::longer;
use analysis::slow_steps::{Difference, slowest};
use analysis::waterfall::Waterfall;
use diagnosis::Diagnosis;
use diagnosis::wording::slow_steps;
use std::io::{self, Write};
use timeline::Timeline;

/// Cells of a lane: a table of a pull request is about so wide.
const CELLS: usize = 56;
/// Differences that are shown; the JSON has more.
const MOST: usize = 8;

pub fn waterfall(timeline: &Timeline, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let Some(picture) = &diagnosis.waterfall else { return Ok(()) };
    let from = duration(picture.start.saturating_sub(timeline.start));
    let whole = duration(picture.end - picture.start);
    writeln!(out, "Median step: {whole}, starts at {from}:\n")?;
    lanes(timeline, picture, out)?;
    let words: Vec<String> = legend(picture).iter().map(|(letter, word)| format!("`{letter}` {word}")).collect();
    writeln!(out, "{}\n", words.join(" · "))
}

fn lanes(timeline: &Timeline, picture: &Waterfall, out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(["lane", "over the step", "total"]);
    let several = several(picture);
    for lane in &picture.lanes {
        let drawn = drawn(picture, lane, CELLS);
        table.row([title(timeline, lane, several), format!("`{drawn}`"), said(picture, lane, 3)]);
    }
    table.write(out)
}

pub fn slow(timeline: &Timeline, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    let Some(slow) = &diagnosis.slow_steps else { return Ok(()) };
    writeln!(out, "### Slow vs. typical steps\n\n{}\n", prose(&slow_steps::sentence(&diagnosis.steps, slow)))?;
    if slow.differences.is_empty() {
        return Ok(());
    }
    let mut table = Table::new([" difference", " slow", " typical", "what", "where"]);
    for one in slow.differences.iter().take(MOST) {
        table.row([
            longer(one.more_ns()),
            duration(one.slow_ns),
            duration(one.usual_ns),
            slow_steps::row(one.side),
            place(one),
        ]);
    }
    table.write(out)?;
    let mut facts: Vec<String> = slow
        .counts
        .iter()
        .map(|one| format!("{} {} instead of {}", slow_steps::counted(one.what), number(one.slow), number(one.usual)))
        .collect();
    let since = |time: u64| duration(time.saturating_sub(timeline.start));
    let when: Vec<String> = slowest(&diagnosis.steps, slow).take(3).map(|step| since(step.start)).collect();
    facts.push(format!("the slowest start at {}", when.join(", ")));
    writeln!(out, "Per step: {}.\n", facts.join("; "))
}

/// A mean of counts: whole where it is.
pub fn number(mean: f64) -> String {
    if mean.fract() == 0.0 || mean >= 1000.0 { count(mean.round() as u64) } else { format!("{mean:.1}") }
}

fn place(one: &Difference) -> String {
    let at = &one.place;
    let mut all: Vec<String> =
        [&at.kernel, &at.api, &at.function].into_iter().flatten().map(|name| code(name)).collect();
    all.extend(at.file.as_ref().map(|file| short_place(file, at.line.unwrap_or(0))));
    all.join(" ")
}
