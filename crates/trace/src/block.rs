//! A block that a framework's allocator handed out or took back, as two records: one of numbers, and its owner.

use crate::codes::BlockOperation;
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
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    pub allocated: u64,
    pub reserved: u64,
}

pub const BLOCK_RECORDS: usize = 2;

/// In `extra` of the owner: the device in the lowest byte.
const ON_DEVICE: u32 = 1 << 8;
const WITH_TOTALS: u32 = 1 << 10;
const OPERATION_AT: u32 = 16;

impl Block {
    /// Of the host, at no moment and of no thread yet.
    pub const fn new(operation: BlockOperation, address: u64, bytes: u64) -> Block {
        Block { time: 0, thread: 0, device: None, operation, address, bytes, totals: None }
    }

    #[inline]
    pub fn records(&self) -> [[u64; EVENT_WORDS]; BLOCK_RECORDS] {
        let Totals { allocated, reserved } = self.totals.unwrap_or_default();
        let device = self.device.map_or(0, |device| ON_DEVICE | u32::from(device));
        let totals = if self.totals.is_some() { WITH_TOTALS } else { 0 };
        let extra = device | totals | (self.operation as u32) << OPERATION_AT;
        let (name, kind) = (NameId::NONE, Kind::Block as u16);
        let owner = Event { time: self.time, value: self.address, thread: self.thread, name, kind, flags: 1, extra };
        [numbers([self.bytes, allocated, reserved], 0), owner.to_words()]
    }

    /// The inverse of [`Block::records`]. None when the numbers are missing, or the operation is of a later version.
    pub fn from_records(event: &Event, numbers: &[Numbers]) -> Option<Block> {
        let [([bytes, allocated, reserved], _)] = *numbers else { return None };
        let has = |bit: u32| event.extra & bit != 0;
        Some(Block {
            time: event.time,
            thread: event.thread,
            device: has(ON_DEVICE).then_some(event.extra as u8),
            operation: BlockOperation::from_i32((event.extra >> OPERATION_AT) as i32)?,
            address: event.value,
            bytes,
            totals: has(WITH_TOTALS).then_some(Totals { allocated, reserved }),
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
        for block in [host, freed, failed] {
            let [first, owner] = block.records();
            let owner = Event::from_words(owner);
            assert_eq!(Block::from_records(&owner, &[payload(first)]), Some(block));
            assert_eq!(Block::from_records(&owner, &[]), None);
            let later = Event { extra: owner.extra | 99 << OPERATION_AT, ..owner };
            assert_eq!(Block::from_records(&later, &[payload(first)]), None);
        }
    }
}
