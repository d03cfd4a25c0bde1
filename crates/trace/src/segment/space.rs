//! What of a segment is given out: bytes from the front to the back, and the rings and blocks that threads have left. Behind
//! the segment's lock; nothing here runs per record.

use super::memory::Memory;
use super::*;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::path::Path;

/// Records of a thread's first ring: most threads of a pool write little, and there may be thousands.
const FIRST: u64 = 64;
/// Records that must fit into a ring that is taken over; a new one is better than one that is soon full.
pub(super) const FIRST_ROOM: u64 = FIRST / 2;
/// Rings up to this size are taken over by new threads before there are new ones; larger ones are better left to those who grow.
const SMALL: u64 = 4096;
/// A ring grows fourfold up to here (a megabyte), then twofold.
const LARGE: u64 = 1 << 15;
/// Bytes made present at a time: few system calls, and little that is not used.
const CHUNK: usize = 64 << 10;
/// By the logarithm of their records.
const SIZES: usize = 32;

pub(super) struct Space {
    used: usize,
    present: usize,
    end: usize,
    /// Rings grow up to here; the rest is for the first rings of threads to come.
    growth_end: usize,
    rings: usize,
    /// Rings that nobody writes, by size; the one that was left last at the back.
    left: [VecDeque<u32>; SIZES],
    left_calls: Vec<u64>,
}

/// How many more records a ring takes before it overwrites one that is not on disk.
fn room(entry: &RingEntry) -> u64 {
    let records = entry.records.load(Ordering::Relaxed);
    let waiting = entry.head.load(Ordering::Relaxed).saturating_sub(entry.durable.load(Ordering::Acquire));
    records.saturating_sub(1).saturating_sub(waiting)
}

fn size_of_ring(records: u64) -> usize {
    (records.max(1).ilog2() as usize).min(SIZES - 1)
}

impl Space {
    pub fn new(used: usize, end: usize) -> Space {
        let growth_end = end - (end - used) / 4;
        let left = std::array::from_fn(|_| VecDeque::new());
        Space { used, present: used, end, growth_end, rings: 0, left, left_calls: Vec::new() }
    }

    /// A ring for a thread's first records: one that was left and has room, else a new one.
    pub fn first(&mut self, segment: &Segment) -> Option<u32> {
        let has_room = |entry: &RingEntry| room(entry) >= FIRST_ROOM;
        let small = size_of_ring(FIRST)..=size_of_ring(SMALL);
        self.take_over(segment, small, has_room)
            .or_else(|| self.fresh(segment, FIRST, self.end))
            .or_else(|| self.take_over(segment, size_of_ring(SMALL)..=SIZES - 1, has_room))
    }

    /// Any ring that nobody writes: what is oldest in it will be overwritten.
    pub fn any(&mut self) -> Option<u32> {
        self.left.iter_mut().find_map(VecDeque::pop_front)
    }

    /// A ring for a thread whose ring of `records` is full, with room for `count` at a time.
    pub fn larger(&mut self, segment: &Segment, records: u64, count: u64) -> Option<u32> {
        let most = (self.end / 4 / EVENT_SIZE) as u64;
        let needed = (count + 1).next_power_of_two().max(FIRST);
        let (least, factor) = ((records * 2).max(needed), if records < LARGE { 4 } else { 2 });
        let best = (records * factor).max(needed);
        for wanted in [best, least] {
            let mostly_free = |entry: &RingEntry| room(entry) >= (wanted / 4 * 3).max(count);
            let sizes = size_of_ring(wanted)..=size_of_ring(wanted * 2);
            let found = self.take_over(segment, sizes, mostly_free);
            let found =
                found.or_else(|| if wanted <= most { self.fresh(segment, wanted, self.growth_end) } else { None });
            if found.is_some() {
                return found;
            }
        }
        // What does not fit into the ring at all may have of the rest.
        if needed > records { self.fresh(segment, needed, self.end) } else { None }
    }

    pub fn leave(&mut self, ring: u32, records: u64) {
        self.left[size_of_ring(records)].push_back(ring);
    }

    /// Of each size the last and the first that were left: the last may have room, the first is likely on disk.
    fn take_over(
        &mut self,
        segment: &Segment,
        sizes: RangeInclusive<usize>,
        suits: impl Fn(&RingEntry) -> bool,
    ) -> Option<u32> {
        let suits = |ring: &&u32| segment.entry(**ring).is_some_and(&suits);
        self.left[sizes].iter_mut().find_map(|left| {
            if left.back().filter(suits).is_some() {
                return left.pop_back();
            }
            left.front().filter(suits).is_some().then(|| left.pop_front()).flatten()
        })
    }

    fn fresh(&mut self, segment: &Segment, records: u64, end: usize) -> Option<u32> {
        let (index, header) = (self.rings, segment.header());
        if index >= header.directory.load(Ordering::Relaxed) as usize {
            return None;
        }
        let line = RINGS_AT + index * size_of::<RingEntry>();
        if line.is_multiple_of(PAGE) {
            segment.memory().populate(line, PAGE, segment.path()).ok()?;
        }
        let at = self.bytes(segment.memory(), records as usize * EVENT_SIZE, end, segment.path())?;
        let entry = segment.entry(index as u32)?;
        entry.offset.store(at as u64, Ordering::Relaxed);
        entry.records.store(records, Ordering::Relaxed);
        header.rings.store(index as u32 + 1, Ordering::Release);
        self.rings += 1;
        Some(index as u32)
    }

    /// Bytes that are present and zero.
    fn bytes(&mut self, memory: &Memory, count: usize, end: usize, path: &Path) -> Option<usize> {
        let (at, next) = (self.used, self.used.checked_add(count)?);
        if next > end {
            return None;
        }
        for present in [(next + CHUNK).min(self.end), next.next_multiple_of(PAGE).min(self.end)] {
            if next > self.present && memory.populate(self.present, present - self.present, path).is_ok() {
                self.present = present;
            }
        }
        (next <= self.present).then(|| self.used = next).map(|()| at)
    }

    pub fn calls(&mut self, segment: &'static Segment, thread: u32) -> Option<OpenCalls> {
        if let Some(at) = self.left_calls.pop() {
            return calls::again(segment.memory(), at, thread);
        }
        let cells = calls::cells(self.end - self.used, self.end);
        let at = self.bytes(segment.memory(), calls::block_bytes(cells), self.end, segment.path())?;
        calls::create(segment.memory(), at, cells, thread, &segment.header().calls)
    }

    pub fn leave_calls(&mut self, calls: OpenCalls) {
        calls.depth.store(0, Ordering::Release);
        if calls.at != 0 {
            self.left_calls.push(calls.at);
        }
    }
}
