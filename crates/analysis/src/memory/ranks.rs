//! The most that each rank of a distributed program took of its device, from one kind of record for all of them.

use super::AllocatorMemory;
use std::collections::BTreeMap;
use timeline::driver_memory::{MemoryPlace, driver_memory};
use timeline::{ProcessIndex, Timeline};

/// Where the peaks are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PeakSource {
    /// All that recorded calls took of the driver.
    Driver,
    /// What the framework's allocator had reserved.
    Reserved,
    /// What it had handed out.
    InUse,
}

/// The device of a rank of which it took most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankPeak {
    pub rank: u32,
    pub process: ProcessIndex,
    /// By the process's own ordinal.
    pub device: u32,
    pub peak: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RankPeaks {
    pub source: PeakSource,
    /// By rank.
    pub ranks: Vec<RankPeak>,
}

/// None: fewer than two ranks, or of some of them nothing was recorded that the others have, too.
pub fn measure(timeline: &Timeline, memory: &[AllocatorMemory]) -> Option<RankPeaks> {
    let ranked: BTreeMap<ProcessIndex, u32> = timeline
        .processes
        .iter()
        .enumerate()
        .filter_map(|(at, process)| Some((ProcessIndex(at as u32), process.rank?)))
        .collect();
    let mut ranks: Vec<u32> = ranked.values().copied().collect();
    ranks.sort_unstable();
    ranks.dedup();
    if ranks.len() < 2 {
        return None;
    }
    let of_allocators = |peak: &dyn Fn(&AllocatorMemory) -> Option<u64>| -> Vec<(ProcessIndex, u32, u64)> {
        let one = |one: &AllocatorMemory| {
            let about = timeline.memory.allocator(one.allocator);
            Some((about.process, about.device?, peak(one)?))
        };
        memory.iter().filter_map(one).collect()
    };
    let of_driver = || -> Vec<(ProcessIndex, u32, u64)> {
        let driver = driver_memory(&timeline.gpu.allocations);
        let of = |place: &timeline::driver_memory::PlaceMemory| match place.place {
            MemoryPlace::Device(device) => Some((place.process, device, place.peak()?.own())),
            _ => None,
        };
        driver.places.iter().filter_map(of).collect()
    };
    let sources = [
        (PeakSource::Driver, of_driver()),
        (PeakSource::Reserved, of_allocators(&|one| one.history.reserved_peak)),
        (PeakSource::InUse, of_allocators(&|one| (one.history.allocs > 0).then_some(one.history.peak))),
    ];
    sources.into_iter().find_map(|(source, peaks)| {
        // A rank may have several processes, or devices: the fullest device is the one that limits it.
        let mut by_rank: BTreeMap<u32, RankPeak> = BTreeMap::new();
        for (process, device, peak) in peaks {
            let Some(rank) = ranked.get(&process).copied() else { continue };
            let new = RankPeak { rank, process, device, peak };
            let kept = by_rank.entry(rank).or_insert(new);
            *kept = if peak > kept.peak { new } else { *kept };
        }
        let all = ranks.iter().all(|rank| by_rank.get(rank).is_some_and(|one| one.peak > 0));
        all.then(|| RankPeaks { source, ranks: by_rank.into_values().collect() })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StepAnalysis;

    fn of(text: &str) -> Option<RankPeaks> {
        let timeline = Timeline::from_text(text).unwrap();
        measure(&timeline, StepAnalysis::new(&timeline, None).memory())
    }

    fn peaks(text: &str) -> Option<(PeakSource, Vec<u64>)> {
        of(text).map(|found| (found.source, found.ranks.iter().map(|one| one.peak).collect()))
    }

    const BLOCKS: &str = "process a rank 0\n track main\n block alloc 1us 60M at 1\n
        process b rank 1\n track main\n block alloc 1us 90M at 1\n block free 2us 90M at 1";

    #[test]
    fn all_ranks_are_measured_in_the_same_way() {
        assert_eq!(peaks(BLOCKS), Some((PeakSource::InUse, vec![60 << 20, 90 << 20])));
        let calls = BLOCKS.replace("block alloc 1us 60M at 1", "block alloc 1us 60M at 1\n alloc 1us 4096 at 9");
        assert_eq!(peaks(&calls).unwrap().0, PeakSource::InUse, "one rank's calls alone tell nothing of the others");
        let both = calls.replace("block alloc 1us 90M", "alloc 1us 8192 at 9\n block alloc 1us 90M");
        assert_eq!(peaks(&both), Some((PeakSource::Driver, vec![4096, 8192])));
    }

    #[test]
    fn one_rank_or_one_without_memory_gives_nothing() {
        assert_eq!(of("process a rank 0\n track main\n block alloc 1us 60M at 1"), None);
        assert_eq!(of(&format!("{BLOCKS}\n process c rank 2\n track main")), None);
        assert_eq!(of(&BLOCKS.replace("rank 0", "").replace("rank 1", "")), None);
    }
}
