//! What holds the program back just now: the sentences of the diagnosis, then the findings, with how long each has been there. What was marked as
//! the baseline is said beside it.

use super::View;
use super::table::wrapped;
use crate::model::{Finding, Model};
use ratatui::text::{Line, Span};
use report::duration;

pub fn lines(model: &Model, view: &View) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (place, sentence) in model.answer.iter().enumerate() {
        let style = if place == 0 { view.look.heading() } else { Default::default() };
        let parts = wrapped(&view.shown(sentence), view.width);
        lines.extend(parts.into_iter().map(|part| Line::styled(part, style)));
    }
    if model.answer.is_empty() {
        lines.push(Line::raw("Nothing was recorded in this window yet."));
    }
    lines.extend(compared(model, view));
    if !model.findings.is_empty() {
        lines.push(Line::raw(""));
    }
    for (place, finding) in model.findings.iter().enumerate() {
        if view.wants(&finding.title) || view.wants(&finding.code) {
            lines.extend(of(finding, view, view.open == Some(place)));
        }
    }
    lines
}

fn of(finding: &Finding, view: &View, open: bool) -> Vec<Line<'static>> {
    let look = view.look;
    let gone = finding.gone_ns.is_some();
    let style = match finding.severity {
        _ if gone => look.faint(),
        "high" => look.bad(),
        "medium" => look.warn(),
        _ => Default::default(),
    };
    let mut lines = Vec::new();
    for (place, part) in wrapped(&view.shown(&finding.title), view.width.saturating_sub(2)).into_iter().enumerate() {
        let mark = if place == 0 { look.bullet() } else { " " };
        lines.push(Line::from(vec![Span::raw(format!("{mark} ")), Span::styled(part, style)]));
    }
    let gain = finding.gain_percent.map(|gain| format!("gain {:.0} % ({:.0} to {:.0})", gain.mid, gain.low, gain.high));
    let age = match finding.gone_ns {
        Some(gone) => format!("gone for {}", duration(gone)),
        None if finding.for_ns > 0 => format!("for {}", duration(finding.for_ns)),
        None => "new".to_owned(),
    };
    let sure = gain.is_some().then(|| format!("confidence {:.0} %", 100.0 * finding.confidence));
    let about: Vec<String> = [Some(finding.code.clone()), gain, sure, Some(age)].into_iter().flatten().collect();
    let about = wrapped(&view.shown(&about.join(look.dot())), view.width.saturating_sub(2));
    lines.extend(about.into_iter().map(|part| Line::styled(format!("  {part}"), look.faint())));
    if open {
        let said = [finding.action.clone(), format!("at {}", finding.place)];
        let said = said.iter().filter(|text| !text.is_empty());
        let parts = said.flat_map(|text| wrapped(&view.shown(text), view.width.saturating_sub(4)));
        lines.extend(parts.map(|part| Line::raw(format!("    {part}"))));
    }
    lines
}

/// The step against the one that was marked.
fn compared(model: &Model, view: &View) -> Vec<Line<'static>> {
    let Some(before) = view.baseline else { return Vec::new() };
    let (Some(then), Some(now)) = (&before.steps, &model.steps) else {
        return vec![Line::styled("No steps to compare with the baseline.", view.look.faint())];
    };
    if then.name != now.name {
        return vec![Line::styled("The baseline has other steps.", view.look.faint())];
    }
    let change = 100.0 * (now.p50_ns as f64 - then.p50_ns as f64) / then.p50_ns.max(1) as f64;
    let said = format!(
        "Against the baseline: p50 {} > {} ({change:+.0} %), p99 {} > {}",
        duration(then.p50_ns),
        duration(now.p50_ns),
        duration(then.p99_ns),
        duration(now.p99_ns)
    );
    vec![Line::styled(view.shown(&said.replace('>', "→")), view.look.heading())]
}
