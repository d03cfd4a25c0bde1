//! Growth that survives: for each place that allocates, whether what it holds rises from step to step (or from part to part of a recording without
//! steps), with a test that tells a trend from chance, and whether it still rises at the end.

use super::lives::Lives;
use super::sampled;
use super::who::{line, place};
use crate::frames::Frames;
use crate::place::Place;
use std::cmp::Reverse;
use std::collections::HashMap;
use timeline::{NameIndex, StackIndex, Timeline};

/// Parts of a recording without steps; and more steps than [`MOST_WINDOWS`] are put together.
pub(super) const PARTS: usize = 12;
pub(super) const MOST_WINDOWS: usize = 48;
/// Fewer steps than this show no trend: of four values in order, one order in 24 is rising by chance.
pub const LEAST_STEPS: usize = 5;

#[derive(Clone, PartialEq, Debug)]
pub struct Growth {
    pub place: Place,
    pub stack: StackIndex,
    /// Blocks allocated in the recording and alive at the end of its last window, and their bytes. A program that ends gives everything back.
    pub blocks: u64,
    pub bytes: u64,
    /// Those of them that were given back after that.
    pub freed_later: u64,
    /// Blocks allocated in the recording.
    pub allocated: u64,
    /// Bytes held at the end of each window, beyond what was there before.
    pub held: Vec<u64>,
    /// Standard deviations by which the order of those values is more rising than chance (Mann and Kendall); and of the number of blocks: a cache that
    /// replaces its blocks by larger ones holds no more of them.
    pub trend: f64,
    pub blocks_trend: f64,
}

impl Growth {
    /// The least part of the growth that any third of the windows has: little where it all comes in one phase of the recording.
    pub fn steady(&self) -> f64 {
        let Some(last) = self.held.last().filter(|last| **last > 0) else { return 0.0 };
        let at = |part: usize| self.held.get((self.held.len() * part / 3).saturating_sub(1)).copied().unwrap_or(0);
        let thirds = [at(1), at(2).saturating_sub(at(1)), last.saturating_sub(at(2))];
        thirds.into_iter().min().unwrap_or(0) as f64 / *last as f64
    }

    /// The part of the growth that the last third of the windows has: a third of it where it is steady, nothing where it has levelled off.
    pub fn late(&self) -> f64 {
        let (Some(last), Some(early)) = (self.held.last(), self.held.get(self.held.len() * 2 / 3)) else { return 0.0 };
        if *last == 0 { 0.0 } else { last.saturating_sub(*early) as f64 / *last as f64 }
    }
}

/// Ends of windows as places of events: steps where there are enough, else equal parts of the events.
pub fn windows(events: usize, steps: &[(usize, usize)]) -> Vec<usize> {
    let ends: Vec<usize> = match steps.len() >= LEAST_STEPS {
        true => steps.iter().map(|step| step.1).collect(),
        false => (1..=PARTS).map(|part| events * part / PARTS).collect(),
    };
    let every = ends.len().div_ceil(MOST_WINDOWS).max(1);
    ends.iter().copied().rev().step_by(every).collect::<Vec<_>>().into_iter().rev().collect()
}

/// Bytes and blocks that come in a window, less those that go.
type Change = (i128, i128);

/// Places that hold more at the end than before the first event, most growth first.
pub fn of(timeline: &Timeline, frames: &Frames, lives: &Lives, windows: &[usize]) -> Vec<Growth> {
    let window = |event: usize| windows.partition_point(|end| *end <= event);
    let mut growing: HashMap<(NameIndex, u32), (Growth, Vec<Change>)> = HashMap::new();
    for life in &lives.all {
        let Some(start) = life.start else { continue };
        // All that has no stack is one place: what came with the first window, as weights do, is no growth of it.
        if life.stack.0 == 0 && window(start) == 0 {
            continue;
        }
        // Of those that the sampling passed over, others stand for what they take.
        let Some((bytes, blocks)) = sampled::stands_for(life) else { continue };
        let home = frames.home(life.stack);
        let (growth, changes) = growing.entry(line(timeline, home)).or_insert_with(|| {
            let place = place(timeline, home);
            let (stack, held) = (life.stack, Vec::new());
            let (trend, blocks_trend) = (0.0, 0.0);
            let growth =
                Growth { place, stack, blocks: 0, bytes: 0, freed_later: 0, allocated: 0, held, trend, blocks_trend };
            (growth, vec![(0, 0); windows.len() + 1])
        });
        growth.allocated = growth.allocated.saturating_add(blocks);
        let mut change = |event: usize, sign: i128| {
            let change = &mut changes[window(event)];
            (change.0, change.1) = (change.0 + sign * i128::from(bytes), change.1 + sign * i128::from(blocks));
        };
        change(start, 1);
        if let Some(end) = life.end {
            change(end, -1);
        }
        let after = |event: usize| window(event) >= windows.len();
        if !after(start) && life.end.is_none_or(after) {
            growth.blocks = growth.blocks.saturating_add(blocks);
            growth.bytes = growth.bytes.saturating_add(bytes);
            if life.end.is_some() {
                growth.freed_later = growth.freed_later.saturating_add(blocks);
            }
        }
    }
    let finished = growing.into_values().filter(|(growth, _)| growth.blocks > 0).map(|(growth, changes)| {
        let held = summed(&changes[..windows.len()], |change| change.0);
        let blocks = summed(&changes[..windows.len()], |change| change.1);
        Growth { trend: trend(&held), blocks_trend: trend(&blocks), held, ..growth }
    });
    let mut all: Vec<Growth> = finished.collect();
    all.sort_by_key(|growth| (Reverse(growth.bytes), growth.stack));
    all
}

/// What there is after each window.
fn summed(changes: &[Change], of: impl Fn(&Change) -> i128) -> Vec<u64> {
    let mut sum = 0i128;
    let add = |change: &Change| {
        sum += of(change);
        u64::try_from(sum.max(0)).unwrap_or(u64::MAX)
    };
    changes.iter().map(add).collect()
}

/// Mann and Kendall's test: pairs in rising order less pairs in falling order, in standard deviations of what chance gives.
pub(super) fn trend(values: &[u64]) -> f64 {
    let mut score = 0i64;
    for (at, early) in values.iter().enumerate() {
        for late in &values[at + 1..] {
            score += match late.cmp(early) {
                std::cmp::Ordering::Greater => 1,
                std::cmp::Ordering::Less => -1,
                std::cmp::Ordering::Equal => 0,
            };
        }
    }
    let count = values.len() as f64;
    let deviation = (count * (count - 1.0) * (2.0 * count + 5.0) / 18.0).sqrt();
    if deviation == 0.0 { 0.0 } else { (score - score.signum()) as f64 / deviation }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_is_told_from_chance() {
        assert!(trend(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]) > 4.0);
        assert!(trend(&[5, 3, 8, 1, 9, 2, 7, 4, 6, 5, 3, 6]).abs() < 1.0);
        assert_eq!((trend(&[]), trend(&[7]), trend(&[7; 12])), (0.0, 0.0, 0.0));
    }

    #[test]
    fn steps_are_windows_where_there_are_enough() {
        assert_eq!(windows(120, &[]).len(), PARTS);
        assert_eq!(windows(120, &[(0, 10), (10, 20)]), windows(120, &[]));
        let steps: Vec<(usize, usize)> = (0..200).map(|at| (at * 3, at * 3 + 3)).collect();
        let windows = windows(600, &steps);
        assert!(windows.len() <= MOST_WINDOWS && windows.last() == Some(&600) && windows.is_sorted());
    }
}
