//! The way between host and device, as its generation and lanes were recorded.

use crate::origin::not_recorded;
use timeline::{CollectorCode, Timeline, counters as counter_names};

/// The way between host and device.
pub struct Link {
    generation: i64,
    width: i64,
    pub gb_per_s: f64,
}

impl Link {
    /// At the best that was seen: an idle link slows down to save power.
    pub fn of(timeline: &Timeline) -> Result<Link, String> {
        let read = |name: &str| -> Vec<i64> {
            let counters = timeline.counters.iter().filter(|one| one.process.is_none() && &*one.name == name);
            counters.filter_map(|counter| counter.value.iter().copied().max()).collect()
        };
        let (generations, widths) = (read(counter_names::GPU_PCIE_LINK_GEN), read(counter_names::GPU_PCIE_LINK_WIDTH));
        let ([generation], [width]) = (&generations[..], &widths[..]) else {
            return Err(match generations.len() {
                0 | 1 => not_recorded(timeline, CollectorCode::Devices, "PCIe link not recorded"),
                _ => "the machine has several GPUs: the trace does not show whose link was used".into(),
            });
        };
        // Gigabytes a second of one lane, by generation.
        let lane = match generation {
            1 => 0.25,
            2 => 0.5,
            3 => 0.985,
            4 => 1.969,
            5 => 3.938,
            6 => 7.563,
            _ => return Err(format!("PCI Express generation {generation} is unknown")),
        };
        Ok(Link { generation: *generation, width: *width, gb_per_s: lane * *width as f64 })
    }

    pub fn words(&self) -> String {
        format!("PCI Express generation {}, {} lanes: {:.1} GB/s each way", self.generation, self.width, self.gb_per_s)
    }
}
