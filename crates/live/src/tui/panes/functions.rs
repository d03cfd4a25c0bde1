//! Functions by their share of the samples: on top of the stack, and anywhere on it.

use super::table::{cut, table};
use super::{Sort, View};
use crate::model::Model;
use analysis::phrase::short_file;
use ratatui::text::Line;

pub fn lines(model: &Model, view: &View) -> Vec<Line<'static>> {
    if model.functions.is_empty() {
        let why = "Too few stack samples in this window to say where time goes.";
        return vec![Line::styled(cut(why, view.width), view.look.faint())];
    }
    let mut functions: Vec<_> = model.functions.iter().collect();
    if view.sort == Sort::Total {
        functions.sort_by(|a, b| b.total_percent.total_cmp(&a.total_percent));
    }
    let row = |function: &&crate::model::Function| {
        let place = match (function.file.is_empty(), function.line) {
            (true, _) => String::new(),
            (false, 0) => format!(" ({})", short_file(&function.file)),
            (false, line) => format!(" ({}:{line})", short_file(&function.file)),
        };
        let name = view.shown(&format!("{}{place}", function.name));
        let percent = |value: f64| format!("{value:.0} %");
        vec![percent(function.own_percent), percent(function.total_percent), name]
    };
    let rows: Vec<Vec<String>> = functions.iter().map(row).filter(|row| view.wants(&row[2])).collect();
    table(view, &["own", "total", "function"], &rows)
}
