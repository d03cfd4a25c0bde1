//! Memory of two snapshots side by side: what is in use and reserved, and which lines hold more; and the same as a part of the comparison of recordings.

use crate::comparison::Titles;
use crate::escape::visible;
use crate::reports::markdown::table::Table as MarkdownTable;
use crate::reports::markdown::words::prose;
use crate::style::{Ink, Style};
use crate::table::Table;
use crate::units::bytes;
use analysis::phrase;
use diagnosis::compare::memory::{AllocatorChange, MemoryComparison, Pair, PlaceChange};
use serde::Serialize;
use std::io::{self, Write};

/// Of the JSON: grows by one after the point when something is added, before it when something changes its meaning or goes.
pub const VERSION: &str = "1.0";

/// The parts of an allocator that are compared.
fn rows(one: &AllocatorChange) -> [(&'static str, Pair); 4] {
    [("in use", one.in_use), ("reserved", one.reserved), ("peak in use", one.peak), ("largest hole", one.largest_free)]
}

fn said(size: Option<u64>) -> String {
    size.map_or("-".into(), bytes)
}

/// `+1.20 GiB`, `−512 B`, `0 B`.
fn change(delta: i128) -> String {
    let size = bytes(u64::try_from(delta.unsigned_abs()).unwrap_or(u64::MAX));
    match delta {
        0 => size,
        1.. => format!("+{size}"),
        _ => format!("−{size}"),
    }
}

fn delta((a, b): Pair) -> String {
    a.zip(b).map_or("-".into(), |(a, b)| change(i128::from(b) - i128::from(a)))
}

fn place(one: &PlaceChange) -> String {
    match one.place.function.is_some() || one.place.file.is_some() {
        true => phrase::place(&one.place),
        false => "(stack not recorded)".into(),
    }
}

/// What grew most, in one sentence.
pub fn answer(comparison: &MemoryComparison) -> String {
    let known = |one: &&PlaceChange| one.place.function.is_some();
    let grown = comparison.places.iter().filter(known).filter(|one| one.delta() > 0).max_by_key(|one| one.delta());
    let both = comparison.allocators.iter().filter_map(|one| one.in_use.0.zip(one.in_use.1));
    let total: i128 = both.map(|(a, b)| i128::from(b) - i128::from(a)).sum();
    let size = bytes(u64::try_from(total.unsigned_abs()).unwrap_or(u64::MAX));
    let whole = match total {
        0 => "B has as much in use as A".to_owned(),
        1.. => format!("B has {size} more in use than A"),
        _ => format!("B has {size} less in use than A"),
    };
    match grown {
        Some(one) => format!("{whole}; {} holds {}.", place(one), change(one.delta())),
        None => format!("{whole}; no line holds more."),
    }
}

pub fn text(
    comparison: &MemoryComparison,
    titles: &Titles,
    top: usize,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    writeln!(out, "A  {}\nB  {}\n", visible(titles.a), visible(titles.b))?;
    writeln!(out, "{}", style.ink(Ink::Heading, &style.plain(&visible(&answer(comparison)))))?;
    tables(comparison, top, style, out)
}

fn lines_title(comparison: &MemoryComparison) -> &'static str {
    if comparison.at_peak { "Lines that hold more or less at the peak" } else { "Lines that hold more or less" }
}

/// What both have, as tables.
pub fn tables(comparison: &MemoryComparison, top: usize, style: &Style, out: &mut impl Write) -> io::Result<()> {
    for one in &comparison.allocators {
        writeln!(out, "\n{}", style.ink(Ink::Heading, &format!("Memory of {}", visible(&one.name))))?;
        let mut table = Table::new(["A", "B", "change", ""]);
        for (name, pair) in rows(one) {
            let cells = [said(pair.0), said(pair.1), style.plain(&delta(pair))].map(|text| (Ink::Plain, text));
            table.row(cells, name, "");
        }
        table.write(out, style)?;
    }
    if comparison.places.is_empty() {
        return Ok(());
    }
    let rest = comparison.places.len().saturating_sub(top);
    let more = if rest > 0 { format!("  {rest} more in --format json") } else { String::new() };
    writeln!(out, "\n{}{}", style.ink(Ink::Heading, lines_title(comparison)), style.ink(Ink::Faint, &more))?;
    let mut table = Table::new(["A", "B", "change", "blocks", "allocated at"]);
    for one in comparison.places.iter().take(top) {
        let blocks = format!("{} to {}", one.blocks.0, one.blocks.1);
        let cells = [bytes(one.bytes.0), bytes(one.bytes.1), style.plain(&change(one.delta())), blocks];
        table.row(cells.map(|text| (Ink::Plain, text)), &place(one), &one.allocator);
    }
    table.write(out, style)
}

