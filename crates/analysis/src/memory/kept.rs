//! What keeps the blocks of a leak alive, where the program was asked for that when it ended: by the addresses of its tensors.

use super::growth::Growth;
use super::lives;
use super::who::line;
use crate::frames::Frames;
use timeline::Timeline;
use timeline::memory::{AllocatorIndex, Retainer};

/// What keeps tensors, and how many of those whose address is known lie in blocks of a leak.
#[derive(Clone, PartialEq, Debug)]
pub struct Keeper<'a> {
    pub retainer: &'a Retainer,
    pub found: u64,
}

/// Of the blocks that one line has left, the keeper of most bytes first.
pub fn keepers<'a>(
    timeline: &'a Timeline,
    frames: &Frames,
    allocator: AllocatorIndex,
    growth: &Growth,
) -> Vec<Keeper<'a>> {
    let process = timeline.memory.allocator(allocator).process;
    let retainers: Vec<&Retainer> = timeline.memory.retainers.iter().filter(|one| one.process == process).collect();
    if retainers.is_empty() {
        return Vec::new();
    }
    let at = line(timeline, frames.home(growth.stack));
    let lives = lives::of(&timeline.memory, allocator);
    let own = lives.all.iter().filter(|life| life.end.is_none() && life.start.is_some());
    let own = own.filter(|life| life.stack.0 != 0 && line(timeline, frames.home(life.stack)) == at);
    let mut blocks: Vec<(u64, u64)> = own.map(|life| (life.address, life.address.saturating_add(life.bytes))).collect();
    blocks.sort_unstable();
    let inside = |address: &&u64| {
        let after = blocks.partition_point(|(start, _)| start <= *address);
        after.checked_sub(1).is_some_and(|at| **address < blocks[at].1)
    };
    let found = |one: &&'a Retainer| one.addresses.iter().filter(inside).count() as u64;
    let keeper = |one: &'a Retainer| Keeper { retainer: one, found: found(&one) };
    let mut all: Vec<Keeper> = retainers.into_iter().map(keeper).filter(|keeper| keeper.found > 0).collect();
    all.sort_by_key(|keeper| (std::cmp::Reverse(keeper.retainer.bytes), keeper.retainer.kept_by.clone()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StepAnalysis;

    #[test]
    fn tensors_are_found_in_the_blocks_of_a_line() {
        let text = "track main\n repeat 8 every 1ms\n step request 0..900us\n block alloc 40us 4M at 2 each main>handle@serve.py:44\n
            block alloc 50us 1M at 3 each main>other@serve.py:7\n end\n kept 8 32M at 2 each list~in~cache\n
            kept 8 8M at 3 each dict~in~other\n kept 9 99M at 77 nobody";
        let timeline = Timeline::from_text(text).unwrap();
        let case = StepAnalysis::new(&timeline, None);
        let growth = &case.memory()[0].growth;
        let of = |growth: &Growth| {
            let found = keepers(&timeline, &case.frames, AllocatorIndex(0), growth);
            found.iter().map(|keeper| (keeper.retainer.kept_by.to_string(), keeper.found)).collect::<Vec<_>>()
        };
        assert_eq!(of(&growth[0]), [("list in cache".to_owned(), 1)]);
        assert_eq!(of(&growth[1]), [("dict in other".to_owned(), 1)]);
    }
}
