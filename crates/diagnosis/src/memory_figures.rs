//! What the memory of a recording comes to in a few numbers: of the allocator that has reserved most, or of the driver where no allocator was recorded.

use crate::diagnose::Diagnosis;
use crate::finding::Finding;
use crate::rules::memory::FAMILY;
use analysis::AllocatorMemory;
use timeline::Timeline;
use timeline::driver_memory::{MemoryPlace, driver_memory};
use timeline::memory::MemoryEventKind;

/// CUDA's code for memory that ran out.
const OUT_OF_MEMORY: u32 = 2;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemoryFigures {
    /// "torch.cuda", or "cuda" for the driver. Empty: no memory of a device was recorded.
    pub backend: String,
    pub allocated: Option<u64>,
    pub reserved: Option<u64>,
    pub peak: Option<u64>,
    /// Taken of the device at most.
    pub used: Option<u64>,
    pub total: Option<u64>,
    /// Requests that failed.
    pub ooms: u64,
}

pub fn of(timeline: &Timeline, diagnosis: &Diagnosis) -> MemoryFigures {
    let of_device = |one: &&AllocatorMemory| timeline.memory.allocator(one.allocator).device.is_some();
    let largest = diagnosis
        .memory
        .iter()
        .filter(of_device)
        .max_by_key(|one| one.history.reserved_peak.unwrap_or(one.history.peak));
    let failed =
        timeline.memory.events.iter().filter(|event| event.kind == MemoryEventKind::OutOfMemory).count() as u64;
    let driver = driver_memory(&timeline.gpu.allocations);
    let refused = driver.places.iter().flat_map(|place| &place.failed).filter(|one| one.error == OUT_OF_MEMORY).count();
    // The driver's refusals are behind the allocator's failures, more than one for each.
    let ooms = if failed > 0 { failed } else { refused as u64 };
    let total = |ordinal: u32| {
        let devices = timeline.gpu.devices.iter().filter(|device| device.ordinal == ordinal);
        devices.filter_map(|device| device.memory_bytes).find(|bytes| *bytes > 0)
    };
    if let Some(one) = largest {
        let about = timeline.memory.allocator(one.allocator);
        return MemoryFigures {
            backend: about.backend.to_string(),
            allocated: Some(one.in_use()),
            reserved: one.history.reserved_last,
            peak: Some(one.history.peak),
            used: one.history.reserved_peak.or(Some(one.history.peak)),
            total: about.device.and_then(total),
            ooms,
        };
    }
    let of_device = driver.places.iter().filter_map(|place| match place.place {
        MemoryPlace::Device(ordinal) => Some((ordinal, place.peak()?, place.points.last()?.own())),
        _ => None,
    });
    match of_device.max_by_key(|(_, peak, _)| peak.own()) {
        Some((ordinal, peak, last)) => MemoryFigures {
            backend: "cuda".into(),
            allocated: Some(last),
            peak: Some(peak.own()),
            used: Some(peak.own()),
            total: total(ordinal),
            ooms,
            ..MemoryFigures::default()
        },
        None => MemoryFigures { ooms, ..MemoryFigures::default() },
    }
}

/// What the rules of memory found.
pub fn findings(diagnosis: &Diagnosis) -> impl Iterator<Item = &Finding> {
    diagnosis.findings.iter().filter(|finding| FAMILY.rules.iter().any(|rule| rule.code() == finding.code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose::{Options, diagnose};

    fn of_text(text: &str) -> MemoryFigures {
        let timeline = Timeline::from_text(text).unwrap();
        of(&timeline, &diagnose(&timeline, &Options::default()))
    }

    #[test]
    fn the_allocator_comes_before_the_driver() {
        let state = "reserved 20M at 1M\n holds 4M active\n holds 16M free";
        let found = of_text(&format!("block alloc 1us 4M at 1M\n oom 2us 80M free 1M\n {state}"));
        assert_eq!((found.backend.as_str(), found.allocated, found.ooms), ("torch.cuda", Some(4 << 20), 1));
        assert_eq!((found.reserved, found.peak), (Some(20 << 20), Some(4 << 20)));
        let driver = of_text(
            "device 0 GPU memory 1G\n track main\n alloc 1us 100 at 16\n free 2us 0 at 16\n failed 3us 9000 error 2",
        );
        assert_eq!((driver.backend.as_str(), driver.allocated, driver.peak), ("cuda", Some(0), Some(100)));
        assert_eq!((driver.total, driver.ooms), (Some(1 << 30), 1));
        assert_eq!(of_text("track main\n step request 0..40ms"), MemoryFigures::default());
    }
}
