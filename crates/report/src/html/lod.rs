//! Level of detail: a page shows at most a few tens of thousands of boxes, so short neighbours are drawn as one that
//! says how many it stands for. Long slices are always there by themselves.

use std::collections::HashMap;
use timeline::{SliceKind, Timeline, Track};

/// A box of the timeline: one slice, or several short ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    pub start: u64,
    pub dur: u64,
    pub depth: u32,
    /// Of the longest slice in it.
    pub name: u32,
    pub kind: SliceKind,
    pub count: u64,
    longest: u64,
}

/// Rows deeper than this are not drawn: nobody scrolls through a recursion of thousands.
const DEEPEST: usize = 64;

/// The blocks of a track, sorted by start, at most about `most`.
pub fn blocks(timeline: &Timeline, track: &Track, most: usize) -> Vec<Block> {
    let all = with_depth(timeline, track);
    let least = threshold(&all, most / 2);
    let (long, short): (Vec<Block>, Vec<Block>) = all.into_iter().partition(|block| block.dur >= least);
    let mut cell = (timeline.duration() / 4096).max(1);
    let mut merged = merge(&short, timeline.start, cell);
    while merged.len() > most / 2 {
        cell = cell.saturating_mul(2);
        merged = merge(&merged, timeline.start, cell);
    }
    merged.extend(long);
    merged.sort_unstable_by_key(|block| (block.start, u64::MAX - block.dur));
    merged
}

/// Every slice of a track but marks, with the row it is drawn in.
fn with_depth(timeline: &Timeline, track: &Track) -> Vec<Block> {
    let mut ends: Vec<u64> = Vec::new();
    let mut blocks = Vec::new();
    for index in track.slices.clone() {
        let slice = timeline.slices.get(index);
        if slice.kind == SliceKind::Mark {
            continue;
        }
        while ends.last().is_some_and(|end| *end <= slice.start) {
            ends.pop();
        }
        let depth = ends.len();
        ends.push(slice.end());
        if depth < DEEPEST {
            blocks.push(Block {
                start: slice.start,
                dur: slice.dur,
                depth: depth as u32,
                name: slice.name.0,
                kind: slice.kind,
                count: 1,
                longest: slice.dur,
            });
        }
    }
    blocks
}

/// The duration from which slices are kept by themselves, so that at most `most` are.
fn threshold(blocks: &[Block], most: usize) -> u64 {
    if blocks.len() <= most {
        return 0;
    }
    let mut durations: Vec<u64> = blocks.iter().map(|block| block.dur).collect();
    let place = durations.len() - most;
    *durations.select_nth_unstable(place).1 + 1
}

/// Joins what starts in the same cell of the same row.
fn merge(blocks: &[Block], origin: u64, cell: u64) -> Vec<Block> {
    let mut cells: HashMap<(u32, u64), Block> = HashMap::new();
    for block in blocks {
        let key = (block.depth, block.start.saturating_sub(origin) / cell);
        cells
            .entry(key)
            .and_modify(|into| {
                let end = (into.start + into.dur).max(block.start.saturating_add(block.dur));
                into.start = into.start.min(block.start);
                into.dur = end - into.start;
                into.count += block.count;
                if block.longest > into.longest {
                    (into.name, into.kind, into.longest) = (block.name, block.kind, block.longest);
                }
            })
            .or_insert(*block);
    }
    cells.into_values().collect()
}
