//! A frame: what is recorded and how new this is, the tabs, the pane, the keys. On a small terminal only what is most needed.

use super::app::App;
use super::look::Look;
use super::panes::{Pane, View};
use crate::model::{Model, State};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};
use report::duration;
use unicode_width::UnicodeWidthStr;

/// Below this many lines there is room for the pane alone.
const LEAST_LINES: u16 = 8;

const HELP: [&str; 12] = [
    "1 to 8, Tab     choose a pane (or click it)",
    "up, down        choose a finding, or scroll",
    "Enter           what to do about the finding",
    "/               show only rows with these letters; Esc: all",
    "s               functions by own or by total time",
    "space           stand still; of a finished recording: play",
    "left, right     five seconds back or forth",
    "Home, End       the start; the newest",
    "b               compare with this moment from now on",
    "?               this",
    "q, Ctrl-C       quit; the recording goes on",
    "                (any key closes this)",
];

/// Where the tabs are, for the mouse: the line, and from which column to which.
#[derive(Default)]
pub struct Tabs {
    pub line: u16,
    pub places: Vec<(u16, u16)>,
}

pub fn draw(frame: &mut Frame, app: &App, look: Look) -> Tabs {
    let area = frame.area();
    let small = area.height < LEAST_LINES;
    let heights = match small {
        true => [Constraint::Length(0), Constraint::Length(0), Constraint::Min(0), Constraint::Length(0)],
        false => [Constraint::Length(1), Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)],
    };
    let [head, tabs, body, foot] = Layout::vertical(heights).areas(area);
    let mut places = Tabs { line: tabs.y, places: Vec::new() };
    if !small {
        frame.render_widget(Paragraph::new(headline(app, look, head.width)), head);
        frame.render_widget(Paragraph::new(tab_line(app, look, &mut places)), tabs);
        frame.render_widget(Paragraph::new(foot_line(app, look)), foot);
    }
    pane(frame, app, look, body);
    if app.help {
        help(frame, area);
    }
    places
}

fn pane(frame: &mut Frame, app: &App, look: Look, area: Rect) {
    let Some(model) = app.seen() else {
        let text = app.error.clone().unwrap_or_else(|| "Waiting for the first events…".to_owned());
        frame.render_widget(Paragraph::new(look.plain(&report::visible(&text))), area);
        return;
    };
    let view = View {
        look,
        width: usize::from(area.width),
        filter: app.filter.to_lowercase(),
        baseline: app.baseline.as_deref(),
        open: app.open.then_some(app.row),
        sort: app.sort,
    };
    let mut lines = app.pane.lines(model, &view);
    let height = usize::from(area.height);
    let from = match app.pane.rows(model) {
        0 => app.scroll.min(lines.len().saturating_sub(height)),
        _ => choose(&mut lines, model, app, look, height),
    };
    let seen: Vec<Line> = lines.into_iter().skip(from).take(height).collect();
    frame.render_widget(Paragraph::new(seen), area);
}

/// Marks the finding that is chosen, and says from which line on it is seen.
fn choose(lines: &mut [Line<'static>], model: &Model, app: &App, look: Look, height: usize) -> usize {
    let starts = format!("{} ", look.bullet());
    let heads =
        lines.iter().enumerate().filter(|(_, line)| line.spans.first().is_some_and(|span| span.content == starts));
    let chosen = heads.map(|(at, _)| at).nth(app.row.min(model.findings.len().saturating_sub(1)));
    let Some(at) = chosen else { return 0 };
    lines[at] = lines[at].clone().patch_style(look.chosen());
    // The answer stands above the first finding, and is what a small screen has room for.
    if app.row == 0 && !app.open {
        return 0;
    }
    // With what stands below it, where there is room.
    (at + 6).min(lines.len()).saturating_sub(height).min(at)
}

fn headline(app: &App, look: Look, width: u16) -> Line<'static> {
    let Some(model) = app.seen() else { return Line::raw("inferscope top") };
    let (said, style) = match model.state {
        State::Recording if app.paused.is_some() => ("standing still", look.warn()),
        State::Recording => ("recording", look.good()),
        State::Ended => ("ended", look.faint()),
        State::Unfinished => ("its recorder is gone", look.warn()),
    };
    let clock = match (model.clock.lag_ns, app.at) {
        (Some(lag), None) => format!("{}, newest event {} ago", duration(model.clock.recorded_ns), duration(lag)),
        _ => format!("{} of {}", duration(model.clock.end_ns), duration(model.clock.recorded_ns)),
    };
    let right = look.plain(&format!("  {clock}"));
    let room = usize::from(width).saturating_sub(right.width() + said.width() + 2);
    let command = super::panes::cut(&look.plain(&report::visible(&model.command)), room);
    let mut spans = vec![Span::styled(command, look.heading()), Span::raw("  "), Span::styled(said, style)];
    spans.push(Span::styled(right, look.faint()));
    Line::from(spans)
}

fn tab_line(app: &App, look: Look, tabs: &mut Tabs) -> Line<'static> {
    let mut spans = Vec::new();
    let mut at = 0u16;
    for (number, pane) in Pane::ALL.iter().enumerate() {
        let text = format!("{} {}", number + 1, pane.title());
        let width = text.width() as u16;
        tabs.places.push((at, at + width));
        at += width + 1;
        let style = if *pane == app.pane { look.chosen() } else { look.faint() };
        spans.push(Span::styled(text, style));
        spans.push(Span::raw(" "));
    }
    Line::from(spans)
}

fn foot_line(app: &App, look: Look) -> Line<'static> {
    if app.typing {
        return Line::raw(format!("/{}", look.plain(&report::visible(&app.filter))));
    }
    if let Some(why) = &app.error {
        return Line::styled(look.plain(&report::visible(why)), look.bad());
    }
    let filter = if app.filter.is_empty() { String::new() } else { format!("only \"{}\"  ", app.filter) };
    let baseline = if app.baseline.is_some() { "compared with a baseline (b: no more)  " } else { "" };
    let keys = "? keys  / filter  space pause  b baseline  q quit";
    Line::styled(look.plain(&report::visible(&format!("{filter}{baseline}{keys}"))), look.faint())
}

fn help(frame: &mut Frame, area: Rect) {
    let width = HELP.iter().map(|line| line.width()).max().unwrap_or(0) as u16;
    let (width, height) = (width.min(area.width), (HELP.len() as u16).min(area.height));
    let place = Rect { x: (area.width - width) / 2, y: (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(HELP.map(Line::raw).to_vec()), place);
}
