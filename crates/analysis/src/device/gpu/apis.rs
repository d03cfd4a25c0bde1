//! The API calls of the host by name: how many, and how long they took.

use super::ApiRow;
use crate::stats::times::Times;
use timeline::{NameIndex, SliceKind, Timeline};

pub fn rows(timeline: &Timeline) -> Vec<ApiRow> {
    let slices = &timeline.slices;
    // By place of the name, so that a million calls need no hashing.
    let mut by_name: Vec<Times> = vec![Times::default(); timeline.names.len()];
    for index in (0..slices.len()).filter(|index| slices.kind(*index) == SliceKind::ApiCall) {
        if let Some(times) = by_name.get_mut(slices.name[index] as usize) {
            times.push(slices.dur[index]);
        }
    }
    let row = |(name, mut times): (u32, Times)| {
        let (count, total_ns) = (times.count() as u64, times.total());
        let (mean_ns, p95_ns) = (total_ns / count.max(1), times.percentile(95));
        ApiRow { name: NameIndex(name), count, total_ns, mean_ns, p95_ns }
    };
    let named = (0..).zip(by_name).filter(|(_, times)| times.count() > 0);
    let mut rows: Vec<ApiRow> = named.map(row).collect();
    rows.sort_by_key(|row| (u64::MAX - row.total_ns, row.name));
    rows
}
