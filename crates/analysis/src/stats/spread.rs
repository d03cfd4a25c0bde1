//! How long slices of one name took: count, total, and the spread from shortest to longest.

use super::percentile;
use std::collections::HashMap;
use timeline::{NameIndex, SliceKind, Timeline};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spread {
    pub name: NameIndex,
    /// Those that ended; the other numbers are of these.
    pub count: u64,
    /// Those that had not ended when the recording did.
    pub open: u64,
    pub total: u64,
    pub min: u64,
    pub mean: u64,
    pub p50: u64,
    pub p99: u64,
    pub max: u64,
}

pub fn measure(timeline: &Timeline, kind: SliceKind) -> Vec<Spread> {
    let slices = &timeline.slices;
    let mut by_name: HashMap<NameIndex, (Vec<u64>, u64)> = HashMap::new();
    for index in (0..slices.len()).filter(|index| slices.kind(*index) == kind) {
        let slice = slices.get(index);
        let (durations, open) = by_name.entry(slice.name).or_default();
        if slice.open { *open += 1 } else { durations.push(slice.dur) }
    }
    let mut spreads: Vec<Spread> = by_name.into_iter().map(|(name, (times, open))| spread(name, times, open)).collect();
    spreads.sort_by_key(|spread| (u64::MAX - spread.total, spread.name));
    spreads
}

impl Spread {
    pub fn of(name: NameIndex, times: Vec<u64>, open: u64) -> Spread {
        spread(name, times, open)
    }
}

fn spread(name: NameIndex, mut times: Vec<u64>, open: u64) -> Spread {
    times.sort_unstable();
    let total: u128 = times.iter().map(|time| u128::from(*time)).sum();
    let mean = total / times.len().max(1) as u128;
    Spread {
        name,
        count: times.len() as u64,
        open,
        total: u64::try_from(total).unwrap_or(u64::MAX),
        min: times.first().copied().unwrap_or(0),
        mean: mean as u64,
        p50: percentile(&times, 50),
        p99: percentile(&times, 99),
        max: times.last().copied().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_slices_are_counted_but_not_timed() {
        let spread = spread(NameIndex(1), vec![30, 10, 20], 2);
        assert_eq!((spread.count, spread.open, spread.total, spread.mean), (3, 2, 60, 20));
        assert_eq!((spread.min, spread.p50, spread.p99, spread.max), (10, 20, 30, 30));
    }
}
