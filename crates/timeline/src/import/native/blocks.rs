//! Rows of blocks become the events of allocators: one allocator for each process and device. An allocator that does not say how large
//! what it frees was, gave it out before: the size is taken from there.

use super::events::Tracks;
use super::load::Loader;
use super::table::Rows;
use crate::memory::{Allocator, AllocatorIndex, Memory, MemoryEvent, MemoryEventKind, StackBasis};
use crate::{ProcessIndex, StackIndex, TrackIndex};
use std::collections::{BTreeMap, HashMap};
use trace::codes::{BlockOperation, StackMissing, StackReason};
use trace::tables::{HOST, Table};

/// An index is 32 bits wide, and an event takes 100 bytes: 40 GB are more than anybody waits for.
const MOST_EVENTS: usize = 400_000_000;

/// Places of the columns that a row may have none of, among them.
const STACK: usize = 2;
const REASON: usize = 3;
const MISSING: usize = 4;

#[derive(Default)]
pub struct BlockRows {
    events: Vec<MemoryEvent>,
    /// In the order in which they were met, and by process and device, the host first.
    allocators: Vec<(ProcessIndex, Option<u32>)>,
    known: HashMap<(ProcessIndex, Option<u32>), u32>,
}

impl BlockRows {
    pub fn take(&mut self, loader: &mut Loader, rows: &Rows) {
        let (times, addresses, bytes) = (rows.longs("time_ns"), rows.longs("address"), rows.longs("bytes"));
        let (processes, tids) = (rows.ints("process"), rows.ints("thread"));
        let (devices, operations) = (rows.ints("device"), rows.ints("operation"));
        let (allocated, reserved) = (rows.longs("allocated"), rows.longs("reserved"));
        let (stacks, reasons, missing) = (rows.ints("stack"), rows.ints("stack_reason"), rows.ints("stack_missing"));
        let levels =
            ["allocated", "reserved", "stack", "stack_reason", "stack_missing"].map(|column| rows.levels(column));
        let has = |column: usize, row: usize| levels[column].is_empty() || levels[column][row] == 1;
        for row in 0..rows.count {
            if self.events.len() >= MOST_EVENTS {
                return loader.beyond(Table::Blocks, (rows.count - row) as u64);
            }
            let kind = match BlockOperation::from_i32(operations[row]) {
                Some(BlockOperation::Alloc) => MemoryEventKind::Alloc,
                Some(BlockOperation::Free) => MemoryEventKind::FreeCompleted,
                Some(BlockOperation::OutOfMemory) => MemoryEventKind::OutOfMemory,
                None => {
                    loader.seen.warnings.blocks += 1;
                    continue;
                }
            };
            let (Ok(1..), Ok(device)) = (u64::try_from(times[row]), device(devices[row])) else {
                loader.seen.warnings.blocks += 1;
                continue;
            };
            let process = loader.process(processes[row]);
            let allocator = self.allocator(process, device);
            let given = |column: usize, value: i64| has(column, row).then_some(value as u64);
            let stack = if has(STACK, row) { StackIndex(loader.stack(stacks[row])) } else { StackIndex(0) };
            let stack_basis = match has(REASON, row).then(|| StackReason::from_i32(reasons[row])).flatten() {
                // Of what a later version writes: it is no stack that was drawn.
                None => StackBasis::PassedOver,
                Some(reason) if has(MISSING, row) => {
                    let why = StackMissing::from_i32(missing[row]).unwrap_or(StackMissing::Unreadable);
                    StackBasis::Missing(reason, why)
                }
                Some(reason) if stack.0 == 0 => StackBasis::Missing(reason, StackMissing::Unreadable),
                Some(StackReason::Sampled) => StackBasis::Sampled,
                Some(_) => StackBasis::Always,
            };
            self.events.push(MemoryEvent {
                time: loader.time(times[row]),
                allocator,
                kind,
                address: addresses[row] as u64,
                bytes: bytes[row] as u64,
                stream: 0,
                // The thread, until the tracks have their order.
                track: Some(TrackIndex(loader.thread(processes[row], tids[row]))),
                stack,
                stack_basis,
                allocated: given(0, allocated[row]),
                reserved: given(1, reserved[row]),
            });
        }
    }

