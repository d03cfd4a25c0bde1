//! A ring in the hands of one thread: where it writes, and how it moves on to a larger one before it would overwrite what is
//! not on disk. The old ring stays for the reader as it is.

use super::space::FIRST_ROOM;
use super::*;
use crate::event::EVENT_WORDS;
use crate::ring::Writer;

pub struct OwnedRing {
    pub writer: Writer<'static, AtomicU64>,
    segment: &'static Segment,
    thread: u32,
    /// None: this thread has no ring, and its next record asks for one.
    place: Option<(u32, &'static RingEntry)>,
}

static NO_HEAD: AtomicU64 = AtomicU64::new(0);
/// A ring of one slot has room for no record.
static NO_SLOTS: [[AtomicU64; EVENT_WORDS]; 1] = [const { [const { AtomicU64::new(0) }; EVENT_WORDS] }];

impl OwnedRing {
    pub(super) fn new(segment: &'static Segment, index: u32, thread: u32) -> Option<OwnedRing> {
        let entry = segment.entry(index)?;
        entry.thread.store(thread, Ordering::Relaxed);
        let slots = segment.slots(entry)?;
        Some(OwnedRing { writer: Writer::new(&entry.head, slots), segment, thread, place: Some((index, entry)) })
    }

    /// Takes the ring and leaves nothing behind: the thread's next record asks for another.
    pub fn take(&mut self) -> OwnedRing {
        let writer = Writer::new(&NO_HEAD, &NO_SLOTS);
        std::mem::replace(self, OwnedRing { writer, segment: self.segment, thread: self.thread, place: None })
    }

    pub fn for_thread(mut self, thread: u32) -> OwnedRing {
        self.thread = thread;
        if let Some((_, entry)) = self.place {
            entry.thread.store(thread, Ordering::Relaxed);
        }
        self
    }

    /// Goes on in another ring; this one is left to other threads.
    pub fn replace(&mut self, other: OwnedRing) {
        let other = other.for_thread(self.thread);
        std::mem::replace(self, other).release();
    }

    /// Publishes one record, in a larger ring if need be. None is left: the oldest is overwritten.
    #[inline(always)]
    pub fn push(&mut self, words: [u64; EVENT_WORDS]) {
        if self.writer.has_room(1) || self.make_room(1) {
            self.writer.push(words);
        }
    }

    /// The same for the records of one event, which stand together.
    pub fn push_all(&mut self, records: &[[u64; EVENT_WORDS]]) {
        let count = records.len() as u64;
        if self.writer.has_room(count) || self.make_room(count) {
            records.iter().for_each(|words| self.writer.push(*words));
        }
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, count: u64) -> bool {
        self.look(count) || self.grow(count) || self.overwrite(count)
    }

    /// Whether so many records fit without overwriting any that is not on disk.
    pub fn look(&mut self, count: u64) -> bool {
        self.place.is_some_and(|(_, entry)| self.writer.look(&entry.durable, count))
    }

    /// Moves on to a larger ring with room for `count` records, or to a first one. False when there is none to be had.
    pub fn grow(&mut self, count: u64) -> bool {
        let (segment, records) = (self.segment, self.records());
        let found = match records {
            0 if count < FIRST_ROOM => segment.space().first(segment),
            _ => segment.space().larger(segment, records, count),
        };
        let Some(other) = found.and_then(|index| OwnedRing::new(segment, index, self.thread)) else { return false };
        self.replace(other);
        self.look(count)
    }

    /// Lets so many records overwrite the oldest. False when the ring holds fewer.
    pub fn overwrite(&mut self, count: u64) -> bool {
        self.segment.press();
        self.place.is_some() && self.writer.overwrite(count)
    }

    /// Records that the ring holds, 0 without one.
    pub fn records(&self) -> u64 {
        self.place.map_or(0, |(_, entry)| entry.records.load(Ordering::Relaxed))
    }

    /// Everything in it is on disk: it can be taken from a thread that does not write.
    pub fn is_durable(&self) -> bool {
        self.place.is_some_and(|(_, entry)| entry.durable.load(Ordering::Acquire) == self.writer.published())
    }

    /// Lets another thread take the ring over; what is in it stays for the reader.
    pub fn release(self) {
        if let Some((index, _)) = self.place {
            self.segment.space().leave(index, self.records());
        }
    }
}
