//! Where memory was asked for, and when: bytes allocated by each line, or by each layer, in each step.

use super::context::innermost_layers;
use super::sampled::event_stands_for;
use super::who::{line, place};
use crate::frames::Frames;
use crate::phrase;
use crate::steps::{StepSource, Steps};
use std::cmp::Reverse;
use std::collections::HashMap;
use timeline::memory::{AllocatorIndex, MemoryEvent, MemoryEventKind};
use timeline::{NameIndex, StackIndex, Timeline};

/// More columns than this cannot be told apart: steps are put together.
const MOST_COLUMNS: usize = 60;
/// Parts of a recording without steps.
const PARTS: usize = 48;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HeatBy {
    /// The deepest line of the program's own code.
    Line,
    /// The innermost layer in which the thread was.
    Layer,
}

/// What bytes are put together by, with a row each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Key {
    Line(NameIndex, u32),
    Layer(NameIndex),
    Unknown,
}

#[derive(Clone, PartialEq, Debug)]
pub struct HeatRow {
    /// None: stacks, or layers, were not recorded for it.
    pub name: Option<String>,
    /// Of each column.
    pub bytes: Vec<u64>,
    pub total: u64,
    pub blocks: u64,
}

#[derive(Clone, PartialEq, Debug)]
pub struct HeatColumn {
    pub start: u64,
    pub end: u64,
    /// Which steps, from 0: first and last. None: a part of a recording without steps.
    pub steps: Option<(u32, u32)>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct HeatMap {
    /// What allocated most comes first.
    pub rows: Vec<HeatRow>,
    pub columns: Vec<HeatColumn>,
    /// Rows that are not in it, and their bytes.
    pub more_rows: usize,
    pub more_bytes: u64,
    /// Allocated outside of all columns.
    pub outside: u64,
}

/// None: no block was allocated in it; or, by layer, no layer was recorded.
pub fn of(
    timeline: &Timeline,
    frames: &Frames,
    steps: &Steps,
    allocator: AllocatorIndex,
    by: HeatBy,
    most_rows: usize,
) -> Option<HeatMap> {
    let own = |event: &&MemoryEvent| event.allocator == allocator && event.kind == MemoryEventKind::Alloc;
    let events: Vec<&MemoryEvent> = timeline.memory.events.iter().filter(own).collect();
    let (first, last) = (events.first()?.time, events.last()?.time);
    let columns = columns(timeline, steps, first, last);
    let keys: Vec<(Key, StackIndex)> = match by {
        HeatBy::Line => events.iter().map(|event| by_line(timeline, frames, event)).collect(),
        HeatBy::Layer => by_layer(timeline, &events)?,
    };
    let mean = timeline.memory.allocator(allocator).sampled_bytes;
    let mut map = HeatMap::default();
    let mut rows: HashMap<Key, (HeatRow, StackIndex)> = HashMap::new();
    for (event, (key, home)) in events.iter().zip(keys) {
        // The layer is known of every block; the line of those whose stack was read, which stand for the others.
        let weight = match by {
            HeatBy::Line => event_stands_for(event, mean),
            HeatBy::Layer => Some((event.bytes, 1)),
        };
        let Some((bytes, blocks)) = weight else { continue };
        let empty = || HeatRow { name: None, bytes: vec![0; columns.len()], total: 0, blocks: 0 };
        let (row, _) = rows.entry(key).or_insert_with(|| (empty(), home));
        let after = columns.partition_point(|column| column.start <= event.time);
        match after.checked_sub(1).filter(|at| event.time < columns[*at].end) {
            Some(at) => {
                row.bytes[at] = row.bytes[at].saturating_add(bytes);
                row.total = row.total.saturating_add(bytes);
                row.blocks = row.blocks.saturating_add(blocks);
            }
            None => map.outside = map.outside.saturating_add(bytes),
        }
    }
    let mut rows: Vec<(Key, HeatRow, StackIndex)> =
        rows.into_iter().map(|(key, (row, home))| (key, row, home)).filter(|(_, row, _)| row.blocks > 0).collect();
    rows.sort_by_key(|(_, row, home)| (Reverse(row.total), *home));
    let rest = rows.split_off(rows.len().min(most_rows));
    map.more_rows = rest.len();
    map.more_bytes = rest.iter().map(|(_, row, _)| row.total).fold(0, u64::saturating_add);
    let named = |(key, row, home): (Key, HeatRow, StackIndex)| {
        let name = match key {
            Key::Line(..) => Some(phrase::place(&place(timeline, home))),
            Key::Layer(name) => Some(timeline.names.text(name).to_owned()),
            Key::Unknown => None,
        };
        HeatRow { name, ..row }
    };
    map.rows = rows.into_iter().map(named).collect();
    map.columns = columns;
    Some(map)
}

fn columns(timeline: &Timeline, steps: &Steps, first: u64, last: u64) -> Vec<HeatColumn> {
    if steps.source == StepSource::Whole || steps.steps.is_empty() {
        let (start, span) = (first.min(timeline.start.max(first)), u128::from((last - first).saturating_add(1)));
        let parts = PARTS.min(usize::try_from(span).unwrap_or(PARTS)).max(1);
        let edge = |part: usize| start.saturating_add((span * part as u128 / parts as u128) as u64);
        return (0..parts).map(|part| HeatColumn { start: edge(part), end: edge(part + 1), steps: None }).collect();
    }
    let mut all: Vec<(u64, u64)> = steps.steps.iter().map(|step| (step.start, step.end)).collect();
    all.sort_unstable();
    let every = all.len().div_ceil(MOST_COLUMNS).max(1);
    let column = |(number, chunk): (usize, &[(u64, u64)])| HeatColumn {
        start: chunk[0].0,
        end: chunk.iter().map(|step| step.1).max().unwrap_or(chunk[0].1),
        steps: Some(((number * every) as u32, (number * every + chunk.len() - 1) as u32)),
    };
    let mut columns: Vec<HeatColumn> = all.chunks(every).enumerate().map(column).collect();
    // Steps of several threads overlap: what is allocated belongs to the one that began last.
    for at in 1..columns.len() {
        columns[at - 1].end = columns[at - 1].end.min(columns[at].start.max(columns[at - 1].start));
    }
    columns
}

fn by_line(timeline: &Timeline, frames: &Frames, event: &MemoryEvent) -> (Key, StackIndex) {
    let home = frames.home(event.stack);
    match home.0 {
        0 => (Key::Unknown, home),
        _ => {
            let (name, number) = line(timeline, home);
            (Key::Line(name, number), home)
        }
    }
}

/// None: no block was allocated in a layer.
fn by_layer(timeline: &Timeline, events: &[&MemoryEvent]) -> Option<Vec<(Key, StackIndex)>> {
    let layers = innermost_layers(timeline, events.iter().map(|event| Some(*event)));
    let key = |layer: &Option<NameIndex>| (layer.map_or(Key::Unknown, Key::Layer), StackIndex(0));
    layers.iter().any(Option::is_some).then(|| layers.iter().map(key).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str, by: HeatBy) -> Option<HeatMap> {
        let timeline = Timeline::from_text(text).unwrap();
        let steps = Steps::find(&timeline, None);
        of(&timeline, &Frames::new(&timeline), &steps, AllocatorIndex(0), by, 2)
    }

    const STEPS: &str = "
        block alloc 1us 10M at 1 main>load@m.py:1
        track main
        repeat 6 every 1ms
        step request 10us..900us
        layer decoder 15us..500us
        layer attention 18us..25us
        block alloc 20us 4M at 2 main>forward@m.py:2
        block alloc 30us 1M at 3 main>sample@m.py:3
        block alloc 40us 1M at 4
        block free 50us 4M at 2
        block free 51us 1M at 3
        block free 52us 1M at 4
        end";

    #[test]
    fn each_step_is_a_column_and_each_line_a_row() {
        let found = map(STEPS, HeatBy::Line).unwrap();
        let rows: Vec<(Option<&str>, u64)> =
            found.rows.iter().map(|row| (row.name.as_deref(), row.bytes[5] >> 20)).collect();
        assert_eq!(rows[0], (Some("forward (m.py:2)"), 4));
        assert_eq!((found.columns.len(), found.columns[5].steps, found.outside >> 20), (6, Some((5, 5)), 10));
        assert_eq!((found.rows.len(), found.more_rows, found.more_bytes >> 20), (2, 1, 6));
    }

    #[test]
    fn layers_are_rows_where_they_were_recorded() {
        let found = map(STEPS, HeatBy::Layer).unwrap();
        let rows: Vec<(Option<&str>, u64)> =
            found.rows.iter().map(|row| (row.name.as_deref(), row.bytes[0] >> 20)).collect();
        assert_eq!(rows, [(Some("attention"), 4), (Some("decoder"), 2)]);
        assert_eq!(map("track main\n block alloc 1us 1M at 1", HeatBy::Layer), None);
    }

    #[test]
    fn without_steps_the_recording_is_cut_into_parts() {
        let found = map(
            "repeat 500 every 1ms\n block alloc 2us 1M at 1 main>f@a.py:1\n block free 3us 1M at 1\n end",
            HeatBy::Line,
        )
        .unwrap();
        assert_eq!((found.columns.len(), found.rows[0].total >> 20, found.outside), (PARTS, 500, 0));
        assert_eq!(map("segment alloc 1us 2M at 1", HeatBy::Line), None);
    }
}
