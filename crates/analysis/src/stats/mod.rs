//! Numbers and how sure they are: shares with their error, percentiles, spreads, curves. Nothing here knows what is being counted.

pub mod curve;
pub mod seek;
pub mod share;
pub mod spread;
pub mod times;

/// The smallest of the sorted values that `percent` of them do not exceed: always one of them; 0 where there are none.
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_recorded_values() {
        let times: Vec<u64> = (1..=200).collect();
        assert_eq!((percentile(&times, 50), percentile(&times, 99)), (100, 198));
        assert_eq!((percentile(&[7], 50), percentile(&[7], 99), percentile(&[], 50)), (7, 7, 0));
    }
}
