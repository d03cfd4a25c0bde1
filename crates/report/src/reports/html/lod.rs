//! Level of detail: a page shows at most a few tens of thousands of boxes, so short neighbours are drawn as one that
//! says how many it stands for. Long slices are always there by themselves. Passes over the slices of a thread or the work
//! of a stream, sorted by start as they are: nothing grows with the trace but the time.

use crate::lanes::is_mark;
use crate::streams;
use timeline::gpu::Stream;
use timeline::{Timeline, Track};

/// A box of the timeline: one slice or piece of work, or several short ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    pub start: u64,
    pub dur: u64,
    pub depth: u32,
    /// Of the longest slice in it.
    pub name: u32,
    /// The number of a [`timeline::SliceKind`], or [`WORK`] and that of a [`timeline::WorkKind`].
    pub kind: u8,
    pub count: u64,
    /// Which slice or work it is, or the longest of them.
    pub item: usize,
    /// The sum of their times: in a row of a stream, where nothing overlaps, how much of the box is busy.
    pub busy: u64,
    longest: u64,
}

/// Added to the kind of a device's work.
pub const WORK: u8 = 20;

/// Rows deeper than this are not drawn: nobody scrolls through a recursion of thousands.
const DEEPEST: usize = 64;
/// A row is at first cut into this many cells; a cell holds one box of short slices. With devices into more: what is to be
/// seen there are the gaps.
const CELLS: u64 = 4096;
const CELLS_WITH_DEVICES: u64 = 1 << 17;

/// The blocks of a thread, sorted by start, at most about `most`.
pub fn blocks(timeline: &Timeline, track: &Track, most: usize) -> Vec<Block> {
    choose(timeline, || rows(timeline, track), track.slices.len(), most)
}

/// The same of a stream; and in how many rows.
pub fn work_blocks(timeline: &Timeline, stream: &Stream, most: usize) -> (Vec<Block>, u32) {
    let work = &timeline.gpu.work;
    let (rows, count) = streams::rows(work, stream.work.clone());
    let block = |(index, row): (usize, &u8)| Block {
        start: work.start[index],
        dur: work.dur[index],
        depth: u32::from(*row),
        name: work.name[index],
        kind: WORK + work.kind(index) as u8,
        count: 1,
        item: index,
        busy: work.dur[index],
        longest: work.dur[index],
    };
    let all = || stream.work.clone().zip(&rows).map(block);
    (choose(timeline, all, stream.work.len(), most), count)
}

fn choose<I: Iterator<Item = Block>>(
    timeline: &Timeline,
    all: impl Fn() -> I,
    count: usize,
    most: usize,
) -> Vec<Block> {
    let least = if count <= most / 2 { 0 } else { threshold(all(), most / 2) };
    let cells = if timeline.gpu.is_empty() { CELLS } else { CELLS_WITH_DEVICES };
    let mut cell = (timeline.duration() / cells).max(1);
    let mut long = Vec::new();
    let mut short = Merged::new(timeline.start, cell);
    for block in all() {
        if block.dur >= least { long.push(block) } else { short.add(block) }
    }
    // In one cell there is at most a box a row, so this ends.
    while short.blocks.len() > (most / 2).max(DEEPEST) {
        cell = cell.saturating_mul(2);
        let mut wider = Merged::new(timeline.start, cell);
        short.blocks.into_iter().for_each(|block| wider.add(block));
        short = wider;
    }
    let mut all = short.blocks;
    all.extend(long);
    // Two sorted runs: the stable sort finds and merges them.
    all.sort_by_key(|block| (block.start, u64::MAX - block.dur));
    all
}

/// Every slice of a track but marks, with the row it is drawn in.
fn rows<'a>(timeline: &'a Timeline, track: &Track) -> impl Iterator<Item = Block> + 'a {
    let mut ends: Vec<u64> = Vec::new();
    track.slices.clone().filter_map(move |index| {
        let slice = timeline.slices.get(index);
        if is_mark(&slice) {
            return None;
        }
        while ends.last().is_some_and(|end| *end <= slice.start) {
            ends.pop();
        }
        let depth = ends.len();
        ends.push(slice.end());
        (depth < DEEPEST).then_some(Block {
            start: slice.start,
            dur: slice.dur,
            depth: depth as u32,
            name: slice.name.0,
            kind: slice.kind as u8,
            count: 1,
            item: index,
            busy: slice.dur,
            longest: slice.dur,
        })
    })
}

