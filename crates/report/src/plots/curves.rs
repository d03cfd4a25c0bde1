//! Curves of bytes over time, with moments that have a name.

use super::axes::{Axes, below};
use super::drawing::{Anchor, Drawing, Ink};
use crate::units::bytes;
use analysis::memory::levels::thinned;

/// More points than pixels are not seen.
const MOST_POINTS: usize = 1200;
/// More curves cannot be told apart.
pub const MOST_CURVES: usize = 12;
const MOST_MOMENTS: usize = 24;
const HEIGHT: f64 = 260.0;

pub struct Series {
    pub name: String,
    pub points: Vec<(u64, u64)>,
    /// A value holds until the next; else it is a sample.
    pub held: bool,
    pub dashed: bool,
}

/// Whose time it is that curves are drawn over.
#[derive(Clone, Copy)]
pub struct Clock {
    /// Where it is counted from. None: the first value.
    pub origin: Option<u64>,
    /// It only counts events.
    pub counts: bool,
}

/// None: no curve has a point.
pub fn draw(title: &str, series: &[Series], moments: &[(u64, String)], clock: Clock) -> Option<Drawing> {
    let shown: Vec<&Series> = series.iter().filter(|one| !one.points.is_empty()).collect();
    let times = || shown.iter().flat_map(|one| one.points.iter().map(|point| point.0));
    let (first, last) = (times().min()?, times().max()?);
    let most = shown.iter().flat_map(|one| one.points.iter().map(|point| point.1)).max()?;
    let mut drawing = Drawing::new(title, 0.0);
    let entry = |(at, one): (usize, &&Series)| {
        let peak = one.points.iter().map(|point| point.1).max().unwrap_or(0);
        (Ink::Series(at), 1.0, format!("{} (at most {})", super::drawing::named(&one.name), bytes(peak)))
    };
    let mut entries: Vec<_> = shown.iter().take(MOST_CURVES).enumerate().map(entry).collect();
    if shown.len() > MOST_CURVES {
        entries.push((Ink::Panel, 1.0, format!("and {} more, not drawn", shown.len() - MOST_CURVES)));
    }
    let top = drawing.legend(48.0, &entries) + 4.0;
    let axes = Axes {
        origin: clock.origin.unwrap_or(first).min(first),
        first,
        last,
        most,
        top,
        bottom: top + HEIGHT,
        counts: clock.counts,
    };
    drawing.height = axes.bottom + below(clock.counts);
    axes.grid(&mut drawing);
    for (time, name) in moments.iter().filter(|(time, _)| (first..=last).contains(time)).take(MOST_MOMENTS) {
        let x = axes.x(*time);
        drawing.line(vec![(x, axes.top), (x, axes.bottom)], 1.0, Ink::Muted).opacity = 0.5;
        drawing.text(x + 3.0, axes.top + 11.0, 11.0, Anchor::Start, Ink::Muted, name, (axes.right() - x).min(160.0));
    }
    for (at, one) in shown.iter().take(MOST_CURVES).enumerate() {
        let points = thinned(&one.points, MOST_POINTS);
        let mut places: Vec<(f64, f64)> = Vec::with_capacity(points.len() * 2);
        for (time, value) in &points {
            let (x, y) = (axes.x(*time), axes.y(*value));
            if one.held
                && let Some((_, before)) = places.last().copied()
            {
                places.push((x, before));
            }
            places.push((x, y));
        }
        match places.last().copied() {
            // One reading: it is a dot, not a line.
            Some((x, y)) if places.len() == 1 => {
                drawing.rect((x - 2.0, y - 2.0), (4.0, 4.0), Ink::Series(at));
                continue;
            }
            Some((_, y)) if one.held => places.push((axes.right(), y)),
            _ => {}
        }
        let line = drawing.line(places, 1.6, Ink::Series(at));
        line.tip = Some(super::drawing::named(&one.name));
        if let super::drawing::Shape::Line { dashed, .. } = &mut line.shape {
            *dashed = one.dashed;
        }
    }
    Some(drawing)
}
