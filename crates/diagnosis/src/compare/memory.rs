//! Memory of two snapshots or recordings side by side: what each allocator holds and has reserved, and which lines hold more or less: at the end of a
//! snapshot, at the peak of a recording, for at its end a program has given back what it does not leak.

use analysis::AllocatorMemory;
use analysis::memory::Held;
use analysis::memory::who::Holder;
use analysis::place::Place;
use std::collections::BTreeMap;
use timeline::Timeline;

use super::Side;

/// Bytes or blocks in A and in B. None: not recorded there.
pub type Pair = (Option<u64>, Option<u64>);

#[derive(Clone, PartialEq, Debug)]
pub struct MemoryComparison {
    pub allocators: Vec<AllocatorChange>,
    /// Whether lines are compared at the peak, and not at the end.
    pub at_peak: bool,
    /// The largest difference first.
    pub places: Vec<PlaceChange>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct AllocatorChange {
    /// "GPU 0".
    pub name: String,
    pub in_use: Pair,
    pub reserved: Pair,
    pub peak: Pair,
    pub largest_free: Pair,
}

/// What a line holds at that moment.
#[derive(Clone, PartialEq, Debug)]
pub struct PlaceChange {
    pub allocator: String,
    /// Nothing in it: stacks were not recorded.
    pub place: Place,
    pub bytes: (u64, u64),
    pub blocks: (u64, u64),
}

impl PlaceChange {
    /// Positive: B holds more.
    pub fn delta(&self) -> i128 {
        i128::from(self.bytes.1) - i128::from(self.bytes.0)
    }
}

pub fn compare_memory(a: Side, b: Side) -> MemoryComparison {
    between(a, b, false)
}

/// Of recordings that have the same allocators, or some of them.
pub fn of_recordings(a: Side, b: Side) -> Option<MemoryComparison> {
    let comparison = between(a, b, true);
    let both = |one: &AllocatorChange| one.in_use.0.is_some() && one.in_use.1.is_some();
    comparison.allocators.iter().any(both).then_some(comparison)
}

fn between(a: Side, b: Side, at_peak: bool) -> MemoryComparison {
    let (left, right) = (named(a.timeline, &a.diagnosis.memory), named(b.timeline, &b.diagnosis.memory));
    let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
    names.sort();
    names.dedup();
    let allocator = |name: &&String| {
        let pair = |of: &dyn Fn(&AllocatorMemory) -> Option<u64>| {
            (left.get(*name).and_then(|one| of(one)), right.get(*name).and_then(|one| of(one)))
        };
        AllocatorChange {
            name: (*name).clone(),
            in_use: pair(&|one| Some(one.in_use())),
            reserved: pair(&|one| one.history.reserved_last),
            peak: pair(&|one| (one.history.allocs > 0).then_some(one.history.peak)),
            largest_free: pair(&|one| one.map.as_ref().map(|map| map.largest_free)),
        }
    };
    let mut places: Vec<PlaceChange> =
        names.iter().flat_map(|name| of_places(name, left.get(*name), right.get(*name), at_peak)).collect();
    places.retain(|place| place.bytes.0 != place.bytes.1 || place.blocks.0 != place.blocks.1);
    places.sort_by_key(|place| (std::cmp::Reverse(place.delta().unsigned_abs()), place.place.line));
    MemoryComparison { allocators: names.iter().map(allocator).collect(), at_peak, places }
}

fn named<'a>(timeline: &Timeline, all: &'a [AllocatorMemory]) -> BTreeMap<String, &'a AllocatorMemory> {
    let mut named = BTreeMap::new();
    for one in all {
        let name = name(timeline, one);
        let again = (2..).map(|count| format!("{name} ({count})"));
        let free = std::iter::once(name.clone()).chain(again).find(|name| !named.contains_key(name));
        named.extend(free.map(|name| (name, one)));
    }
    named
}

/// "GPU 0"; of several processes with what is the same in both recordings: the rank, or the program. Pids are not.
fn name(timeline: &Timeline, one: &AllocatorMemory) -> String {
    let about = timeline.memory.allocator(one.allocator);
    let device = about.device.map_or_else(|| "Pinned memory".to_owned(), |device| format!("GPU {device}"));
    match timeline.processes.get(about.process.0 as usize).filter(|_| timeline.processes.len() > 1) {
        Some(process) => match process.rank {
            Some(rank) => format!("{device} of rank {rank}"),
            None if process.program.is_empty() => device,
            None => format!("{device} of {}", process.program),
        },
        None => device,
    }
}

type Key = (Option<String>, Option<u32>, Option<String>);

fn of_places(
    name: &str,
    a: Option<&&AllocatorMemory>,
    b: Option<&&AllocatorMemory>,
    at_peak: bool,
) -> Vec<PlaceChange> {
    let held = |one: &'_ AllocatorMemory| -> Held { if at_peak { one.peak.clone() } else { one.end.clone() } };
    let mut places: BTreeMap<Key, PlaceChange> = BTreeMap::new();
    let mut add = |holder: &Holder, second: bool| {
        let place = &holder.place;
        let change = places.entry((place.file.clone(), place.line, place.function.clone())).or_insert_with(|| {
            PlaceChange { allocator: name.to_owned(), place: place.clone(), bytes: (0, 0), blocks: (0, 0) }
        });
        let (bytes, blocks) = match second {
            false => (&mut change.bytes.0, &mut change.blocks.0),
            true => (&mut change.bytes.1, &mut change.blocks.1),
        };
        *bytes = bytes.saturating_add(holder.bytes);
        *blocks += holder.blocks;
    };
    a.into_iter().flat_map(|one| held(one).by_place).for_each(|holder| add(&holder, false));
    b.into_iter().flat_map(|one| held(one).by_place).for_each(|holder| add(&holder, true));
    places.into_values().collect()
}
