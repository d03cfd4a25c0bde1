//! The ring: one writer, one reader, oldest records overwritten. The writer never waits for the reader; before it would
//! overwrite a record that is not on disk it looks at the reader's mark once, and may go on in a larger ring instead. The
//! reader finds out by itself what was overwritten before it came, to the record.
//!
//! Generic over the word so that the model checker (tests/ring_model.rs) runs this very code.

use crate::event::EVENT_WORDS;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// A 64-bit cell shared by the two sides.
pub trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn fence(order: Ordering);
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }
    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order)
    }
    #[inline(always)]
    fn fence(order: Ordering) {
        fence(order)
    }
}

/// The writing end. Exactly one exists for a ring at any time.
pub struct Writer<'a, W: Word> {
    head: &'a W,
    slots: &'a [[W; EVENT_WORDS]],
    mask: u64,
    next: u64,
    /// Number of the first record that may overwrite one that is not on disk, as far as the writer has looked.
    limit: u64,
}

impl<'a, W: Word> Writer<'a, W> {
    /// Goes on where the last writer stopped. `slots.len()` is a power of two.
    pub fn new(head: &'a W, slots: &'a [[W; EVENT_WORDS]]) -> Writer<'a, W> {
        debug_assert!(slots.len().is_power_of_two());
        let next = head.load(Ordering::Acquire);
        Writer { head, slots, mask: slots.len() as u64 - 1, next, limit: next }
    }

    /// Whether so many records are known to overwrite nothing that is not on disk. One comparison.
    #[inline(always)]
    pub fn has_room(&self, count: u64) -> bool {
        self.next.wrapping_add(count) <= self.limit
    }

    /// The same after a look at `durable`, the number of the first record that is not on disk.
    pub fn look(&mut self, durable: &W, count: u64) -> bool {
        // What the reader copied happened before it set its mark, so the stores that follow cannot tear it.
        let durable = durable.load(Ordering::Acquire).min(self.next);
        // A ring keeps its last `len - 1` records, see `Reader::drain`.
        self.limit = durable.saturating_add(self.mask);
        self.has_room(count)
    }

    /// From here on so many records may overwrite what they meet. False: the ring holds fewer at a time.
    pub fn overwrite(&mut self, count: u64) -> bool {
        let fits = count <= self.mask;
        if fits {
            // Looks again after a quarter of the ring: the reader may have come.
            self.limit = self.next.saturating_add(count.max(self.mask / 4));
        }
        fits
    }

    /// Publishes one record. Publication is the store of `head`: a writer killed anywhere before it leaves a
    /// slot that no reader takes for a record.
    #[inline(always)]
    pub fn push(&mut self, words: [u64; EVENT_WORDS]) {
        // Orders the last store of `head` before the stores below, so that a reader who sees a new word in
        // this slot also sees a `head` that tells it the old record is gone. Costs nothing on x86.
        W::fence(Ordering::Release);
        let slot = &self.slots[(self.next & self.mask) as usize];
        for (cell, word) in slot.iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
        self.next = self.next.wrapping_add(1);
        self.head.store(self.next, Ordering::Release);
    }

    /// What the next `push` writes to: its slot and the head.
    #[inline(always)]
    pub fn upcoming(&self) -> [*const u8; 2] {
        let slot = &self.slots[(self.next & self.mask) as usize];
        [slot.as_ptr().cast(), std::ptr::from_ref(self.head).cast()]
    }

    pub fn published(&self) -> u64 {
        self.next
    }
}

/// The reading end: any number may look, one drains.
pub struct Reader<'a, W: Word> {
    head: &'a W,
    slots: &'a [[W; EVENT_WORDS]],
    next: u64,
}

impl<'a, W: Word> Reader<'a, W> {
    /// Reads from record number `from` on (0: from the first ever written).
    pub fn new(head: &'a W, slots: &'a [[W; EVENT_WORDS]], from: u64) -> Reader<'a, W> {
        Reader { head, slots, next: from }
    }

    /// Number of the next record to read.
    pub fn position(&self) -> u64 {
        self.next
    }

    /// Appends up to `most` records to `out`, oldest first, and returns how many were overwritten unread.
    /// A ring keeps its last `len - 1` records: the slot of the oldest may be half rewritten already.
    pub fn drain(&mut self, out: &mut Vec<[u64; EVENT_WORDS]>, most: usize) -> u64 {
        let size = self.slots.len() as u64;
        let oldest = |head: u64| head.saturating_sub(size - 1);
        let head = self.head.load(Ordering::Acquire);
        if head <= self.next {
            return 0; // Nothing new, or a damaged head that went backwards.
        }
        let from = self.next.max(oldest(head));
        let to = head.min(from.saturating_add(most as u64));
        let kept = out.len();
        for number in from..to {
            let slot = &self.slots[(number % size) as usize];
            out.push(std::array::from_fn(|i| slot[i].load(Ordering::Relaxed)));
        }
        W::fence(Ordering::Acquire);
        // What the writer has overwritten while we copied is not to be trusted.
        let now_oldest = oldest(self.head.load(Ordering::Relaxed)).clamp(from, to);
        out.drain(kept..kept + (now_oldest - from) as usize);
        let lost = now_oldest - self.next;
        self.next = to;
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(count: usize) -> Vec<[AtomicU64; EVENT_WORDS]> {
        (0..count).map(|_| std::array::from_fn(|_| AtomicU64::new(0))).collect()
    }

    #[test]
    fn what_fits_is_read_back_in_order() {
        let (head, slots) = (AtomicU64::new(0), slots(8));
        let mut writer = Writer::new(&head, &slots);
        (1..=5).for_each(|n| writer.push([n; 4]));
        let (mut reader, mut out) = (Reader::new(&head, &slots, 0), Vec::new());
        assert_eq!(reader.drain(&mut out, 2), 0);
        assert_eq!(reader.drain(&mut out, 100), 0);
        assert_eq!(out, (1..=5).map(|n| [n; 4]).collect::<Vec<_>>());
        assert_eq!(reader.drain(&mut out, 100), 0);
    }

    #[test]
    fn overwritten_records_are_counted_exactly() {
        let (head, slots) = (AtomicU64::new(0), slots(8));
        let mut writer = Writer::new(&head, &slots);
        (0..100).for_each(|n| writer.push([n; 4]));
        let (mut reader, mut out) = (Reader::new(&head, &slots, 3), Vec::new());
        let lost = reader.drain(&mut out, 1000);
        assert_eq!((lost, out.len(), out[0]), (90, 7, [93; 4]));
        assert_eq!(3 + lost + out.len() as u64, 100);
    }

    #[test]
    fn a_damaged_head_never_reads_outside() {
        let slots = slots(8);
        for damage in [u64::MAX, u64::MAX - 1, 1 << 63] {
            let head = AtomicU64::new(damage);
            let mut out = Vec::new();
            Reader::new(&head, &slots, 0).drain(&mut out, usize::MAX);
            assert!(out.len() < 8);
        }
    }
}
