//! Which calls of the driver were a framework's allocator's: those that took what its blocks lie in. The rest of the driver's memory was taken by
//! libraries, or by the program itself.

use std::collections::{BTreeMap, HashMap, HashSet};
use timeline::gpu::{Allocation, MemoryOperation};
use timeline::memory::MemoryEventKind;
use timeline::{ProcessIndex, Timeline};

/// A block may be recorded by another thread's clock a moment before the call that took its memory.
const EARLIER_NS: u64 = 1_000_000;

/// The blocks of one process on devices.
#[derive(Default)]
struct Blocks {
    /// Where each was handed out and when, by address.
    at: Vec<(u64, u64)>,
    /// All that was ever handed out, as ranges by address that do not touch.
    ranges: Vec<(u64, u64)>,
}

/// Places in the timeline's allocations.
pub fn framework_calls(timeline: &Timeline) -> HashSet<usize> {
    let blocks = blocks(timeline);
    if blocks.is_empty() {
        return HashSet::new();
    }
    let calls = &timeline.gpu.allocations;
    let (until, mapped) = (lives(calls), mappings(calls));
    let own = |at: &usize| {
        let call = &calls[*at];
        let Some(blocks) = blocks.get(&call.process) else { return false };
        match call.operation {
            MemoryOperation::Alloc => blocks.in_life(call, until.get(at).copied().unwrap_or(u64::MAX)),
            // Addresses of a mapping stay the allocator's for ever: it reserved them.
            MemoryOperation::Create => mapped.get(at).is_some_and(|map| blocks.overlaps(&calls[*map])),
            _ => false,
        }
    };
    (0..calls.len()).filter(own).collect()
}

fn blocks(timeline: &Timeline) -> HashMap<ProcessIndex, Blocks> {
    let mut all: HashMap<ProcessIndex, Blocks> = HashMap::new();
    for event in timeline.memory.events.iter().filter(|event| event.kind == MemoryEventKind::Alloc) {
        let about = timeline.memory.allocator(event.allocator);
        if about.device.is_some() {
            let own = all.entry(about.process).or_default();
            own.at.push((event.address, event.time));
            own.ranges.push((event.address, event.address.saturating_add(event.bytes)));
        }
    }
    for own in all.values_mut() {
        own.at.sort_unstable();
        own.ranges.sort_unstable();
        own.ranges.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1;
            kept.1 = if touches { kept.1.max(next.1) } else { kept.1 };
            touches
        });
    }
    all
}

impl Blocks {
    /// Whether a block was handed out of this allocation while it lived.
    fn in_life(&self, call: &Allocation, until: u64) -> bool {
        let (end, from) = (call.address.saturating_add(call.bytes), call.time.saturating_sub(EARLIER_NS));
        let first = self.at.partition_point(|(address, _)| *address < call.address);
        self.at[first..].iter().take_while(|(address, _)| *address < end).any(|(_, time)| (from..=until).contains(time))
    }

    fn overlaps(&self, map: &Allocation) -> bool {
        let after = self.ranges.partition_point(|(_, end)| *end <= map.address);
        self.ranges.get(after).is_some_and(|(start, _)| *start < map.address.saturating_add(map.bytes))
    }
}

/// When each allocation was given back.
fn lives(calls: &[Allocation]) -> HashMap<usize, u64> {
    let (mut live, mut until) = (BTreeMap::new(), HashMap::new());
    for (at, call) in calls.iter().enumerate() {
        match call.operation {
            MemoryOperation::Alloc => drop(live.insert((call.process, call.address), at)),
            MemoryOperation::Free => {
                until.extend(live.remove(&(call.process, call.address)).map(|taken| (taken, call.time)));
            }
            _ => {}
        }
    }
    until
}

/// Where each handle that was created was mapped first.
fn mappings(calls: &[Allocation]) -> HashMap<usize, usize> {
    let (mut created, mut mapped) = (HashMap::new(), HashMap::new());
    for (at, call) in calls.iter().enumerate() {
        match call.operation {
            MemoryOperation::Create => drop(created.insert((call.process, call.handle), at)),
            MemoryOperation::Map => {
                mapped.extend(created.remove(&(call.process, call.handle)).map(|create| (create, at)));
            }
            _ => {}
        }
    }
    mapped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(text: &str) -> Vec<usize> {
        let timeline = Timeline::from_text(&format!("device 0 GPU\n track main\n {text}")).unwrap();
        let mut found: Vec<usize> = framework_calls(&timeline).into_iter().collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn what_blocks_lie_in_is_the_allocators() {
        assert_eq!(own("alloc 1us 20971520 at 1048576\n alloc 2us 4096 at 99999744\n block alloc 3us 4M at 2M"), [0]);
    }

    #[test]
    fn an_address_that_comes_again_is_another_allocation() {
        let text = "alloc 1us 2097152 at 1048576\n block alloc 2us 1M at 1M\n block free 3us 1M at 1M\n free 4us 0 at 1048576\n
            alloc 5ms 2097152 at 1048576";
        assert_eq!(own(text), [0]);
    }

    #[test]
    fn a_block_lies_in_several_handles() {
        let text = "create 1us 2097152 handle 1\n map 2us 2097152 at 4194304 handle 1\n create 3us 2097152 handle 2\n
            map 4us 2097152 at 6291456 handle 2\n create 5us 2097152 handle 3\n map 6us 2097152 at 104857600 handle 3\n
            block alloc 7us 3M at 4M";
        assert_eq!(own(text), [0, 2]);
    }
}
