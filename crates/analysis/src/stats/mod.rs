//! Numbers and how sure they are: shares with their error, percentiles, spreads, curves. Nothing here knows what is being counted.

pub mod curve;
pub mod seek;
pub mod share;
pub mod spread;
pub mod times;

/// The smallest value that `percent` of the sorted values do not exceed.
pub fn percentile(sorted: &[u64], percent: usize) -> u64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}
