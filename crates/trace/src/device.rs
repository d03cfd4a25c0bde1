//! What a device did, as records: the work itself, with one or two `Numbers` records in front of it for what does not fit
//! into 32 bytes. The collector writes them, the recorder reads them, both through this file.

use crate::codes::MemoryOperation;
use crate::event::{EVENT_WORDS, Event, Kind, NameId};

/// A kernel, copy, memset, wait or migration. Which fields mean something depends on the kind; the others are 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    pub start: u64,
    pub dur: u64,
    pub name: NameId,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub correlation: u32,
    pub bytes: u64,
    /// See [`crate::tables::detail`].
    pub detail: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub registers: u16,
    pub shared_static: u32,
    pub shared_dynamic: u32,
    /// 0: not part of a graph.
    pub graph: u32,
    pub node: u64,
}

/// What a call of the CUDA driver did with memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allocation {
    pub time: u64,
    pub name: NameId,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub correlation: u32,
    pub address: u64,
    pub bytes: u64,
    pub operation: MemoryOperation,
    pub pool: bool,
    /// CUPTI's `CUpti_ActivityMemoryKind`.
    pub memory: u8,
    /// Of the virtual memory management; 0: none.
    pub handle: u64,
    /// CUDA's code, of what failed.
    pub error: u32,
}

impl Default for Allocation {
    fn default() -> Allocation {
        Allocation {
            time: 0,
            name: NameId::NONE,
            device: 0,
            context: 0,
            stream: 0,
            correlation: 0,
            address: 0,
            bytes: 0,
            operation: MemoryOperation::Alloc,
            pool: false,
            memory: 0,
            handle: 0,
            error: 0,
        }
    }
}

/// Most records that one piece of work takes.
pub const MOST_RECORDS: usize = 3;

/// The payload of a `Numbers` record: three words and the upper half of the last.
pub type Numbers = ([u64; 3], u32);

pub(crate) fn numbers(words: [u64; 3], more: u32) -> [u64; EVENT_WORDS] {
    [words[0], words[1], words[2], Kind::Numbers as u64 | u64::from(more) << 32]
}

/// The payload of a `Numbers` record.
pub fn payload(words: [u64; EVENT_WORDS]) -> Numbers {
    ([words[0], words[1], words[2]], (words[3] >> 32) as u32)
}

