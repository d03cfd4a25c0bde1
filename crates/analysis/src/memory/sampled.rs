//! What blocks whose stacks were sampled say of all blocks. Which were sampled is chance, of a known kind: a block of `b` bytes with the probability
//! 1 - exp(-b / mean), each by itself. So one that was stands for as many as its probability is a part of one, and how far that may be off is known.

use super::lives::Life;
use super::who::{Holder, line, place};
use crate::frames::Frames;
use std::cmp::Reverse;
use std::collections::HashMap;
use timeline::memory::{MemoryEvent, StackBasis, StackReason};
use timeline::{NameIndex, Timeline};

/// With which probability a block's stack was asked for, where the sampling decided it: 0 for one that it passed over. 1: it stands for itself.
/// `mean`: bytes between two that are drawn.
pub fn probability(event: &MemoryEvent, mean: Option<u64>) -> f64 {
    match (event.stack_basis, mean) {
        (StackBasis::PassedOver, Some(_)) => 0.0,
        (StackBasis::Sampled | StackBasis::Missing(StackReason::Sampled, _), Some(mean)) if mean > 0 => {
            let probability = -(-(event.bytes as f64) / mean as f64).exp_m1();
            // A block of no bytes is never drawn: a file that says so stands for itself.
            if probability > 0.0 { probability } else { 1.0 }
        }
        _ => 1.0,
    }
}

/// Bytes and blocks, of itself and of those that were passed over. None: it was passed over itself.
pub fn stands_for(life: &Life) -> Option<(u64, u64)> {
    weighed(life.bytes, life.probability)
}

/// The same, of an event.
pub fn event_stands_for(event: &MemoryEvent, mean: Option<u64>) -> Option<(u64, u64)> {
    weighed(event.bytes, probability(event, mean))
}

fn weighed(bytes: u64, probability: f64) -> Option<(u64, u64)> {
    match probability {
        1.0 => Some((bytes, 1)),
        0.0 => None,
        // Conversions of what is too large end at the largest.
        part => Some(((bytes as f64 / part).round() as u64, (1.0 / part).round() as u64)),
    }
}

/// What one place holds.
#[derive(Default)]
struct Sum {
    exact: u64,
    exact_blocks: u64,
    /// Estimates of the bytes and blocks of what was sampled, and the variance of the bytes.
    bytes: f64,
    blocks: f64,
    variance: f64,
}

/// Blocks by place, most first. What was sampled is scaled so that all places together have the bytes that are known to be there; the errors are
/// those of the sampling, scaled in the same way.
pub fn by_place<'a>(timeline: &Timeline, frames: &Frames, lives: impl Iterator<Item = &'a Life>) -> Vec<Holder> {
    let mut places: HashMap<(NameIndex, u32), (Holder, Sum)> = HashMap::new();
    // Bytes of blocks that the sampling decided about.
    let (mut drawn, mut small_blocks) = (0u64, 0u64);
    for life in lives {
        if life.probability < 1.0 {
            (drawn, small_blocks) = (drawn.saturating_add(life.bytes), small_blocks + 1);
        }
        if life.probability == 0.0 {
            continue;
        }
        let home = frames.home(life.stack);
        let (holder, sum) =
            places.entry(line(timeline, home)).or_insert_with(|| (empty(timeline, life, home), Sum::default()));
        holder.largest = holder.largest.max(life.bytes);
        if life.probability == 1.0 {
            sum.exact = sum.exact.saturating_add(life.bytes);
            sum.exact_blocks += 1;
        } else {
            let (bytes, part) = (life.bytes as f64, life.probability);
            sum.bytes += bytes / part;
            sum.blocks += 1.0 / part;
            sum.variance += (1.0 - part) * (bytes / part) * (bytes / part);
        }
    }
    let estimated: f64 = places.values().map(|(_, sum)| sum.bytes).sum();
    let estimated_blocks: f64 = places.values().map(|(_, sum)| sum.blocks).sum();
    let scale = if estimated > 0.0 { drawn as f64 / estimated } else { 0.0 };
    let scale_blocks = if estimated_blocks > 0.0 { small_blocks as f64 / estimated_blocks } else { 0.0 };
    let mut holders: Vec<Holder> = places
        .into_values()
        .map(|(holder, sum)| Holder {
            bytes: sum.exact.saturating_add((sum.bytes * scale).round() as u64),
            blocks: sum.exact_blocks.saturating_add((sum.blocks * scale_blocks).round() as u64),
            error: (sum.variance.sqrt() * scale).round() as u64,
            ..holder
        })
        .collect();
    if estimated == 0.0 && drawn > 0 {
        passed_over(&mut holders, drawn, small_blocks);
    }
    holders.sort_by_key(|holder| (Reverse(holder.bytes), holder.stack));
    holders
}