/// The duration from which slices are kept by themselves, so that at most `most` are.
fn threshold(all: impl Iterator<Item = Block>, most: usize) -> u64 {
    let mut counts = [0usize; (u64::BITS as usize + 1) << FINE_BITS];
    all.for_each(|block| counts[class(block.dur)] += 1);
    let mut kept = 0;
    let mut fits = |count: &usize| {
        kept += count;
        kept <= most
    };
    let classes = counts.iter().rev().take_while(|count| fits(count)).count();
    lowest(counts.len() - classes)
}

const FINE_BITS: u32 = 5;

/// Durations that differ by less than three percent share a class.
fn class(dur: u64) -> usize {
    let coarse = (u64::BITS - dur.leading_zeros()).saturating_sub(FINE_BITS + 1);
    ((coarse as usize) << FINE_BITS) + (dur >> coarse) as usize
}

/// The shortest duration of a class and, past the last class, more than any.
fn lowest(class: usize) -> u64 {
    let coarse = (class >> FINE_BITS).saturating_sub(1);
    let fine = (class - (coarse << FINE_BITS)) as u64;
    u64::try_from(u128::from(fine) << coarse).unwrap_or(u64::MAX)
}

/// Boxes in which everything that starts in the same cell of the same row is joined. Takes slices, or boxes, by start.
struct Merged {
    blocks: Vec<Block>,
    origin: u64,
    cell: u64,
    /// The last cell of each row, and its place in `blocks`.
    last: [(u64, usize); DEEPEST],
}

impl Merged {
    fn new(origin: u64, cell: u64) -> Merged {
        Merged { blocks: Vec::new(), origin, cell, last: [(0, usize::MAX); DEEPEST] }
    }

    fn add(&mut self, block: Block) {
        let cell = block.start.saturating_sub(self.origin) / self.cell;
        let last = &mut self.last[block.depth as usize];
        if last.0 == cell
            && let Some(into) = self.blocks.get_mut(last.1)
        {
            let end = into.start.saturating_add(into.dur).max(block.start.saturating_add(block.dur));
            into.dur = end - into.start;
            into.count += block.count;
            into.busy = into.busy.saturating_add(block.busy);
            if block.longest > into.longest {
                (into.name, into.kind, into.item, into.longest) = (block.name, block.kind, block.item, block.longest);
            }
        } else {
            *last = (cell, self.blocks.len());
            self.blocks.push(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::SliceKind;

    #[test]
    fn classes_follow_each_other_and_begin_where_they_say() {
        let durations = (0..4096u64).chain((0..64).flat_map(|bit| [1 << bit, (1 << bit) + 1])).chain([u64::MAX]);
        let mut sorted: Vec<u64> = durations.collect();
        sorted.sort_unstable();
        for pair in sorted.windows(2) {
            assert!(class(pair[0]) <= class(pair[1]), "{pair:?}");
            assert!(lowest(class(pair[0])) <= pair[0] && pair[0] < lowest(class(pair[0]) + 1), "{pair:?}");
        }
        assert_eq!(lowest(class(u64::MAX) + 1), u64::MAX);
    }

    #[test]
    fn neighbours_of_a_row_become_one_box_that_knows_its_longest() {
        let kind = SliceKind::Call as u8;
        let block = |start, dur, depth, name| Block {
            start,
            dur,
            depth,
            name,
            kind,
            count: 1,
            item: 0,
            busy: dur,
            longest: dur,
        };
        let mut merged = Merged::new(0, 100);
        for one in [block(0, 10, 0, 1), block(2, 3, 1, 2), block(20, 30, 0, 3), block(60, 5, 0, 4), block(110, 5, 0, 5)]
        {
            merged.add(one);
        }
        let got: Vec<_> = merged.blocks.iter().map(|b| (b.start, b.dur, b.depth, b.name, b.count)).collect();
        assert_eq!(got, [(0, 65, 0, 3, 3), (2, 3, 1, 2, 1), (110, 5, 0, 5, 1)]);
    }
}
