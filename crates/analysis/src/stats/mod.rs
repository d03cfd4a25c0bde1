//! Numbers and how sure they are: shares with their error, percentiles, spreads, curves. Nothing here knows what is being counted.

pub mod curve;
pub mod seek;
pub mod share;
pub mod spread;
pub mod times;

use std::cmp::Ordering;

/// The smallest of the sorted values that `percent` of them do not exceed: always one of them; 0 where there are none.
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// The middle value, of an even number the later of the two: always one of them; None where there are none.
pub fn median<T: Ord + Copy>(values: Vec<T>) -> Option<T> {
    median_by(values, T::cmp)
}

/// [`median`] of what has no order of its own.
pub fn median_by<T: Copy>(mut values: Vec<T>, order: impl FnMut(&T, &T) -> Ordering) -> Option<T> {
    let middle = values.len() / 2;
    (middle < values.len()).then(|| *values.select_nth_unstable_by(middle, order).1)
}

#[cfg(test)]
mod tests {
    use super::{median, median_by, percentile};

    #[test]
    fn percentiles_are_recorded_values() {
        let times: Vec<u64> = (1..=200).collect();
        assert_eq!((percentile(&times, 50), percentile(&times, 99)), (100, 198));
        assert_eq!((percentile(&[7], 50), percentile(&[7], 99), percentile(&[], 50)), (7, 7, 0));
    }

    #[test]
    fn a_median_is_a_recorded_value() {
        assert_eq!((median(vec![9, 1, 5]), median(vec![4, 1, 3, 2]), median::<u64>(vec![])), (Some(5), Some(3), None));
        assert_eq!(median_by(vec![0.5, 0.1, 0.3], f64::total_cmp), Some(0.3));
    }
}