fn empty(timeline: &Timeline, life: &Life, home: timeline::StackIndex) -> Holder {
    Holder { place: place(timeline, home), stack: life.stack, bytes: 0, blocks: 0, largest: 0, error: 0 }
}

/// None of them was drawn: whose they are is not known.
fn passed_over(holders: &mut Vec<Holder>, bytes: u64, blocks: u64) {
    match holders.iter_mut().find(|holder| holder.stack.0 == 0) {
        Some(holder) => {
            holder.bytes = holder.bytes.saturating_add(bytes);
            holder.blocks += blocks;
        }
        None => holders.push(Holder {
            place: crate::place::Place::default(),
            stack: timeline::StackIndex(0),
            bytes,
            blocks,
            largest: 0,
            error: 0,
        }),
    }
}

#[cfg(test)]
mod tests {
    use crate::frames::Frames;
    use crate::memory::{AllocatorMemory, measure};
    use crate::steps::Steps;
    use timeline::Timeline;

    const KIB: u64 = 1 << 10;

    fn measured(text: &str) -> AllocatorMemory {
        let timeline = Timeline::from_text(text).unwrap();
        measure(&timeline, &Frames::new(&timeline), &Steps::find(&timeline, None)).remove(0)
    }

    fn lines(memory: &AllocatorMemory) -> Vec<(Option<u32>, u64, u64)> {
        memory.peak.by_place.iter().map(|one| (one.place.line, one.bytes / KIB, one.error / KIB)).collect()
    }

    #[test]
    fn blocks_that_were_drawn_stand_for_those_that_were_not_and_all_add_up() {
        // 200 blocks of 64 KiB: of those drawn, three of four are of line 5.
        let mut text = "sampled 512K\n block alloc 1us 4M at 900M main>load@a.py:1\n".to_owned();
        for at in 0..200 {
            let stack = match at % 20 {
                0..=2 => "main>keep@a.py:5",
                3 => "main>other@a.py:7",
                _ => "",
            };
            text += &format!("block alloc {}us 64K at {}M {stack}\n", at + 2, at + 1);
        }
        let memory = measured(&text);
        let found = lines(&memory);
        assert_eq!(memory.peak.bytes / KIB, 4096 + 200 * 64);
        assert_eq!(found.iter().map(|one| one.1).sum::<u64>(), memory.peak.bytes / KIB, "{found:?}");
        assert_eq!((found[0].0, found[0].1), (Some(5), 9600));
        assert_eq!(found[1], (Some(1), 4096, 0), "large blocks are exact");
        assert_eq!((found[2].0, found[2].1), (Some(7), 3200));
        // 30 draws of 64 KiB at 0.118 each: an error of a sixth or so.
        assert!((1300..2000).contains(&found[0].2), "{found:?}");
        let blocks: Vec<u64> = memory.peak.by_place.iter().map(|one| one.blocks).collect();
        assert_eq!(blocks, [150, 1, 50]);
    }

    #[test]
    fn a_single_draw_is_known_to_say_little() {
        let memory = measured("sampled 512K\n block alloc 1us 1K at 1M main>f@a.py:1\n block alloc 2us 1K at 2M\n");
        assert_eq!(lines(&memory), [(Some(1), 2, 1)], "never more than is there, and wholly uncertain");
    }

    #[test]
    fn where_none_was_drawn_nobody_is_named() {
        let memory = measured("sampled 512K\n block alloc 1us 1K at 1M\n block alloc 2us 1K at 2M\n");
        assert_eq!(lines(&memory), [(None, 2, 0)]);
    }

    #[test]
    fn growth_of_small_blocks_is_that_of_the_line_that_was_drawn() {
        let mut text = "sampled 512K\n".to_owned();
        for at in 0..2000 {
            let stack = if at % 8 == 0 { "main>leak@a.py:9" } else { "" };
            text += &format!("block alloc {}us 64K at {}M {stack}\n", at + 1, at + 1);
        }
        let memory = measured(&text);
        let lines: Vec<_> = memory.growth.iter().map(|one| one.place.line).collect();
        assert_eq!(lines, [Some(9)]);
        let exact = 2000 * 64 * KIB;
        assert!(memory.growth[0].bytes.abs_diff(exact) < exact / 10 && memory.growth[0].trend > 4.0);
    }
}
