//! Where the time of a step goes, function by function: the same table as in the Markdown report.

use super::Page;
use super::spark::bar;
use crate::percentages;
use crate::style::Ink;
use crate::table::Table;
use crate::units::{count, duration};
use analysis::{Part, StepSource, phrase};
use diagnosis::Diagnosis;
use std::io::{self, Write};

impl Page<'_> {
    pub(super) fn parts(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        let (steps, parts) = (&diagnosis.steps, &diagnosis.breakdown.parts);
        // Of a handful of samples no share is known.
        if parts.is_empty() || diagnosis.too_few_samples {
            return Ok(());
        }
        let mean = self.time(diagnosis.breakdown.step_ns);
        match steps.source {
            StepSource::Whole => self.heading(out, "Where the time goes", &format!("whole recording, {mean}"))?,
            _ => self.heading(out, "Where the time of a step goes", &format!("mean step {mean}"))?,
        }
        let shown = &parts[..parts.len().min(self.top)];
        let rest = &parts[shown.len()..];
        let sum = |value: fn(&Part) -> u64| rest.iter().map(value).fold(0, u64::saturating_add);
        let mut weights: Vec<u64> = shown.iter().map(|part| part.total_ns).collect();
        weights.push(sum(|part| part.total_ns));
        let shares = percentages::texts(&weights);
        let mut table = Table::new(["", "share", "time", "function"]);
        let cells = |share: f64, text: &str, ns: u64| {
            [
                (Ink::Bar, bar(share, 10, self.style)),
                (Ink::Plain, text.to_owned()),
                (Ink::Plain, self.style.plain(&duration(ns))),
            ]
        };
        for (part, share) in shown.iter().zip(&shares) {
            table.row(cells(part.share, share, part.ns), &part.label, &about(part));
        }
        if !rest.is_empty() {
            let share = rest.iter().map(|part| part.share).sum();
            let cells = cells(share, &shares[shown.len()], sum(|part| part.ns));
            table.row(cells, &format!("{} smaller", count(rest.len() as u64)), "");
        }
        table.write(out, self.style)
    }
}

/// Its line, and what it does there where that is not plain Python.
fn about(part: &Part) -> String {
    let at = if part.file.is_empty() { String::new() } else { phrase::line(&part.place()) };
    match part.doing() {
        _ if part.label == part.kind.name() => at,
        None => at,
        Some(doing) if at.is_empty() => doing,
        Some(doing) => format!("{at}, {doing}"),
    }
}