pub fn markdown(comparison: &MemoryComparison, titles: &Titles, top: usize, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "# InferScope: memory of {} and {}\n", prose(titles.a), prose(titles.b))?;
    writeln!(out, "> {}\n", prose(&answer(comparison)))?;
    markdown_tables(comparison, top, out)
}

/// What both have, as tables.
pub fn markdown_tables(comparison: &MemoryComparison, top: usize, out: &mut impl Write) -> io::Result<()> {
    for one in &comparison.allocators {
        writeln!(out, "## {}{}\n", if comparison.at_peak { "Memory of " } else { "" }, prose(&one.name))?;
        let mut table = MarkdownTable::new(["", " A", " B", " change"]);
        rows(one)
            .into_iter()
            .for_each(|(name, pair)| table.row([name.into(), said(pair.0), said(pair.1), delta(pair)]));
        table.write(out)?;
    }
    if comparison.at_peak && !comparison.places.is_empty() {
        writeln!(out, "{}:\n", lines_title(comparison))?;
    }
    let mut table = MarkdownTable::new(["allocated at", " A", " B", " change", " blocks"]);
    for one in comparison.places.iter().take(top) {
        let blocks = format!("{} to {}", one.blocks.0, one.blocks.1);
        table.row([prose(&place(one)), bytes(one.bytes.0), bytes(one.bytes.1), change(one.delta()), blocks]);
    }
    table.write(out)
}

#[derive(Serialize)]
struct Whole<'a> {
    memory_comparison_version: &'static str,
    a: &'a str,
    b: &'a str,
    answer: String,
    allocators: Vec<AllocatorRow<'a>>,
    places: Vec<PlaceRow<'a>>,
}

#[derive(Serialize)]
struct AllocatorRow<'a> {
    name: &'a str,
    in_use_bytes: [Option<u64>; 2],
    reserved_bytes: [Option<u64>; 2],
    peak_in_use_bytes: [Option<u64>; 2],
    largest_free_bytes: [Option<u64>; 2],
}

#[derive(Serialize)]
struct PlaceRow<'a> {
    allocator: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    function: Option<&'a str>,
    bytes: [u64; 2],
    blocks: [u64; 2],
}

fn allocator_row(one: &AllocatorChange) -> AllocatorRow<'_> {
    let pair = |(a, b): Pair| [a, b];
    AllocatorRow {
        name: &one.name,
        in_use_bytes: pair(one.in_use),
        reserved_bytes: pair(one.reserved),
        peak_in_use_bytes: pair(one.peak),
        largest_free_bytes: pair(one.largest_free),
    }
}

fn place_row(one: &PlaceChange) -> PlaceRow<'_> {
    PlaceRow {
        allocator: &one.allocator,
        file: one.place.file.as_deref(),
        line: one.place.line,
        function: one.place.function.as_deref(),
        bytes: one.bytes.into(),
        blocks: one.blocks.into(),
    }
}

/// A part of another document.
pub fn value(comparison: &MemoryComparison) -> serde_json::Value {
    let allocators: Vec<AllocatorRow> = comparison.allocators.iter().map(allocator_row).collect();
    let places: Vec<PlaceRow> = comparison.places.iter().map(place_row).collect();
    serde_json::json!({"allocators": allocators, "places": places})
}

pub fn json(comparison: &MemoryComparison, titles: &Titles, out: &mut impl Write) -> io::Result<()> {
    let whole = Whole {
        memory_comparison_version: VERSION,
        a: titles.a,
        b: titles.b,
        answer: answer(comparison),
        allocators: comparison.allocators.iter().map(allocator_row).collect(),
        places: comparison.places.iter().map(place_row).collect(),
    };
    serde_json::to_writer_pretty(&mut *out, &whole)?;
    writeln!(out)
}
