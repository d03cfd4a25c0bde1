//! Two recordings side by side, for a pull request: what the text says, as tables, with the answer and the gates on top.

use crate::comparison::{
    SHOWN, Titles, answer, group_titles, mark, metric_noise, metrics_title, name, notes, signed, state,
};
use crate::reports::markdown::code::{code, short_place};
use crate::reports::markdown::table::Table;
use crate::reports::markdown::words::prose;
use crate::units::{count, duration};
use analysis::phrase;
use diagnosis::compare::gate::GateState;
use diagnosis::compare::{Change, Comparison, GateResult, Group, relative};
use diagnosis::named::{METRICS, Unit};
use std::io::{self, Write};

pub fn write(
    comparison: &Comparison,
    titles: &Titles,
    gates: &[GateResult],
    top: usize,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "# InferScope: {} (A) and {} (B)\n", code(titles.a), code(titles.b))?;
    writeln!(out, "> {}\n", prose(&answer(comparison)))?;
    judged(gates, out)?;
    environment(comparison, out)?;
    metrics(comparison, out)?;
    Group::ALL.into_iter().try_for_each(|group| changes(comparison, group, top, out))?;
    if let Some(memory) = &comparison.memory {
        super::memory::markdown_tables(memory, top, out)?;
    }
    let notes = notes(comparison);
    if !notes.is_empty() {
        writeln!(out, "## Caveats\n")?;
        notes.iter().try_for_each(|note| writeln!(out, "- {}", prose(note)))?;
    }
    Ok(())
}

/// Gates come first: whoever set one asks whether it holds.
fn judged(gates: &[GateResult], out: &mut impl Write) -> io::Result<()> {
    let mut table = Table::new(["", "gate", ""]);
    for gate in gates {
        let word = state(gate.state);
        let word = if gate.state == GateState::Holds { word.to_owned() } else { format!("**{word}**") };
        table.row([word, code(&gate.text), prose(&gate.said)]);
    }
    table.write(out)
}

fn environment(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "## Environment\n")?;
    if comparison.environment.is_empty() {
        return writeln!(out, "No difference recorded.\n");
    }
    let mut table = Table::new(["what differs", "A", "B"]);
    let side = |text: &str| if text.is_empty() { "not recorded".into() } else { code(text) };
    for one in &comparison.environment {
        table.row([prose(&one.what), side(&one.a), side(&one.b)]);
    }
    table.write(out)
}

fn metrics(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "## {}\n", metrics_title(comparison))?;
    let mut table = Table::new(["metric", " A", " B", " change", ""]);
    for name in SHOWN {
        let Some(change) = comparison.metrics.iter().find(|change| change.name() == name) else { continue };
        let Some((a, b)) = change.values() else { continue };
        let unit = METRICS[change.metric].unit;
        let by = relative(a, b).map_or("new".into(), phrase::change);
        table.row([code(name), unit.say(a), unit.say(b), by, mark(metric_noise(change), a == b).into()]);
    }
    table.write(out)
}

fn changes(comparison: &Comparison, group: Group, top: usize, out: &mut impl Write) -> io::Result<()> {
    let rows: Vec<&Change> = comparison.changes.iter().filter(|change| change.group == group).collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "## {}\n", prose(group_titles(comparison, group).0))?;
    let differences = if comparison.whole { " change" } else { " per step" };
    let mut table = Table::new(["name", "where", " A", " B", differences, "", " count"]);
    let time = |ns: f64| duration(ns.max(0.0).round() as u64);
    for change in rows.iter().take(top) {
        let number = |value: f64| Unit::Count.say(value);
        let counted = change.count.map_or(String::new(), |(a, b)| match a == b {
            true => number(a),
            false => format!("{} → {}", number(a), number(b)),
        });
        // Causes and kinds are our own words.
        let ours = matches!(group, Group::Kind | Group::Idle);
        table.row([
            if ours { prose(name(change)) } else { code(name(change)) },
            short_place(&change.place, 0),
            time(change.a.value),
            time(change.b.value),
            signed(change.delta()),
            mark(change.noise, change.delta().abs() < 1.0).into(),
            counted,
        ]);
    }
    table.write(out)?;
    let left = rows.len().saturating_sub(top);
    if left > 0 {
        writeln!(out, "{} more in the JSON output.\n", count(left as u64))?;
    }
    Ok(())
}
