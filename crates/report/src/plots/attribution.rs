//! Every byte of a device in one stack of parts that add up to what its driver counts.

use super::axes::{Axes, below};
use super::drawing::{Anchor, Drawing, Ink, Shape};
use crate::attribution_words;
use crate::units::{bytes, percent_of};
use analysis::memory::attribution::{Attribution, DeviceAttribution, Part, PartKind};
use timeline::Timeline;

const HEIGHT: f64 = 280.0;
/// More readings than pixels are not seen.
const MOST_READINGS: usize = 1200;

/// The same in every picture; faint where the other half of an allocator's memory has the colour.
pub fn part_ink(kind: PartKind) -> (Ink, f64) {
    match kind {
        PartKind::OtherProcesses => (Ink::Rest, 1.0),
        PartKind::Unlisted | PartKind::Before => (Ink::Rest, 0.6),
        PartKind::Context => (Ink::Series(8), 1.0),
        PartKind::Driver => (Ink::Series(1), 1.0),
        PartKind::DriverPool => (Ink::Series(7), 1.0),
        PartKind::Cached => (Ink::Series(0), 0.4),
        PartKind::InUse => (Ink::Series(0), 1.0),
        PartKind::Hidden => (Ink::Series(5), 1.0),
    }
}

/// Err: why nothing is attributed.
pub fn draw(timeline: &Timeline, one: &DeviceAttribution) -> Result<Drawing, String> {
    let title = attribution_words::title(timeline, one);
    let found = one.found.as_ref().map_err(|why| format!("{title}: {}", attribution_words::refusal(why)))?;
    let mut drawing = Drawing::new(&title, 0.0);
    drawing.text(16.0, 42.0, 11.0, Anchor::Start, Ink::Muted, &attribution_words::note(found), 960.0);
    let entries: Vec<_> = found.parts.iter().rev().map(|part| entry(timeline, found, part)).collect();
    let top = drawing.legend(64.0, &entries) + 4.0;
    let (Some(first), Some(last)) = (found.times.first().copied(), found.times.last().copied()) else {
        return Err(format!("{title}: the driver was not asked"));
    };
    let most = found.used.iter().copied().max().unwrap_or(0);
    let axes = Axes { origin: timeline.start, first, last, most, top, bottom: top + HEIGHT, counts: false };
    drawing.height = axes.bottom + below(false);
    axes.grid(&mut drawing);
    let readings = shown(found);
    let mut below = vec![0u64; readings.len()];
    for (part, (ink, opacity, name)) in found.parts.iter().zip(entries.into_iter().rev()) {
        let bottom: Vec<(u64, u64)> = readings.iter().zip(&below).map(|(at, base)| (found.times[*at], *base)).collect();
        for (base, at) in below.iter_mut().zip(&readings) {
            *base = base.saturating_add(part.bytes[*at]);
        }
        let top = readings.iter().zip(&below).map(|(at, top)| (found.times[*at], *top));
        let outline = top.chain(bottom.into_iter().rev()).map(|(time, value)| (axes.x(time), axes.y(value)));
        let mark = drawing.add(Shape::Area(widened(outline.collect(), &axes)), ink);
        mark.opacity = opacity;
        mark.said(name);
    }
    let line = readings.iter().map(|at| (axes.x(found.times[*at]), axes.y(found.used[*at])));
    drawing.line(widened(line.collect(), &axes), 1.4, Ink::Text).said("in use, as the driver counts it");
    Ok(drawing)
}

/// One reading alone has no width: it stands for the whole picture.
fn widened(points: Vec<(f64, f64)>, axes: &Axes) -> Vec<(f64, f64)> {
    let alone = points.iter().all(|point| point.0 == points[0].0);
    match (alone, points.as_slice()) {
        (true, [one]) => vec![(axes.left(), one.1), (axes.right(), one.1)],
        (true, [top, bottom]) => {
            vec![(axes.left(), top.1), (axes.right(), top.1), (axes.right(), bottom.1), (axes.left(), bottom.1)]
        }
        _ => points,
    }
}

fn entry(timeline: &Timeline, found: &Attribution, part: &Part) -> (Ink, f64, String) {
    let (ink, opacity) = part_ink(part.kind);
    let used = found.used.last().copied().unwrap_or(0);
    let (end, share) = (bytes(part.end()), percent_of(part.end(), used));
    (ink, opacity, format!("{}: {end} at the end, {share}", attribution_words::part(timeline, found, part)))
}

/// Of too many readings those with the most in use among neighbours, and the last.
pub fn shown(found: &Attribution) -> Vec<usize> {
    let every = found.times.len().div_ceil(MOST_READINGS).max(1);
    let most = |chunk: &[usize]| chunk.iter().copied().max_by_key(|at| found.used[*at]);
    let all: Vec<usize> = (0..found.times.len()).collect();
    let mut kept: Vec<usize> = all.chunks(every).filter_map(most).collect();
    if let Some(last) = all.last().filter(|last| kept.last() < Some(last)) {
        kept.push(*last);
    }
    kept
}
