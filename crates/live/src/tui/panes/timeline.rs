//! What threads and streams did in the window, a row each: how high a cell is says how much of it was busy.

use super::View;
use super::table::cut;
use crate::model::Model;
use ratatui::text::{Line, Span};
use report::duration;

pub fn lines(model: &Model, view: &View) -> Vec<Line<'static>> {
    let tracks: Vec<_> = model.tracks.iter().filter(|track| view.wants(&track.name)).collect();
    if tracks.is_empty() {
        return vec![Line::styled("No thread or stream was busy in this window.", view.look.faint())];
    }
    let label = (view.width / 4).clamp(8, 28);
    let room = view.width.saturating_sub(label + 1).max(1);
    let mut lines = Vec::new();
    for track in tracks {
        let name = cut(&view.shown(&track.name), label);
        let pad = " ".repeat(label - unicode_width::UnicodeWidthStr::width(name.as_str()) + 1);
        let cells: String =
            (0..room.min(track.cells.len())).map(|at| view.look.level(cell(&track.cells, at, room))).collect();
        lines.push(Line::from(vec![Span::raw(name + &pad), Span::styled(cells, view.look.bar())]));
    }
    let (from, to) = (duration(model.clock.start_ns), duration(model.clock.end_ns));
    lines.push(Line::styled(
        view.shown(&cut(&format!("from {from} to {to} after the start"), view.width)),
        view.look.faint(),
    ));
    lines
}

/// The mean of the cells that fall into one column.
fn cell(cells: &[u8], at: usize, columns: usize) -> u64 {
    let columns = columns.min(cells.len());
    let (from, to) =
        (at * cells.len() / columns, ((at + 1) * cells.len() / columns).max(at * cells.len() / columns + 1));
    let some = &cells[from..to.min(cells.len())];
    some.iter().map(|cell| u64::from(*cell)).sum::<u64>() / some.len().max(1) as u64
}
