//! The settings of PyTorch's caching allocator that change where blocks go, and how sizes are rounded under them.

use std::collections::BTreeMap;

pub const SMALLEST: u64 = 512;
/// Blocks up to this are in segments of [`SMALL_SEGMENT`].
pub const SMALL: u64 = 1 << 20;
pub const SMALL_SEGMENT: u64 = 2 << 20;
/// Larger ones up to [`OWN_SEGMENT`] share segments of this; beyond it each has a segment of its own size.
pub const LARGE_SEGMENT: u64 = 20 << 20;
const OWN_SEGMENT: u64 = 10 << 20;
const SEGMENT_ROUNDING: u64 = 2 << 20;

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Settings {
    pub expandable: bool,
    /// Blocks of this size and more are not split. None: every block may be.
    pub max_split: Option<u64>,
    /// Parts that each power of two is divided into, by the power's size in MiB; from which size on they hold.
    pub divisions: BTreeMap<u64, u64>,
    /// Segments without a block in use are given back whenever a new one would be needed.
    pub empty_before_growing: bool,
}

impl Settings {
    /// As a snapshot tells them.
    pub fn recorded(told: &BTreeMap<String, String>) -> Settings {
        let said = |name: &str| told.get(name).map(String::as_str);
        let bytes = said("max_split_size").and_then(|size| size.parse::<f64>().ok()).filter(|size| *size > 0.0);
        let megabytes = said("max_split_size_mb").and_then(|size| size.parse::<u64>().ok());
        let pairs = said("roundup_power2_divisions").unwrap_or_default().split(',');
        let pair = |pair: &str| {
            let (size, parts) = pair.split_once(':')?;
            Some((size.trim().parse().ok()?, parts.trim().parse().ok()?))
        };
        Settings {
            expandable: said("expandable_segments").is_some_and(|value| value.eq_ignore_ascii_case("true")),
            max_split: bytes.map(|size| size as u64).or(megabytes.map(|size| size << 20)),
            divisions: pairs.filter_map(pair).collect(),
            empty_before_growing: false,
        }
    }

    /// What a request becomes.
    pub fn round(&self, bytes: u64) -> u64 {
        let parts = self.divisions.range(..=(bytes >> 20).max(1)).next_back().map_or(0, |(_, parts)| *parts);
        let plain = bytes.max(1).checked_next_multiple_of(SMALLEST).unwrap_or(u64::MAX);
        if parts <= 1 || bytes <= SMALLEST.saturating_mul(parts) || bytes.is_power_of_two() {
            return plain;
        }
        let power = 1u64 << (63 - bytes.leading_zeros());
        let part = (power / parts).max(SMALLEST);
        bytes.checked_next_multiple_of(part).unwrap_or(plain)
    }

    pub fn may_split(&self, large: bool, size: u64, left: u64) -> bool {
        match large && !self.expandable {
            true => size < self.max_split.unwrap_or(u64::MAX) && left > SMALL,
            false => left >= SMALLEST,
        }
    }

    /// Whether a free block of this size may serve the request: oversized ones only serve oversized requests.
    pub fn may_serve(&self, size: u64, free: u64) -> bool {
        let Some(max_split) = self.max_split.filter(|_| !self.expandable) else { return true };
        if size < max_split { free < max_split } else { free < size.saturating_add(LARGE_SEGMENT) }
    }
}

/// The segment that is asked of the driver for a block of this size.
pub fn segment_for(size: u64) -> u64 {
    match size {
        0..=SMALL => SMALL_SEGMENT,
        _ if size < OWN_SEGMENT => LARGE_SEGMENT,
        _ => size.checked_next_multiple_of(SEGMENT_ROUNDING).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_as_documented() {
        let plain = Settings::default();
        assert_eq!([0, 1, 512, 513, 1 << 20].map(|bytes| plain.round(bytes)), [512, 512, 512, 1024, 1 << 20]);
        let told = [("roundup_power2_divisions".to_owned(), "1:4,256:1".to_owned())].into();
        let quarters = Settings::recorded(&told);
        assert_eq!(
            [1200 << 10, 1 << 20, 300 << 20].map(|bytes| quarters.round(bytes)),
            [1280 << 10, 1 << 20, 300 << 20]
        );
        assert_eq!([1, SMALL + 1, 12 << 20, (10 << 20) + 1].map(segment_for), [2 << 20, 20 << 20, 12 << 20, 12 << 20]);
    }

    #[test]
    fn settings_are_read_as_snapshots_tell_them() {
        let told =
            |pairs: &[(&str, &str)]| pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
        let plain = Settings::recorded(&told(&[("max_split_size", "-1"), ("expandable_segments", "False")]));
        assert_eq!(plain, Settings::default());
        let set = Settings::recorded(&told(&[("max_split_size", "134217728"), ("expandable_segments", "True")]));
        assert!(set.expandable && set.max_split == Some(128 << 20));
    }
}
