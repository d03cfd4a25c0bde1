//! A sorted list in blocks: each can be made by a thread of its own, and none has to be copied to the others.

use crate::stats::seek::seek;

#[derive(Debug)]
pub struct Blocks<T> {
    /// None of them is empty.
    blocks: Vec<Vec<T>>,
}

/// In front of an item, or behind the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cursor {
    block: usize,
    item: usize,
}

impl<T> Blocks<T> {
    pub fn new(mut blocks: Vec<Vec<T>>) -> Blocks<T> {
        blocks.retain(|block| !block.is_empty());
        Blocks { blocks }
    }

    /// Moves a place behind all that fit: it is mostly close by.
    pub fn seek(&self, near: &mut Cursor, fits: impl Fn(&T) -> bool) {
        let done = |block: &Vec<T>| block.last().is_some_and(&fits);
        let Some(last) = self.blocks.len().checked_sub(1) else { return };
        if near.block > 0 && !done(&self.blocks[near.block - 1]) || near.block < last && done(&self.blocks[near.block])
        {
            *near = Cursor { block: self.blocks.partition_point(done).min(last), item: 0 };
        }
        seek(&self.blocks[near.block], &mut near.item, fits);
    }

    /// All behind a place.
    pub fn from(&self, place: Cursor) -> impl Iterator<Item = &T> {
        let own = self.blocks.get(place.block).map_or(&[][..], |block| &block[place.item..]);
        own.iter().chain(self.blocks.iter().skip(place.block + 1).flatten())
    }

    /// All in front of a place, the last first.
    pub fn before(&self, place: Cursor) -> impl Iterator<Item = &T> {
        let own = self.blocks.get(place.block).map_or(&[][..], |block| &block[..place.item]);
        let earlier = self.blocks.iter().take(place.block).rev().flat_map(|block| block.iter().rev());
        own.iter().rev().chain(earlier)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found_from_every_other_across_blocks() {
        let some = [vec![], vec![0], vec![1, 1, 1, 1], vec![3, 0, 5, 1], vec![9]];
        for lengths in some {
            let mut next = 0..;
            let blocks = Blocks::new(lengths.iter().map(|length| next.by_ref().take(*length).collect()).collect());
            let count: usize = lengths.iter().sum();
            for (from, to) in (0..=count).flat_map(|from| (0..=count).map(move |to| (from, to))) {
                let mut place = Cursor::default();
                blocks.seek(&mut place, |item| *item < from);
                blocks.seek(&mut place, |item| *item < to);
                assert!(blocks.from(place).copied().eq(to..count), "from {from} to {to} of {lengths:?}");
                assert!(blocks.before(place).copied().eq((0..to).rev()), "from {from} to {to} of {lengths:?}");
            }
        }
    }
}
