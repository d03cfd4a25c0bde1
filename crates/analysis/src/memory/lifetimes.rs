//! Blocks over time, stacked as they came: each with the height at which it lies while it lives, for a picture that zooms. A picture holds so many
//! blocks: those with the most bytes × time. The rest is summed, moment by moment, and lies on top.

use super::levels::{self, Steps, begin};
use super::lives::{Life, Lives};
use super::who::Category;
use std::cmp::Reverse;
use timeline::{StackIndex, Timeline};

/// How much of a picture there may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub blocks: usize,
    /// Of all blocks together: a block that lies above one that is freed moves down, and each move is a point.
    pub points: usize,
}

#[derive(Clone, PartialEq, Debug)]
pub struct BlockLife {
    pub stack: StackIndex,
    pub bytes: u64,
    pub category: Category,
    pub start: u64,
    pub end: u64,
    /// It was there before the first event.
    pub from_before: bool,
    /// It is there after the last one.
    pub alive: bool,
    /// Its lower edge from each time on; the first is its start.
    pub bottom: Steps,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Lifetimes {
    /// By start.
    pub blocks: Vec<BlockLife>,
    /// Of all blocks that ever lived.
    pub all: usize,
    /// Bytes of the drawn blocks, and of those that are not: where those change very often, the highest of neighbouring moments.
    pub drawn: Steps,
    pub rest: Steps,
    /// All that was held at once, at most: the height of the picture.
    pub peak: u64,
}

impl Lifetimes {
    /// The rest where it lies: time, lower edge, upper edge.
    pub fn rest_band(&self) -> Vec<(u64, u64, u64)> {
        if self.rest.is_empty() {
            return Vec::new();
        }
        let mut moments: Vec<u64> = self.drawn.iter().chain(&self.rest).map(|step| step.0).collect();
        moments.sort_unstable();
        moments.dedup();
        let band = |time: u64| {
            let bottom = at(&self.drawn, time);
            (time, bottom, bottom.saturating_add(at(&self.rest, time)))
        };
        moments.into_iter().map(band).collect()
    }
}

/// The value that holds at a time; 0 before the first.
pub fn at(steps: &[(u64, u64)], time: u64) -> u64 {
    let after = steps.partition_point(|step| step.0 <= time);
    after.checked_sub(1).map_or(0, |place| steps[place].1)
}

/// `categories`: what each of the lives is for.
pub fn of(timeline: &Timeline, lives: &Lives, categories: &[Category], limits: Limits) -> Lifetimes {
    let end_of = |life: &Life| {
        let event = life.end.and_then(|end| timeline.memory.events.get(end));
        event.map_or(timeline.end, |event| event.time)
    };
    let area = |place: usize| {
        let life = &lives.all[place];
        let time = end_of(life).saturating_sub(begin(timeline, life.start));
        u128::from(life.bytes) * u128::from(time.max(1))
    };
    let mut by_area: Vec<(Reverse<u128>, usize)> =
        (0..lives.all.len()).map(|place| (Reverse(area(place)), place)).collect();
    by_area.sort_unstable();
    let mut most = limits.blocks;
    loop {
        let mut chosen: Vec<usize> = by_area.iter().take(most).map(|(_, place)| *place).collect();
        chosen.sort_by_key(|place| (lives.all[*place].start, *place));
        let Some(bottoms) = lay(timeline, lives, &chosen, limits.points) else {
            most /= 2;
            continue;
        };
        let block = |(place, bottom): (&usize, Steps)| {
            let life = &lives.all[*place];
            BlockLife {
                stack: life.stack,
                bytes: life.bytes,
                category: categories.get(*place).copied().unwrap_or(Category::Unknown),
                start: begin(timeline, life.start),
                end: end_of(life),
                from_before: life.start.is_none(),
                alive: life.end.is_none(),
                bottom,
            }
        };
        let sum = |places: &mut dyn Iterator<Item = usize>| {
            let mut changes: Vec<(u64, i128)> = Vec::new();
            for life in places.map(|place| &lives.all[place]) {
                changes.push((begin(timeline, life.start), i128::from(life.bytes)));
                if life.end.is_some() {
                    changes.push((end_of(life), -i128::from(life.bytes)));
                }
            }
            levels::summed(changes, 0)
        };
        let peak = sum(&mut (0..lives.all.len())).iter().map(|step| step.1).max().unwrap_or(0);
        let rest = sum(&mut by_area.iter().skip(most).map(|(_, place)| *place));
        return Lifetimes {
            drawn: sum(&mut chosen.iter().copied()),
            rest: levels::thinned(&rest, limits.points / 8),
            blocks: chosen.iter().zip(bottoms).map(block).collect(),
            all: lives.all.len(),
            peak,
        };
    }
}

/// The lower edges of the chosen blocks over time. None: they are more than so many points.
fn lay(timeline: &Timeline, lives: &Lives, chosen: &[usize], most: usize) -> Option<Vec<Steps>> {
    // Of one moment: what goes makes room for what comes.
    let mut changes: Vec<(usize, bool, usize)> = Vec::new();
    for (number, place) in chosen.iter().enumerate() {
        let life = &lives.all[*place];
        changes.push((life.start.map_or(0, |start| start + 1), true, number));
        changes.extend(life.end.map(|end| (end + 1, false, number)));
    }
    changes.sort_unstable();
    let mut bottoms: Vec<Steps> = vec![Steps::new(); chosen.len()];
    let (mut stack, mut top, mut points): (Vec<(usize, u64)>, u64, usize) = (Vec::new(), 0, 0);
    for (event, comes, number) in changes {
        let time = begin(timeline, event.checked_sub(1));
        let bytes = lives.all[chosen[number]].bytes;
        if comes {
            stack.push((number, top));
            bottoms[number].push((time, top));
            top = top.saturating_add(bytes);
            points += 1;
        } else if let Some(gone) = stack.iter().rposition(|(one, _)| *one == number) {
            stack.remove(gone);
            top = top.saturating_sub(bytes);
            for (above, bottom) in &mut stack[gone..] {
                *bottom = bottom.saturating_sub(bytes);
                match bottoms[*above].last_mut() {
                    Some(last) if last.0 == time => last.1 = *bottom,
                    _ => {
                        bottoms[*above].push((time, *bottom));
                        points += 1;
                    }
                }
            }
        }
        if points > most && chosen.len() > 1 {
            return None;
        }
    }
    Some(bottoms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{lives, who};
    use timeline::memory::AllocatorIndex;

    fn laid(text: &str, blocks: usize, points: usize) -> Lifetimes {
        let timeline = Timeline::from_text(text).unwrap();
        let lives = lives::of(&timeline.memory, AllocatorIndex(0));
        let categories = who::categories(&timeline, &lives, &[]);
        of(&timeline, &lives, &categories, Limits { blocks, points })
    }

    const MIB: u64 = 1 << 20;
    const THREE: &str = "block alloc 1us 4M at 1\n block alloc 2us 8M at 2\n block alloc 3us 2M at 3\n block free 5us 8M at 2\n block free 9us 4M at 1";

    #[test]
    fn what_lies_above_a_freed_block_moves_down() {
        let found = laid(THREE, 10, 100);
        let bottom: Vec<Vec<(u64, u64)>> = found
            .blocks
            .iter()
            .map(|block| block.bottom.iter().map(|(time, at)| (time / 1000, at / MIB)).collect())
            .collect();
        assert_eq!(bottom, [vec![(1, 0)], vec![(2, 4)], vec![(3, 12), (5, 4), (9, 0)]]);
        assert_eq!((found.peak, found.all, found.rest.len()), (14 * MIB, 3, 0));
        assert!(found.blocks[2].alive && !found.blocks[0].alive && !found.blocks[0].from_before);
    }

    #[test]
    fn what_is_not_drawn_is_summed_and_lies_on_top() {
        let found = laid(THREE, 1, 100);
        assert_eq!(found.blocks.iter().map(|block| block.bytes).collect::<Vec<_>>(), [4 * MIB]);
        assert_eq!(found.peak, 14 * MIB);
        assert!(found.rest_band().contains(&(3_000, 4 * MIB, 14 * MIB)), "{:?}", found.rest_band());
    }

    /// Each free of a queue moves everything behind it.
    #[test]
    fn points_are_bounded_whatever_the_blocks_do() {
        let text = "repeat 400 every 10us\n block alloc 1us 1M at 1 each\n end\n repeat 400 every 10us\n block free 5ms 1M at 1 each\n end";
        let found = laid(text, 400, 2_000);
        let points: usize = found.blocks.iter().map(|block| block.bottom.len()).sum();
        assert!(points <= 2_000 && !found.blocks.is_empty() && found.blocks.len() < 400, "{points}");
        assert_eq!((found.all, found.peak), (400, 400 * MIB));
    }

    #[test]
    fn no_block_is_no_picture() {
        let found = laid("segment alloc 1us 2M at 1", 10, 10);
        assert_eq!((found.blocks.len(), found.peak, found.rest_band().len()), (0, 0, 0));
    }
}
