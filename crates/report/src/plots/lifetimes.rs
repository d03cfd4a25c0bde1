//! Blocks over time: each an area at the height at which it is stacked, in the colour of the line that allocated it.

use super::axes::{Axes, below};
use super::drawing::{Anchor, Drawing, Ink, SERIES, Shape, WIDTH, named};
use crate::blocks::{DrawnBlocks, left_out, times};
use crate::units::{bytes, count};
use analysis::memory::lifetimes::{BlockLife, Limits};
use timeline::Timeline;

/// As many as a picture that does not zoom can show.
pub const LIMITS: Limits = Limits { blocks: 1500, points: 16_000 };
const HEIGHT: f64 = 380.0;

pub fn draw(timeline: &Timeline, title: &str, drawn: &DrawnBlocks) -> Drawing {
    let lifetimes = &drawn.lifetimes;
    let mut drawing = Drawing::new(title, 0.0);
    let note = left_out(drawn).unwrap_or_else(|| "Every block is drawn".into());
    drawing.text(
        16.0,
        42.0,
        11.0,
        Anchor::Start,
        Ink::Muted,
        &format!("{note}. Colour: the line that allocated it"),
        WIDTH - 32.0,
    );
    let mut entries: Vec<_> =
        drawn.places.iter().take(SERIES.len()).enumerate().map(|(at, name)| (ink(at), 1.0, named(name))).collect();
    if drawn.places.len() > SERIES.len() {
        entries.push((Ink::Muted, 0.7, format!("{} more lines", count((drawn.places.len() - SERIES.len()) as u64))));
    }
    let top = drawing.legend(64.0, &entries) + 4.0;
    let counts = timeline.memory.ordered_only;
    let first = lifetimes.blocks.iter().map(|block| block.start).chain(lifetimes.rest.iter().map(|step| step.0)).min();
    let first = first.unwrap_or(timeline.start);
    let axes = Axes {
        origin: timeline.start.min(first),
        first,
        last: timeline.end.max(first.saturating_add(1)),
        most: lifetimes.peak,
        top,
        bottom: top + HEIGHT,
        counts,
    };
    drawing.height = axes.bottom + below(counts);
    axes.grid(&mut drawing);
    for (at, block) in lifetimes.blocks.iter().enumerate() {
        let step = drawn.step_of[at].map(|step| format!(" · step {}", count(u64::from(step) + 1))).unwrap_or_default();
        let [came, went] = times(timeline, block);
        let place = named(&drawn.places[drawn.place_of[at]]);
        let tip = format!("{} · {place}{step} · {came}, {went} · {}", bytes(block.bytes), block.category.said());
        let mark = drawing.add(Shape::Area(outline(block, &axes)), ink(drawn.place_of[at]));
        mark.opacity = if drawn.place_of[at] < SERIES.len() { 0.92 } else { 0.7 };
        mark.said(tip);
    }
    let band = lifetimes.rest_band();
    if !band.is_empty() {
        let upper = stairs(band.iter().map(|(time, _, top)| (*time, *top)), axes.last, &axes);
        let mut lower = stairs(band.iter().map(|(time, bottom, _)| (*time, *bottom)), axes.last, &axes);
        lower.reverse();
        let mark = drawing.add(Shape::Area(upper.into_iter().chain(lower).collect()), Ink::Rest);
        mark.said("blocks that are not drawn one by one");
    }
    drawing
}

fn ink(place: usize) -> Ink {
    if place < SERIES.len() { Ink::Series(place) } else { Ink::Muted }
}

fn outline(block: &BlockLife, axes: &Axes) -> Vec<(f64, f64)> {
    let upper = block.bottom.iter().map(|(time, bottom)| (*time, bottom.saturating_add(block.bytes)));
    let mut outline = stairs(upper, block.end, axes);
    let mut lower = stairs(block.bottom.iter().copied(), block.end, axes);
    lower.reverse();
    outline.extend(lower);
    outline
}

/// Values that hold until the next, the last until `end`.
fn stairs(steps: impl Iterator<Item = (u64, u64)>, end: u64, axes: &Axes) -> Vec<(f64, f64)> {
    let mut places: Vec<(f64, f64)> = Vec::new();
    for (time, value) in steps {
        let x = axes.x(time);
        if let Some((_, before)) = places.last().copied() {
            places.push((x, before));
        }
        places.push((x, axes.y(value)));
    }
    if let Some((_, last)) = places.last().copied() {
        places.push((axes.x(end), last));
    }
    places
}
