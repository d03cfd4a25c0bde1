//! What a writing thread has: its ring, its open calls, and how it makes room before it would overwrite a record that is not
//! on disk.

use super::{FORKS, idle};
use crate::session::Session;
use std::sync::atomic::Ordering;
use trace::Kind;
use trace::event::EVENT_WORDS;
use trace::segment::{OpenCalls, OwnedRing};
use trace::status::Collector;

/// A call that is nested deeper than the segment's open calls reach.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "python"), allow(dead_code))] // Only Python's calls nest that deep.
pub struct DeepCall {
    pub word: u64,
    pub start: u64,
}

/// What a writing thread has. Only that thread touches it, and with the GIL held except at its very end.
pub struct Writing {
    pub ring: OwnedRing,
    #[cfg_attr(not(feature = "python"), allow(dead_code))]
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
        if self.ring.writer.has_room(1) || self.make_room(1, collector_of(words)) {
            self.ring.writer.push(words);
        }
    }

    /// Publishes the records of one event, which stand together in one ring.
    #[cfg(not(feature = "python"))]
    pub fn push_all(&mut self, records: &[[u64; EVENT_WORDS]]) {
        let Some(last) = records.last() else { return };
        if self.reserve(records.len(), collector_of(*last)) {
            records.iter().for_each(|words| self.ring.writer.push(*words));
        }
    }

    /// Sees to it that so many records stand together in one ring. False: they found no room, which was counted.
    #[inline(always)]
    pub fn reserve(&mut self, count: usize, collector: Collector) -> bool {
        self.ring.writer.has_room(count as u64) || self.make_room(count as u64, collector)
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

/// Who is to count a record that found no room.
#[inline(always)]
fn collector_of(words: [u64; EVENT_WORDS]) -> Collector {
    match Kind::from_u16(words[3] as u16) {
        Some(Kind::Call | Kind::CCall) => Collector::Calls,
        Some(Kind::Gc) => Collector::Gc,
        Some(Kind::ApiCall) => Collector::Launches,
        Some(Kind::Nvtx) => Collector::Nvtx,
        Some(Kind::LayerBegin | Kind::LayerEnd) => Collector::Layers,
        _ if cfg!(feature = "python") => Collector::Scopes,
        _ => Collector::Gpu,
    }
}