    fn allocator(&mut self, process: ProcessIndex, device: Option<u32>) -> AllocatorIndex {
        let key = (process, device);
        let next = self.allocators.len() as u32;
        let index = *self.known.entry(key).or_insert(next);
        if index == next {
            self.allocators.push(key);
        }
        AllocatorIndex(index)
    }

    /// `sampled_bytes` of blocks lie between two stacks that were drawn, on average; 0: stacks were not recorded.
    pub fn into_memory(mut self, tracks: &Tracks, sampled_bytes: u64) -> Memory {
        for event in &mut self.events {
            event.track = event.track.map(|TrackIndex(thread)| tracks.of(thread));
        }
        self.events.sort_by_key(|event| event.time);
        let late = self.complete();
        let sampled = self.begin_stacks(sampled_bytes > 0);
        // In their order, whatever was met first.
        let order: BTreeMap<_, _> = self.allocators.iter().zip(0u32..).map(|(key, old)| (*key, old)).collect();
        let mut place = vec![AllocatorIndex(0); self.allocators.len()];
        let mut allocators = Vec::with_capacity(place.len());
        for (((process, device), old), new) in order.into_iter().zip(0..) {
            place[old as usize] = AllocatorIndex(new);
            let backend = if device.is_some() { "torch.cuda" } else { "torch.cpu" };
            allocators.push(Allocator {
                process,
                device,
                backend: backend.into(),
                settings: BTreeMap::new(),
                began_late: late[old as usize],
                sampled_bytes: sampled[old as usize].then_some(sampled_bytes),
            });
        }
        self.events.iter_mut().for_each(|event| event.allocator = place[event.allocator.0 as usize]);
        Memory { allocators, events: self.events, ..Memory::default() }
    }

    /// Which allocators have stacks. What was handed out before the first that was asked for was not passed over by any sampling.
    fn begin_stacks(&mut self, asked: bool) -> Vec<bool> {
        let mut begun = vec![false; self.allocators.len()];
        for event in &mut self.events {
            let begun = &mut begun[event.allocator.0 as usize];
            *begun |= asked && event.stack_basis != StackBasis::PassedOver;
            let is_request = matches!(event.kind, MemoryEventKind::Alloc | MemoryEventKind::OutOfMemory);
            if !*begun || !is_request {
                event.stack_basis = StackBasis::Own;
            }
        }
        begun
    }

    /// Gives what was freed its size, and tells which allocators had handed out blocks before the first event.
    fn complete(&mut self) -> Vec<bool> {
        let mut late = vec![false; self.allocators.len()];
        let mut seen = vec![false; self.allocators.len()];
        let mut alive: HashMap<(AllocatorIndex, u64), u64> = HashMap::new();
        for event in &mut self.events {
            let (allocator, key) = (event.allocator.0 as usize, (event.allocator, event.address));
            // What it has handed out beside this block.
            let before = event.allocated.map(|all| match event.kind {
                MemoryEventKind::Alloc => all.saturating_sub(event.bytes),
                _ => all,
            });
            late[allocator] |= !seen[allocator] && before.is_some_and(|bytes| bytes > 0);
            match event.kind {
                MemoryEventKind::Alloc => {
                    alive.insert(key, event.bytes);
                }
                MemoryEventKind::FreeCompleted => {
                    let known = alive.remove(&key);
                    late[allocator] |= known.is_none();
                    if event.bytes == 0 {
                        event.bytes = known.unwrap_or(0);
                    }
                }
                _ => {}
            }
            seen[allocator] = true;
        }
        late
    }
}

/// None: the host. The error is a number that no device has.
fn device(number: i32) -> Result<Option<u32>, std::num::TryFromIntError> {
    if number == HOST { Ok(None) } else { u32::try_from(number).map(Some) }
}
