//! Memory of the recorded processes over the window, and what that of the devices is for.

use super::View;
use super::table::{cut, table, wrapped};
use crate::model::Model;
use ratatui::text::Line;
use report::bytes;

pub fn lines(model: &Model, view: &View) -> Vec<Line<'static>> {
    let memory = &model.memory;
    let mut lines = Vec::new();
    if let (Some(now), Some(peak)) = (memory.rss_bytes, memory.peak_rss_bytes) {
        let said = format!("processes: {} resident, peak {} in this window", bytes(now), bytes(peak));
        lines.push(Line::styled(cut(&view.shown(&said), view.width), view.look.heading()));
        let known: Vec<u64> = memory.rss.iter().filter_map(|value| *value).collect();
        let newest = &known[known.len().saturating_sub(view.width)..];
        let levels: String =
            newest.iter().map(|value| view.look.level(value.saturating_mul(100) / peak.max(1))).collect();
        lines.push(Line::styled(levels, view.look.bar()));
    } else {
        lines.push(Line::styled(cut("No memory of processes was read in this window.", view.width), view.look.faint()));
    }
    let rows: Vec<Vec<String>> = memory
        .parts
        .iter()
        .filter(|part| part.bytes > 0)
        .map(|part| vec![part.device.to_string(), bytes(part.bytes), view.shown(&part.what)])
        .collect();
    if !rows.is_empty() {
        lines.push(Line::raw(""));
        lines.extend(table(view, &["GPU", "in use", "for"], &rows));
    }
    if let Some(why) = &memory.not_attributed {
        let said = wrapped(&view.shown(&format!("GPU memory not attributed: {why}")), view.width);
        lines.extend(said.into_iter().map(|line| Line::styled(line, view.look.faint())));
    }
    lines
}
