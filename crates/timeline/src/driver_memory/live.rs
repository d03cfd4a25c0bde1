//! The books: what is allocated at which address, which handles there are, and what they are mapped to. One call after the other.

use super::{DriverLife, DriverMemory, FailedAllocation, LiveBytes, MemoryPlace, PlaceMemory, TakenAs, Unmatched};
use crate::ProcessIndex;
use crate::gpu::{Allocation, MemoryOperation, detail};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Managed memory in `allocations.memory`, CUPTI's number.
const MANAGED: u8 = 5;
/// Two threads may have given back and taken an address in this time, with their calls in the other order; and most calls of others
/// that are looked at meanwhile.
const REORDERED_NS: u64 = 1_000;
const REORDERED_CALLS: usize = 64;

type Key = (ProcessIndex, u64);

struct Allocated {
    place: MemoryPlace,
    sort: TakenAs,
    bytes: u64,
    /// The call that took it, by its place in the list, and when.
    call: usize,
    start: u64,
}

/// Physical memory that handles refer to.
struct Physical {
    process: ProcessIndex,
    of: Allocated,
    over: bool,
    /// Handles that are not released, and ranges that it is mapped to.
    references: u64,
    mappings: u64,
}

struct Handle {
    physical: usize,
    references: u64,
}

struct Mapping {
    end: u64,
    physical: usize,
}

#[derive(Default)]
pub(super) struct Live<'a> {
    /// Calls of a framework's allocator, by their places in the list.
    framework: Option<&'a HashSet<usize>>,
    places: BTreeMap<(ProcessIndex, MemoryPlace), Sums>,
    unmatched: Unmatched,
    allocated: HashMap<Key, Allocated>,
    physical: Vec<Physical>,
    handles: HashMap<Key, Handle>,
    /// By where they begin.
    mappings: BTreeMap<Key, Mapping>,
    /// Calls that were taken before their turn.
    taken: HashSet<usize>,
    /// What was given back.
    lives: Vec<DriverLife>,
}

/// A place while calls are taken in. The sums are exact, by the sort of memory.
#[derive(Default)]
struct Sums {
    points: Vec<LiveBytes>,
    failed: Vec<FailedAllocation>,
    bytes: [u128; 4],
}

