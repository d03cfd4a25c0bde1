//! Processes, ranks and threads: what each takes of the cores, and how long it waited for one.

use super::View;
use super::table::table;
use crate::model::Model;
use ratatui::text::Line;
use report::bytes;

pub fn lines(model: &Model, view: &View) -> Vec<Line<'static>> {
    let percent = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0} %"));
    let ranks = model.processes.iter().any(|process| process.rank.is_some());
    let process = |process: &crate::model::Process| {
        let rank = process.rank.map_or(String::new(), |rank| format!("rank {rank}, "));
        let ended = if process.ended { " (ended)" } else { "" };
        let name = view.shown(&format!("{}{}{ended}", if ranks { rank } else { String::new() }, process.name));
        let rss = process.rss_bytes.map_or_else(|| "-".to_owned(), bytes);
        vec![process.pid.to_string(), percent(process.cpu_percent), rss, process.threads.to_string(), name]
    };
    let rows: Vec<Vec<String>> = model.processes.iter().map(process).filter(|row| view.wants(&row[4])).collect();
    let mut lines = table(view, &["pid", "CPU", "resident", "threads", "process"], &rows);
    let thread = |thread: &crate::model::Thread| {
        let name = if thread.name.is_empty() { format!("thread {}", thread.tid) } else { thread.name.clone() };
        vec![thread.tid.to_string(), percent(thread.cpu_percent), percent(thread.waited_percent), view.shown(&name)]
    };
    let rows: Vec<Vec<String>> = model.threads.iter().map(thread).filter(|row| view.wants(&row[3])).collect();
    if !rows.is_empty() && !lines.is_empty() {
        lines.push(Line::raw(""));
    }
    lines.extend(table(view, &["tid", "CPU", "no core", "thread"], &rows));
    lines
}
