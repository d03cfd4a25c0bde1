//! A block that a framework's allocator handed out or took back, as two records: one of numbers, and its owner.

use crate::codes::{BlockOperation, StackMissing, StackReason};
use crate::device::{Numbers, numbers};
use crate::event::{EVENT_WORDS, Event, Kind, NameId};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    pub time: u64,
    pub thread: u32,
    /// None: memory of the host.
    pub device: Option<u8>,
    pub operation: BlockOperation,
    pub address: u64,
    /// 0, of what was freed: the allocator does not say, it is what was allocated there.
    pub bytes: u64,
    /// What the allocator has handed out and reserved after this. None: it does not say.
    pub totals: Option<Totals>,
    pub stack: BlockStack,
}

/// The stack that a block was allocated from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BlockStack {
    #[default]
    NotAsked,
    /// The number of its innermost frame among the names: see [`crate::stack_frame`].
    Read(StackReason, NameId),
    Missing(StackReason, StackMissing),
}

/// From here on every block has its stack; below, bytes are sampled.
pub const LARGE_BLOCK: u64 = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    pub allocated: u64,
    pub reserved: u64,
}

pub const BLOCK_RECORDS: usize = 2;

/// In `extra` of the owner: the device in the lowest byte.
const ON_DEVICE: u32 = 1 << 8;
const WITH_TOTALS: u32 = 1 << 10;
/// Why its stack was asked for, two bits, and why there is none, three.
const REASON_AT: u32 = 11;
const MISSING_AT: u32 = 13;
const OPERATION_AT: u32 = 16;

impl Block {
    /// Of the host, at no moment and of no thread yet.
    pub const fn new(operation: BlockOperation, address: u64, bytes: u64) -> Block {
        Block { time: 0, thread: 0, device: None, operation, address, bytes, totals: None, stack: BlockStack::NotAsked }
    }

    #[inline]
    pub fn records(&self) -> [[u64; EVENT_WORDS]; BLOCK_RECORDS] {
        let Totals { allocated, reserved } = self.totals.unwrap_or_default();
        let device = self.device.map_or(0, |device| ON_DEVICE | u32::from(device));
        let totals = if self.totals.is_some() { WITH_TOTALS } else { 0 };
        let (reason, missing, name) = match self.stack {
            BlockStack::NotAsked => (0, 0, NameId::NONE),
            BlockStack::Read(reason, name) => (reason as u32, 0, name),
            BlockStack::Missing(reason, missing) => (reason as u32, missing as u32, NameId::NONE),
        };
        let extra = device | totals | reason << REASON_AT | missing << MISSING_AT;
        let extra = extra | (self.operation as u32) << OPERATION_AT;
        let kind = Kind::Block as u16;
        let owner = Event { time: self.time, value: self.address, thread: self.thread, name, kind, flags: 1, extra };
        [numbers([self.bytes, allocated, reserved], 0), owner.to_words()]
    }

    /// The inverse of [`Block::records`]. None when the numbers are missing, or the operation is of a later version.
    pub fn from_records(event: &Event, numbers: &[Numbers]) -> Option<Block> {
        let [([bytes, allocated, reserved], _)] = *numbers else { return None };
        let has = |bit: u32| event.extra & bit != 0;
        let reason = StackReason::from_i32((event.extra >> REASON_AT & 3) as i32);
        let missing = StackMissing::from_i32((event.extra >> MISSING_AT & 7) as i32);
        Some(Block {
            time: event.time,
            thread: event.thread,
            device: has(ON_DEVICE).then_some(event.extra as u8),
            operation: BlockOperation::from_i32((event.extra >> OPERATION_AT) as i32)?,
            address: event.value,
            bytes,
            totals: has(WITH_TOTALS).then_some(Totals { allocated, reserved }),
            stack: match (reason, missing) {
                (None, _) => BlockStack::NotAsked,
                (Some(reason), None) => BlockStack::Read(reason, event.name),
                (Some(reason), Some(missing)) => BlockStack::Missing(reason, missing),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::payload;

    #[test]
    fn a_block_survives_its_records() {
        let host = Block { time: 5, thread: 7, ..Block::new(BlockOperation::Alloc, u64::MAX, 1 << 63) };
        let totals = Some(Totals { allocated: 1 << 40, reserved: u64::MAX });
        let freed = Block { operation: BlockOperation::Free, ..host };
        let failed = Block { operation: BlockOperation::OutOfMemory, device: Some(15), totals, ..host };
        let stack = Block { stack: BlockStack::Read(StackReason::Sampled, NameId(77)), ..host };
        let missing = StackMissing::ALL.last().copied().unwrap();
        let none = Block { stack: BlockStack::Missing(StackReason::Growth, missing), ..failed };
        for block in [host, freed, failed, stack, none] {
            let [first, owner] = block.records();
            let owner = Event::from_words(owner);
            assert_eq!(Block::from_records(&owner, &[payload(first)]), Some(block));
            assert_eq!(Block::from_records(&owner, &[]), None);
            let later = Event { extra: owner.extra | 99 << OPERATION_AT, ..owner };
            assert_eq!(Block::from_records(&later, &[payload(first)]), None);
        }
    }
}
