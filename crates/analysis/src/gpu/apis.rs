//! The API calls of the host by name: how many, and how long they took.

use super::{ApiRow, percentile};
use std::collections::HashMap;
use timeline::{NameIndex, SliceKind, Timeline};

pub fn rows(timeline: &Timeline) -> Vec<ApiRow> {
    let slices = &timeline.slices;
    let mut by_name: HashMap<u32, Vec<u64>> = HashMap::new();
    for index in (0..slices.len()).filter(|index| slices.kind(*index) == SliceKind::ApiCall) {
        by_name.entry(slices.name[index]).or_default().push(slices.dur[index]);
    }
    let row = |(name, mut times): (u32, Vec<u64>)| {
        times.sort_unstable();
        let total_ns = times.iter().fold(0u64, |sum, time| sum.saturating_add(*time));
        let count = times.len() as u64;
        ApiRow {
            name: NameIndex(name),
            count,
            total_ns,
            mean_ns: total_ns / count.max(1),
            p95_ns: percentile(&times, 95),
        }
    };
    let mut rows: Vec<ApiRow> = by_name.into_iter().map(row).collect();
    rows.sort_by_key(|row| (u64::MAX - row.total_ns, row.name));
    rows
}
