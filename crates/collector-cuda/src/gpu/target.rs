//! Where the decoder's records go in a recorded process: the ring of the decoder's thread, the segment's names and status page.

use super::clock::Clock;
use super::decode::{Target, Trouble};
use crate::thread::Writing;
use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering;
use trace::NameId;
use trace::event::EVENT_WORDS;
use trace::status::Collector;
use workload::session::Session;

pub struct Ring<'a> {
    pub session: &'static Session,
    pub writing: &'a mut Writing,
    pub clock: &'a Clock,
    /// What was before is of an earlier recording of this process.
    pub since: u64,
    /// Such records, counted.
    pub early: u64,
}

impl Target for Ring<'_> {
    #[inline]
    fn push(&mut self, words: [u64; EVENT_WORDS]) {
        self.writing.push(words);
    }

    #[inline]
    fn push_all(&mut self, records: &[[u64; EVENT_WORDS]]) {
        self.writing.push_all(records);
    }

    fn thread(&self) -> u32 {
        self.writing.tid
    }

    fn intern(&self, text: &str) -> NameId {
        self.session.intern(text)
    }

    fn intern_message(&self, text: &str) -> NameId {
        self.session.intern_message(text)
    }

    #[inline]
    unsafe fn text(&self, address: usize) -> Option<&CStr> {
        // SAFETY: by the caller's promise; CUPTI's strings end with a zero.
        (address != 0).then(|| unsafe { CStr::from_ptr(address as *const c_char) })
    }

    #[inline]
    fn time(&self, theirs: u64) -> Result<u64, Trouble> {
        let ours = self.clock.ours(theirs).ok_or(Trouble::NoTimes)?;
        if ours < self.since { Err(Trouble::Early) } else { Ok(ours) }
    }

    #[cold]
    fn count(&mut self, trouble: Trouble) {
        let status = self.session.status(Collector::Gpu);
        let counter = match trouble {
            Trouble::Unknown => &status.overflow,
            Trouble::NoTimes => &status.unpaired,
            Trouble::Cut => &status.errors,
            Trouble::Early => return self.early += 1,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
