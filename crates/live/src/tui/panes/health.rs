//! What is wrong with the recording: what was lost, what numbers may mislead, and what watching costs.

use super::View;
use super::table::wrapped;
use crate::model::Model;
use ratatui::text::Line;
use report::duration;

pub fn lines(model: &Model, view: &View) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if model.health.is_empty() {
        lines.push(Line::styled("Nothing was lost in this window, and nothing is in doubt.", view.look.good()));
    }
    for one in &model.health {
        let style = if one.state == "bad" { view.look.bad() } else { view.look.warn() };
        let said = wrapped(&view.shown(&one.text), view.width.saturating_sub(2)).into_iter().enumerate();
        lines.extend(
            said.map(|(place, line)| Line::styled(format!("{} {line}", if place == 0 { "!" } else { " " }), style)),
        );
    }
    let cost = format!("This window was analysed in {}, beside the recording.", duration(model.clock.cost_ns));
    lines.extend(wrapped(&view.shown(&cost), view.width).into_iter().map(|line| Line::styled(line, view.look.faint())));
    lines
}
