//! How long the steps of the window took: in order, by how many took how long, and the slowest.

use super::View;
use super::table::{cut, table};
use crate::model::{Model, Steps};
use ratatui::text::Line;
use report::duration;

/// Bars of the histogram.
const BARS: usize = 8;
const SLOWEST: usize = 5;

pub fn lines(model: &Model, view: &View) -> Vec<Line<'static>> {
    let Some(steps) = &model.steps else {
        let why = "No steps in this window: mark them with inferscope.step(), or wait for more.";
        return vec![Line::styled(cut(why, view.width), view.look.faint())];
    };
    let rate =
        if steps.per_second >= 10.0 { format!("{:.0}", steps.per_second) } else { format!("{:.1}", steps.per_second) };
    let said = [
        format!("{} {}", steps.count, steps.name),
        format!("{rate} a second"),
        format!("p50 {}", duration(steps.p50_ns)),
        format!("p99 {}", duration(steps.p99_ns)),
        format!("slowest {}", duration(steps.slowest_ns)),
    ];
    let mut lines = vec![Line::styled(cut(&view.shown(&said.join(view.look.dot())), view.width), view.look.heading())];
    let most = steps.recent.iter().map(|step| step.1).max().unwrap_or(0).max(1);
    let newest = &steps.recent[steps.recent.len().saturating_sub(view.width)..];
    let levels: String = newest.iter().map(|step| view.look.level(step.1.saturating_mul(100) / most)).collect();
    lines.push(Line::styled(levels, view.look.bar()));
    lines.push(Line::styled(cut("each step, newest at the right", view.width), view.look.faint()));
    lines.push(Line::raw(""));
    lines.extend(histogram(steps, view));
    lines.push(Line::raw(""));
    let mut slowest = steps.recent.clone();
    slowest.sort_by_key(|step| std::cmp::Reverse(step.1));
    let rows: Vec<Vec<String>> =
        slowest.iter().take(SLOWEST).map(|step| vec![duration(step.1), duration(step.0)]).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(|cell| view.shown(cell)).collect()).collect();
    lines.extend(table(view, &["slowest", "began after"], &rows));
    lines
}

/// How many took how long, in bars of equal width of time.
fn histogram(steps: &Steps, view: &View) -> Vec<Line<'static>> {
    let times = || steps.recent.iter().map(|step| step.1);
    let (Some(least), Some(most)) = (times().min(), times().max()) else { return Vec::new() };
    let width = (most - least) / BARS as u64 + 1;
    let mut counts = [0usize; BARS];
    times().for_each(|time| counts[((time - least) / width) as usize] += 1);
    let highest = counts.iter().max().copied().unwrap_or(1).max(1);
    let used = if most == least { 1 } else { BARS };
    let bar = |bar: usize| {
        let from = view.shown(&duration(least + bar as u64 * width));
        let room = view.width.saturating_sub(20);
        let fill = if view.look.unicode { "█" } else { "#" };
        let length = (counts[bar] * room).div_ceil(highest);
        Line::styled(cut(&format!("{from:>9}  {} {}", fill.repeat(length), counts[bar]), view.width), view.look.bar())
    };
    (0..used).map(bar).collect()
}
