//! Memory of a window: of the recorded processes, and of the devices by what it is for.

use crate::model::{Memory, Part};
use analysis::Metrics;
use diagnosis::Diagnosis;
use diagnosis::wording::memory::not_attributed;
use timeline::Timeline;

pub fn memory(timeline: &Timeline, metrics: &Metrics, diagnosis: &Diagnosis) -> Memory {
    let curve = metrics.memory.as_ref();
    let rss: Vec<Option<u64>> = curve
        .map(|curve| curve.buckets.iter().map(|value| value.map(|value| value as u64)).collect())
        .unwrap_or_default();
    let mut memory = Memory {
        rss_bytes: rss.iter().rev().find_map(|value| *value),
        peak_rss_bytes: curve.map(|curve| curve.peak.value as u64),
        rss,
        ..Memory::default()
    };
    for one in &diagnosis.attribution {
        match &one.found {
            Err(why) => memory.not_attributed = Some(not_attributed(why)),
            Ok(found) => {
                let parts = report::attributed_parts(timeline, found);
                memory.parts.extend(parts.map(|(what, bytes)| Part { device: one.device, what, bytes }));
            }
        }
    }
    memory
}
