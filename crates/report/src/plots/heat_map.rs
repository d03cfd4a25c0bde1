//! A heat map: a row for each line or layer, a column for each step or part of the recording, the darker the more was allocated.

use super::drawing::{Anchor, Drawing, Ink, WIDTH};
use crate::units::{bytes, count, counted};
use analysis::memory::heat::{HeatBy, HeatColumn, HeatMap};

pub const MOST_ROWS: usize = 24;
const ROW: f64 = 20.0;
const NAMES: f64 = 300.0;
const TOTALS: f64 = 92.0;
/// A cell with anything in it is seen.
const FAINTEST: f64 = 0.12;

/// `moment` says when a time was.
pub fn draw(title: &str, map: &HeatMap, by: HeatBy, moment: impl Fn(u64) -> String) -> Drawing {
    let mut drawing = Drawing::new(title, 0.0);
    let most = map.rows.iter().flat_map(|row| row.bytes.iter().copied()).max().unwrap_or(0);
    let (what, cells) = match (by, map.columns.first().and_then(|column| column.steps)) {
        (HeatBy::Line, Some(_)) => ("line", "in each step"),
        (HeatBy::Layer, Some(_)) => ("layer", "in each step"),
        (HeatBy::Line, None) => ("line", "over the recording (it has no steps)"),
        (HeatBy::Layer, None) => ("layer", "over the recording (it has no steps)"),
    };
    let note = format!("Bytes allocated by each {what} {cells}; the darkest cell is {}", bytes(most));
    drawing.text(16.0, 42.0, 11.0, Anchor::Start, Ink::Muted, &note, WIDTH - 32.0);
    let (left, right, top) = (16.0 + NAMES, WIDTH - 16.0 - TOTALS, 56.0);
    let wide = (right - left) / map.columns.len().max(1) as f64;
    for (number, row) in map.rows.iter().enumerate() {
        let y = top + ROW * number as f64;
        let name = row.name.as_deref().unwrap_or(match by {
            HeatBy::Line => "(stack not recorded)",
            HeatBy::Layer => "(in no layer)",
        });
        drawing.text(left - 8.0, y + 14.0, 11.0, Anchor::End, Ink::Text, name, NAMES - 8.0);
        drawing.rect((left, y + 1.0), (right - left, ROW - 2.0), Ink::Grid).opacity = 0.5;
        for (at, value) in row.bytes.iter().enumerate().filter(|(_, value)| **value > 0) {
            let place = (left + wide * at as f64, y + 1.0);
            let cell = drawing.rect(place, ((wide - 0.6).max(0.6), ROW - 2.0), Ink::Series(0));
            cell.opacity = FAINTEST + (1.0 - FAINTEST) * *value as f64 / most.max(1) as f64;
            let name = super::drawing::named(name);
            cell.said(format!("{name}: {} {}", bytes(*value), span(&map.columns[at], &moment)));
        }
        drawing.text(right + 8.0, y + 14.0, 11.0, Anchor::Start, Ink::Muted, &bytes(row.total), TOTALS);
    }
    let bottom = top + ROW * map.rows.len() as f64;
    let ends = map.columns.first().zip(map.columns.last());
    if let Some((first, last)) = ends {
        let edge = |column: &HeatColumn, end: bool| match column.steps {
            Some((from, to)) => format!("step {}", count(u64::from(if end { to } else { from }) + 1)),
            None => moment(if end { column.end } else { column.start }),
        };
        drawing.text(left, bottom + 16.0, 11.0, Anchor::Start, Ink::Muted, &edge(first, false), 300.0);
        drawing.text(right, bottom + 16.0, 11.0, Anchor::End, Ink::Muted, &edge(last, true), 300.0);
    }
    let more = (map.more_rows > 0)
        .then(|| format!("{} more with {}", counted(map.more_rows as u64, what), bytes(map.more_bytes)));
    let outside = (map.outside > 0).then(|| format!("{} allocated outside of steps", bytes(map.outside)));
    let notes: Vec<String> = more.into_iter().chain(outside).collect();
    drawing.text(16.0, bottom + 34.0, 11.0, Anchor::Start, Ink::Muted, &notes.join("; "), WIDTH - 32.0);
    drawing.height = bottom + if notes.is_empty() { 28.0 } else { 46.0 };
    drawing
}

fn span(column: &HeatColumn, moment: &impl Fn(u64) -> String) -> String {
    match column.steps {
        Some((from, to)) if from == to => format!("in step {}", count(u64::from(from) + 1)),
        Some((from, to)) => format!("in steps {} to {}", count(u64::from(from) + 1), count(u64::from(to) + 1)),
        None => format!("from {} to {}", moment(column.start), moment(column.end)),
    }
}
