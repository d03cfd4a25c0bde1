//! The way between host and device, as its generation and lanes were recorded.

use timeline::{Timeline, counters as counter_names};

/// The way between host and device.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    pub generation: i64,
    /// In lanes.
    pub width: i64,
    /// Each way.
    pub gb_per_s: f64,
}

/// Why the link is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkUnknown {
    NotRecorded,
    /// The trace does not show whose link was used.
    SeveralGpus,
    /// Of PCI Express: none that we know.
    Generation(i64),
}

impl Link {
    /// At the best that was seen: an idle link slows down to save power.
    pub fn of(timeline: &Timeline) -> Result<Link, LinkUnknown> {
        let read = |name: &str| -> Vec<i64> {
            let counters = timeline.counters.iter().filter(|one| one.process.is_none() && &*one.name == name);
            counters.filter_map(|counter| counter.value.iter().copied().max()).collect()
        };
        let (generations, widths) = (read(counter_names::GPU_PCIE_LINK_GEN), read(counter_names::GPU_PCIE_LINK_WIDTH));
        let ([generation], [width]) = (&generations[..], &widths[..]) else {
            return Err(match generations.len() {
                0 | 1 => LinkUnknown::NotRecorded,
                _ => LinkUnknown::SeveralGpus,
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
            _ => return Err(LinkUnknown::Generation(*generation)),
        };
        Ok(Link { generation: *generation, width: *width, gb_per_s: lane * *width as f64 })
    }
}
