//! What a writing thread has: its ring, its open calls, and how it makes room before it would overwrite a record that is not
//! on disk.

use super::{FORKS, idle};
use crate::session::Session;
use std::sync::atomic::Ordering;
use trace::event::EVENT_WORDS;
use trace::segment::{OpenCalls, OwnedRing};
use trace::status::Collector;

/// A call that is nested deeper than the segment's open calls reach.
#[derive(Clone, Copy)]
pub struct DeepCall {
    pub word: u64,
    pub start: u64,
}

/// What a writing thread has. Only that thread touches it; in the Python extension with the GIL held, except at its very end.
pub struct Writing {
    pub ring: OwnedRing,
    pub calls: OpenCalls,
    pub tid: u32,
    pub(super) session: &'static Session,
    pub deep: Vec<DeepCall>,
    pub(super) generation: u32,
    pub(super) epoch: u32,
    pub(super) forks: u32,
}

impl Writing {
    /// Lets another thread have the ring. A ring that is the parent's of a forked child stays as it is.
    pub(super) fn give_back(self) {
        if self.forks == FORKS.load(Ordering::Relaxed) {
            self.session.segment.release_calls(self.calls);
            self.ring.release();
        }
    }

    #[inline(always)]
    pub fn push(&mut self, words: [u64; EVENT_WORDS]) {
        if self.ring.writer.has_room(1) || self.make_room_for(1, words[3]) {
            self.ring.writer.push(words);
        }
    }

    /// Publishes the records of one event, which stand together in one ring.
    pub fn push_all(&mut self, records: &[[u64; EVENT_WORDS]]) {
        let Some(last) = records.last() else { return };
        let count = records.len() as u64;
        if self.ring.writer.has_room(count) || self.make_room_for(count, last[3]) {
            records.iter().for_each(|words| self.ring.writer.push(*words));
        }
    }

    /// Sees to it that so many records stand together in one ring. False: they found no room, which was counted.
    #[inline(always)]
    pub fn reserve(&mut self, count: usize, collector: Collector) -> bool {
        self.ring.writer.has_room(count as u64) || self.make_room(count as u64, collector)
    }

    /// As [`Self::make_room`], for the collector of a record: `word` is the last of it, with its kind.
    #[cold]
    #[inline(never)]
    fn make_room_for(&mut self, count: u64, word: u64) -> bool {
        self.make_room(count, self.session.library.collector_of(word as u16))
    }

    /// Looks what is on disk by now, then for a larger ring, then for one that its thread does not use; else the oldest
    /// records are overwritten.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, count: u64, collector: Collector) -> bool {
        if self.ring.look(count) || self.ring.grow(count) {
            return true;
        }
        let larger = (self.ring.records() * 2).max(count + 1);
        if let Some(other) = idle::ring(self.session, larger, SOME) {
            self.ring.replace(other);
            if self.ring.look(count) {
                return true;
            }
        }
        if self.ring.records() == 0
            && let Some(other) = self.session.segment.claim_any(self.tid)
        {
            self.ring.replace(other);
        }
        let fits = self.ring.overwrite(count);
        if !fits {
            self.session.status(collector).dropped.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }
}

/// Threads looked at by one that could do with a larger ring, at every quarter of its own.
const SOME: usize = 256;
