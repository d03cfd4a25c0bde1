//! The samples of the page: enough for flame graphs of any range, few enough for a page. When there are too many, equal
//! stacks of neighbouring moments become one sample with a weight.

use super::names::PageNames;
use super::pack;
use serde::Serialize;
use timeline::{StackIndex, Timeline};

const MOST_SAMPLES: usize = 120_000;

#[derive(Serialize)]
pub struct Samples {
    time: String,
    track: String,
    stack: String,
    state: String,
    weight: String,
    period_ns: u64,
    active: u64,
}

#[derive(Serialize)]
pub struct Stacks {
    parent: String,
    name: String,
    line: String,
}

/// (time, track, stack, state, weight)
type Row = (u64, usize, u32, u8, u64);

pub fn samples(
    timeline: &Timeline,
    shown: &[Option<usize>],
    interval: Option<u64>,
    names: &mut PageNames,
) -> (Samples, Stacks) {
    let mut rows: Vec<Row> = Vec::new();
    for (track, place) in timeline.tracks.iter().zip(shown) {
        let Some(place) = place else { continue };
        for index in track.samples.clone() {
            let time = timeline.samples.time[index].saturating_sub(timeline.start);
            rows.push((time, *place, timeline.samples.stack[index], timeline.samples.state[index], 1));
        }
    }
    let active = rows.iter().filter(|row| row.3 & 1 != 0).count() as u64;
    let mut cell = interval.unwrap_or(10_000_000).max(1);
    // Ends at one cell for everything: what is left then are stacks that differ.
    while rows.len() > MOST_SAMPLES && cell <= timeline.duration() {
        cell = cell.saturating_mul(2);
        rows = join(&mut rows, cell);
    }
    rows.sort_unstable();
    let stacks = used_stacks(timeline, &mut rows, names);
    let samples = Samples {
        time: pack::delta(rows.iter().map(|row| row.0 as i64)),
        track: pack::plain(rows.iter().map(|row| row.1 as u64)),
        stack: pack::plain(rows.iter().map(|row| u64::from(row.2))),
        state: pack::plain(rows.iter().map(|row| u64::from(row.3))),
        weight: pack::plain(rows.iter().map(|row| row.4)),
        period_ns: cell,
        active,
    };
    (samples, stacks)
}

/// Takes and gives rows by track and cell, so that only neighbours are compared.
fn join(rows: &mut [Row], cell: u64) -> Vec<Row> {
    let mut joined = Vec::new();
    for moment in rows.chunk_by_mut(|a, b| (a.1, a.0 / cell) == (b.1, b.0 / cell)) {
        moment.sort_unstable_by_key(|row| (row.2, row.3, row.0));
        for equal in moment.chunk_by(|a, b| (a.2, a.3) == (b.2, b.3)) {
            let (time, track, stack, state, _) = equal[0];
            joined.push((time, track, stack, state, equal.iter().map(|row| row.4).sum()));
        }
    }
    joined
}

/// The frames that the samples stand on, renumbered from 1 with parents first; 0 is the missing stack.
fn used_stacks(timeline: &Timeline, rows: &mut [Row], names: &mut PageNames) -> Stacks {
    let mut used = vec![false; timeline.stacks.len()];
    for row in rows.iter() {
        for (index, _) in timeline.stacks.walk(StackIndex(row.2)) {
            // Everything above was marked when this frame was.
            if std::mem::replace(&mut used[index.0 as usize], true) {
                break;
            }
        }
    }
    used[0] = true;
    let mut number = vec![0u32; used.len()];
    let mut frames = Vec::new();
    for index in (0..used.len()).filter(|index| used[*index]) {
        let frame = timeline.stacks.frame(StackIndex(index as u32));
        number[index] = frames.len() as u32;
        frames.push((number[frame.parent.0 as usize], frame));
    }
    rows.iter_mut().for_each(|row| row.2 = number[row.2 as usize]);
    Stacks {
        parent: pack::plain(frames.iter().map(|(parent, _)| u64::from(*parent))),
        name: pack::plain(frames.iter().map(|(_, frame)| names.place(frame.name))),
        line: pack::plain(frames.iter().map(|(_, frame)| u64::from(frame.line))),
    }
}