pub(crate) fn pair(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

pub(crate) fn unpair(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

impl Work {
    /// The records in the order in which they are pushed, and how many they are.
    pub fn records(&self, kind: Kind) -> ([[u64; EVENT_WORDS]; MOST_RECORDS], usize) {
        let mut records = [[0; EVENT_WORDS]; MOST_RECORDS];
        let place = pair(self.device, self.context);
        let mut count = 1;
        records[0] = if kind == Kind::Kernel {
            let [x, y, z] = self.grid;
            let block = self.block.map(|side| u64::from(side.min(0xffff)));
            numbers(
                [
                    place,
                    u64::from(x) | u64::from(y.min(0xffff)) << 32 | u64::from(z.min(0xffff)) << 48,
                    block[0] | block[1] << 16 | block[2] << 32 | u64::from(self.registers) << 48,
                ],
                self.shared_dynamic,
            )
        } else {
            numbers([place, self.bytes, 0], self.detail)
        };
        let more = self.graph != 0 || self.shared_static != 0 || (kind == Kind::Kernel && self.detail != 0);
        if more {
            records[1] = numbers([pair(self.graph, self.shared_static), self.node, u64::from(self.detail)], 0);
            count = 2;
        }
        let owner = Event {
            time: self.start,
            value: self.dur,
            thread: self.stream,
            name: self.name,
            kind: kind as u16,
            flags: count as u16,
            extra: self.correlation,
        };
        records[count] = owner.to_words();
        (records, count + 1)
    }

    /// The inverse of [`Work::records`]. None when some of the numbers are missing.
    pub fn from_records(event: &Event, numbers: &[Numbers]) -> Option<Work> {
        let (first, second) = match (event.flags, numbers) {
            (1, [first]) => (first, None),
            (2, [first, second]) => (first, Some(second)),
            _ => return None,
        };
        let (words, more) = *first;
        let (device, context) = unpair(words[0]);
        let mut work = Work {
            start: event.time,
            dur: event.value,
            name: event.name,
            device,
            context,
            stream: event.thread,
            correlation: event.extra,
            ..Work::default()
        };
        if event.kind == Kind::Kernel as u16 {
            let short = |word: u64, at: u32| u32::from((word >> at) as u16);
            work.grid = [words[1] as u32, short(words[1], 32), short(words[1], 48)];
            work.block = [short(words[2], 0), short(words[2], 16), short(words[2], 32)];
            work.registers = (words[2] >> 48) as u16;
            work.shared_dynamic = more;
        } else {
            work.bytes = words[1];
            work.detail = more;
        }
        if let Some((words, _)) = second {
            (work.graph, work.shared_static) = unpair(words[0]);
            work.node = words[1];
            work.detail = words[2] as u32;
        }
        Some(work)
    }
}

/// Where the operation is in the numbers of an allocation, and the bit that libraries before it had.
const OPERATION_AT: u32 = 16;
const FREED: u32 = 1 << 8;

impl Allocation {
    pub fn records(&self) -> ([[u64; EVENT_WORDS]; MOST_RECORDS], usize) {
        let bits = u32::from(self.memory) | u32::from(self.pool) << 9 | (self.operation as u32) << OPERATION_AT;
        let owner = Event {
            time: self.time,
            value: self.bytes,
            thread: self.stream,
            name: self.name,
            kind: Kind::Allocation as u16,
            flags: 1,
            extra: self.correlation,
        };
        // What failed has no handle.
        let last = if self.operation == MemoryOperation::Failed { u64::from(self.error) } else { self.handle };
        let first = numbers([pair(self.device, self.context), self.address, last], bits);
        ([first, owner.to_words(), [0; EVENT_WORDS]], 2)
    }

    pub fn from_records(event: &Event, numbers: &[Numbers]) -> Option<Allocation> {
        let [(words, bits)] = numbers else { return None };
        let (device, context) = unpair(words[0]);
        let operation = match (bits >> OPERATION_AT, bits & FREED != 0) {
            // As libraries before the operations wrote it.
            (0, false) => MemoryOperation::Alloc,
            (0, true) => MemoryOperation::Free,
            (number, _) => i32::try_from(number).ok().and_then(MemoryOperation::from_i32)?,
        };
        let failed = operation == MemoryOperation::Failed;
        Some(Allocation {
            time: event.time,
            name: event.name,
            device,
            context,
            stream: event.thread,
            correlation: event.extra,
            address: words[1],
            bytes: event.value,
            operation,
            pool: bits & 1 << 9 != 0,
            memory: *bits as u8,
            handle: if failed { 0 } else { words[2] },
            error: if failed { words[2] as u32 } else { 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(records: ([[u64; EVENT_WORDS]; MOST_RECORDS], usize)) -> (Event, Vec<Numbers>) {
        let (records, count) = records;
        let numbers = records[..count - 1].iter().map(|words| payload(*words)).collect();
        (Event::from_words(records[count - 1]), numbers)
    }

    fn work() -> Work {
        Work {
            start: 5,
            dur: 7,
            name: NameId(3),
            device: 1,
            context: 2,
            stream: 13,
            correlation: 99,
            ..Work::default()
        }
    }

    #[test]
    fn work_survives_its_records() {
        let plain = Work { grid: [70_000, 2, 3], block: [1024, 1, 1], registers: 255, shared_dynamic: 1, ..work() };
        let rich = Work { graph: 4, node: u64::MAX, shared_static: 48 << 10, detail: 1, ..plain };
        for (kind, work, count) in [
            (Kind::Kernel, plain, 2),
            (Kind::Kernel, rich, 3),
            (Kind::Memcpy, Work { bytes: 1 << 40, detail: u32::MAX, ..work() }, 2),
            (Kind::Memset, Work { bytes: 8, detail: 3, graph: 9, node: 1, ..work() }, 3),
        ] {
            let records = work.records(kind);
            assert_eq!(records.1, count);
            let (event, numbers) = back(records);
            assert_eq!(Work::from_records(&event, &numbers), Some(work));
            assert_eq!(Work::from_records(&event, &numbers[1..]), None, "half of the numbers are no numbers");
        }
    }

    #[test]
    fn an_allocation_survives_its_records() {
        let taken =
            Allocation { time: 1, address: u64::MAX, bytes: 2 << 40, device: 3, memory: 3, ..Default::default() };
        let failed = Allocation { operation: MemoryOperation::Failed, error: 2, address: 0, ..taken };
        let mut all = vec![taken, Allocation { pool: true, ..taken }, failed];
        let others = MemoryOperation::ALL.iter().filter(|operation| **operation != MemoryOperation::Failed);
        all.extend(others.map(|operation| Allocation { operation: *operation, handle: u64::MAX, ..taken }));
        for allocation in all {
            let (event, numbers) = back(allocation.records());
            assert_eq!(Allocation::from_records(&event, &numbers), Some(allocation));
        }
        // As a library of before the operations left it in its segment; and one that is yet to come.
        let (event, numbers) = back(taken.records());
        let with = |bits: u32| Allocation::from_records(&event, &[(numbers[0].0, bits)]).map(|one| one.operation);
        assert_eq!(with(3 | FREED), Some(MemoryOperation::Free));
        assert_eq!((with(3), with(99 << OPERATION_AT)), (Some(MemoryOperation::Alloc), None));
    }
}