impl<'a> Live<'a> {
    pub fn new(framework: Option<&'a HashSet<usize>>) -> Live<'a> {
        Live { framework, ..Live::default() }
    }

    /// Takes the call at this place of the list.
    pub fn take(&mut self, all: &[Allocation], at: usize) {
        use MemoryOperation as Op;
        if self.taken.remove(&at) {
            return;
        }
        let call = &all[at];
        match call.operation {
            Op::Alloc => {
                self.before(all, at, Op::Free);
                self.alloc(call, if call.pool { TakenAs::Pooled } else { TakenAs::Direct }, at);
            }
            Op::Free => self.free(call),
            Op::Failed => {
                let failed = FailedAllocation { time: call.time, bytes: call.bytes, error: call.error };
                self.places.entry((call.process, place_of(call))).or_default().failed.push(failed);
            }
            Op::Create => self.create(call, self.sort(TakenAs::Direct, at), at),
            Op::Import => self.create(call, TakenAs::Imported, at),
            Op::Release => self.release(call),
            Op::Map => {
                self.before(all, at, Op::Unmap);
                self.map(call, at);
            }
            Op::Unmap => self.unmap(call),
            Op::Retain => self.retain(call),
            // Addresses take no memory. Exported memory lives as before, and of what is opened no size is known.
            Op::Export | Op::Reserve | Op::Unreserve | Op::OpenShared | Op::CloseShared => {}
        }
    }

    /// An address that comes again before it was given back: the call that gives it back may be the next but one.
    fn before(&mut self, all: &[Allocation], at: usize, operation: MemoryOperation) {
        let call = &all[at];
        let key = (call.process, call.address);
        let occupied = match operation {
            MemoryOperation::Free => self.allocated.contains_key(&key),
            _ => self.mappings.contains_key(&key),
        };
        if !occupied {
            return;
        }
        let soon = all.iter().enumerate().skip(at + 1).take(REORDERED_CALLS);
        let mut soon = soon.take_while(|(_, later)| later.time.saturating_sub(call.time) <= REORDERED_NS);
        let same = |later: &Allocation| later.operation == operation && (later.process, later.address) == key;
        if let Some((found, later)) = soon.find(|(number, later)| same(later) && !self.taken.contains(number)) {
            self.taken.insert(found);
            // At this moment: time goes forward.
            let now = Allocation { time: call.time, ..*later };
            if operation == MemoryOperation::Free { self.free(&now) } else { self.unmap(&now) }
        }
    }

    /// What a framework's allocator took counts as its own, however it asked.
    fn sort(&self, sort: TakenAs, at: usize) -> TakenAs {
        if self.framework.is_some_and(|framework| framework.contains(&at)) { TakenAs::Framework } else { sort }
    }

    fn alloc(&mut self, call: &Allocation, sort: TakenAs, at: usize) {
        let sort = self.sort(sort, at);
        let new = Allocated { place: place_of(call), sort, bytes: call.bytes, call: at, start: call.time };
        self.count(call.process, &new, call.time, true);
        if let Some(old) = self.allocated.insert((call.process, call.address), new) {
            self.unmatched.replaced += 1;
            self.count(call.process, &old, call.time, false);
            self.lives.push(old.life(call.process, Some(call.time)));
        }
    }

    fn free(&mut self, call: &Allocation) {
        match self.allocated.remove(&(call.process, call.address)) {
            Some(old) => {
                self.count(call.process, &old, call.time, false);
                self.lives.push(old.life(call.process, Some(call.time)));
            }
            None => self.unmatched.frees += 1,
        }
    }

    fn create(&mut self, call: &Allocation, sort: TakenAs, at: usize) {
        let physical = self.new_physical(call, sort, at);
        self.count_physical(physical, call.time, true);
        self.add_handle(call, physical);
    }

    fn new_physical(&mut self, call: &Allocation, sort: TakenAs, at: usize) -> usize {
        let of = Allocated { place: place_of(call), sort, bytes: call.bytes, call: at, start: call.time };
        self.physical.push(Physical { process: call.process, of, over: false, references: 0, mappings: 0 });
        self.physical.len() - 1
    }

    /// A handle of this memory, new or once more.
    fn add_handle(&mut self, call: &Allocation, physical: usize) {
        self.physical[physical].references += 1;
        let key = (call.process, call.handle);
        if let Some(known) = self.handles.get_mut(&key).filter(|known| known.physical == physical) {
            known.references += 1;
        } else if let Some(old) = self.handles.insert(key, Handle { physical, references: 1 }) {
            self.unmatched.replaced += 1;
            let memory = &mut self.physical[old.physical];
            memory.references = memory.references.saturating_sub(old.references);
            self.settle(old.physical, call.time);
        }
    }

    fn release(&mut self, call: &Allocation) {
        let key = (call.process, call.handle);
        let Some(handle) = self.handles.get_mut(&key) else {
            self.unmatched.releases += 1;
            return;
        };
        let physical = handle.physical;
        handle.references -= 1;
        if handle.references == 0 {
            self.handles.remove(&key);
        }
        let memory = &mut self.physical[physical];
        memory.references = memory.references.saturating_sub(1);
        self.settle(physical, call.time);
    }

    fn retain(&mut self, call: &Allocation) {
        let known = self.handles.get(&(call.process, call.handle)).map(|handle| handle.physical);
        let mapped = || {
            let (key, mapping) = self.mappings.range(..=(call.process, call.address)).next_back()?;
            (key.0 == call.process && mapping.end > call.address).then_some(mapping.physical)
        };
        match known.or_else(mapped) {
            Some(physical) => self.add_handle(call, physical),
            None => self.unmatched.retains += 1,
        }
    }

    fn map(&mut self, call: &Allocation, at: usize) {
        let physical = match self.handles.get(&(call.process, call.handle)) {
            Some(handle) => handle.physical,
            None => {
                self.unmatched.maps += 1;
                let physical = self.new_physical(call, TakenAs::Direct, at);
                self.count_physical(physical, call.time, true);
                physical
            }
        };
        let memory = &mut self.physical[physical];
        memory.mappings += 1;
        // How large it is an import does not say.
        if memory.of.sort == TakenAs::Imported && memory.of.bytes < call.bytes {
            self.count_physical(physical, call.time, false);
            self.physical[physical].of.bytes = call.bytes;
            self.count_physical(physical, call.time, true);
        }
        let mapping = Mapping { end: call.address.saturating_add(call.bytes), physical };
        if let Some(old) = self.mappings.insert((call.process, call.address), mapping) {
            self.unmatched.replaced += 1;
            self.unmapped(old.physical, call.time);
        }
    }

    fn unmap(&mut self, call: &Allocation) {
        let end = call.address.saturating_add(call.bytes);
        let inside = self.mappings.range((call.process, call.address)..(call.process, end.max(call.address)));
        let found: Vec<(Key, bool)> = inside.map(|(key, mapping)| (*key, mapping.end > end)).collect();
        self.unmatched.unmaps += u64::from(found.is_empty());
        for (key, partial) in found {
            self.unmatched.partial_unmaps += u64::from(partial);
            if let Some(mapping) = self.mappings.remove(&key) {
                self.unmapped(mapping.physical, call.time);
            }
        }
    }

    fn unmapped(&mut self, physical: usize, time: u64) {
        let memory = &mut self.physical[physical];
        memory.mappings = memory.mappings.saturating_sub(1);
        self.settle(physical, time);
    }

    /// Memory that nobody can reach any more is the driver's again.
    fn settle(&mut self, physical: usize, time: u64) {
        let memory = &mut self.physical[physical];
        if memory.references == 0 && memory.mappings == 0 && !std::mem::replace(&mut memory.over, true) {
            self.lives.push(memory.of.life(memory.process, Some(time)));
            self.count_physical(physical, time, false);
        }
    }

    fn count_physical(&mut self, physical: usize, time: u64, more: bool) {
        let Physical { process, of: Allocated { place, sort, bytes, call, start }, .. } = self.physical[physical];
        self.count(process, &Allocated { place, sort, bytes, call, start }, time, more);
    }

    fn count(&mut self, process: ProcessIndex, memory: &Allocated, time: u64, more: bool) {
        let sums = self.places.entry((process, memory.place)).or_default();
        let sum = &mut sums.bytes[memory.sort as usize];
        let bytes = u128::from(memory.bytes);
        *sum = if more { sum.saturating_add(bytes) } else { sum.saturating_sub(bytes) };
        let [direct, pooled, imported, framework] = sums.bytes.map(|sum| u64::try_from(sum).unwrap_or(u64::MAX));
        let point = LiveBytes { time, direct, pooled, imported, framework };
        match sums.points.last_mut().filter(|last| last.time == time) {
            Some(last) => *last = point,
            None => sums.points.push(point),
        }
    }

    pub fn finish(mut self) -> DriverMemory {
        let mut lives = std::mem::take(&mut self.lives);
        lives.extend(self.allocated.iter().map(|((process, _), of)| of.life(*process, None)));
        lives.extend(
            self.physical.iter().filter(|memory| !memory.over).map(|memory| memory.of.life(memory.process, None)),
        );
        lives.sort_unstable_by_key(|life| life.call);
        let places = self.places.into_iter().map(|((process, place), Sums { points, failed, .. })| PlaceMemory {
            process,
            place,
            points,
            failed,
        });
        DriverMemory { places: places.collect(), lives, unmatched: self.unmatched }
    }
}

impl Allocated {
    fn life(&self, process: ProcessIndex, end: Option<u64>) -> DriverLife {
        let Allocated { place, sort: taken_as, bytes, call, start } = *self;
        DriverLife { call, process, place, taken_as, bytes, start, end }
    }
}

fn place_of(call: &Allocation) -> MemoryPlace {
    match call.memory {
        detail::PINNED => MemoryPlace::Pinned,
        MANAGED => MemoryPlace::Managed,
        _ => MemoryPlace::Device(call.device),
    }
}
