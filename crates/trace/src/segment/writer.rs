//! The workload's end of a segment: creates the file, as large as it may be here, and hands rings to threads. Nothing here
//! runs per record.

use super::memory::Memory;
use super::space::Space;
use super::*;
use crate::clock::{self, Source};
use crate::event::EVENT_WORDS;
use crate::names::NameTable;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

/// Why no segment could be made. The workload goes on without.
#[derive(Debug)]
pub struct CreateError {
    pub path: PathBuf,
    pub error: io::Error,
}

impl std::fmt::Display for CreateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no segment at {}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for CreateError {}

pub struct Segment {
    memory: Memory,
    path: PathBuf,
    number: u32,
    /// Only slow paths take this lock, and a forked child makes a segment of its own.
    space: Mutex<Space>,
}

/// What a new segment is made of.
struct Plan<'a> {
    hidden: &'a Path,
    path: &'a Path,
    number: u32,
    who: &'a Identity,
    source: Source,
    asked: usize,
}

impl Segment {
    /// Creates `<pid>-<start>.segment` in `folder` and maps it for ever: threads may write until the very end
    /// of the process, so it is never unmapped. It is smaller than `budget` where that cannot be had.
    ///
    /// A process that replaced its program (exec) keeps its pid and start: the new program's segment gets a number,
    /// so that the old program's records stay for the recorder.
    pub fn create(folder: &Path, budget: usize, who: &Identity) -> Result<&'static Segment, CreateError> {
        Segment::create_with(folder, budget, who, Source::detect())
    }

    /// As [`Segment::create`], with records in this clock.
    pub fn create_with(
        folder: &Path,
        budget: usize,
        who: &Identity,
        source: Source,
    ) -> Result<&'static Segment, CreateError> {
        let mut path = folder.join(format!("{}-{}{SUFFIX}", who.pid, who.start_ticks));
        let mut number = 1;
        while path.exists() {
            number += 1;
            path = folder.join(format!("{}-{}-{number}{SUFFIX}", who.pid, who.start_ticks));
        }
        let hidden = folder.join(format!(".{}-{}.new", who.pid, who.start_ticks));
        let asked = budget.clamp(limits::LEAST, 1 << 36).next_multiple_of(PAGE);
        let plan = Plan { hidden: &hidden, path: &path, number, who, source, asked };
        let (allowed, mut limit) = limits::allowed(folder, asked);
        // Halves, so that processes which are short of the same are so by the same.
        let mut bytes = asked;
        while bytes > allowed {
            bytes = (bytes / 2).max(limits::LEAST);
        }
        loop {
            let error = match Segment::make(&plan, bytes, limit) {
                Ok(segment) => return Ok(segment),
                Err(error) => error,
            };
            match Limit::of(&error).filter(|_| bytes > limits::LEAST) {
                Some(met) => (bytes, limit) = ((bytes / 2).max(limits::LEAST), met),
                None => {
                    let _ = std::fs::remove_file(&hidden);
                    return Err(CreateError { path, error });
                }
            }
        }
    }

    fn make(plan: &Plan<'_>, bytes: usize, limit: Limit) -> io::Result<&'static Segment> {
        let Plan { hidden, path, number, who, source, asked } = *plan;
        let bytes = bytes / PAGE * PAGE;
        let directory = directory_rings(bytes);
        let names_bytes = (bytes / 8).next_multiple_of(PAGE);
        // Only this user may read what the workload does.
        let file = File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(hidden)?;
        file.set_len(bytes as u64)?;
        let memory = Memory::map(&file, bytes)?;
        memory.populate(0, RINGS_AT, hidden)?;
        let space = Mutex::new(Space::new(names_at(directory) + names_bytes, bytes));
        let segment = Segment { memory, path: path.to_owned(), number, space };
        clock::set_source(source);
        let header = segment.header();
        header.version.store(VERSION, Ordering::Relaxed);
        header.record_bytes.store(EVENT_SIZE as u32, Ordering::Relaxed);
        header.pid.store(who.pid, Ordering::Relaxed);
        header.parent.store(who.parent, Ordering::Relaxed);
        header.start_ticks.store(who.start_ticks, Ordering::Relaxed);
        header.clock.store(source as u32, Ordering::Relaxed);
        header.wanted.store(1, Ordering::Relaxed);
        header.directory.store(directory as u32, Ordering::Relaxed);
        header.asked.store(asked as u64, Ordering::Relaxed);
        header.limit.store(limit as u32, Ordering::Relaxed);
        header.names_bytes.store(names_bytes as u64, Ordering::Relaxed);
        header.start.set(Anchor::take(source));
        set_text(&header.program, &who.program);
        set_text(&header.python, &who.python);
        header.set_place(who.place);
        header.magic.store(MAGIC, Ordering::Release);
        std::fs::rename(hidden, path)?;
        Ok(Box::leak(Box::new(segment)))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// 1 for the first segment of a process, 2 for the next.
    pub fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn header(&self) -> &Header {
        // SAFETY: `Header` consists of atomics.
        unsafe { self.memory.at(0) }.expect("a segment is larger than its header")
    }

    /// 1 while a recorder wants records. For the hot path: read it once a record, it costs one load.
    pub fn wanted_cell(&self) -> &AtomicU32 {
        &self.header().wanted
    }

    /// Whether a recorder still wants records.
    #[inline]
    pub fn wanted(&self) -> bool {
        self.wanted_cell().load(Ordering::Relaxed) != 0
    }

    /// Gives the memory back once the recorder has read everything. The mapping stays, for a thread may still hold
    /// a ring; what it writes then goes nowhere.
    pub fn discard(&self) {
        self.memory.discard();
    }

    pub fn status(&self, collector: Collector) -> &CollectorStatus {
        let at = STATUS_AT + collector as usize * size_of::<CollectorStatus>();
        // SAFETY: `CollectorStatus` consists of atomics.
        unsafe { self.memory.at(at) }.expect("the status page is inside the segment")
    }

    /// How large the name table may become.
    pub fn names_bytes(&self) -> usize {
        self.header().names_bytes.load(Ordering::Relaxed) as usize
    }

    /// The name table, made present up to `bytes`. None if there is no room for that.
    pub fn names(&self, bytes: usize) -> Option<NameTable<'_>> {
        let header = self.header();
        let bytes = bytes.min(self.names_bytes());
        let at = names_at(header.directory.load(Ordering::Relaxed) as usize);
        self.memory.populate(at, bytes, &self.path).ok()?;
        // SAFETY: atomics.
        let words = unsafe { self.memory.slice::<AtomicU64>(at, bytes / 8) }?;
        Some(NameTable::new(&header.names_head, words))
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(super) fn space(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn entry(&self, index: u32) -> Option<&RingEntry> {
        // SAFETY: `RingEntry` consists of atomics.
        unsafe { self.memory.at(RINGS_AT + index as usize * size_of::<RingEntry>()) }
    }

    pub(super) fn slots(&self, entry: &RingEntry) -> Option<&[[AtomicU64; EVENT_WORDS]]> {
        let (offset, records) = (entry.offset.load(Ordering::Relaxed), entry.records.load(Ordering::Relaxed));
        // SAFETY: atomics, in a range that was made present.
        unsafe { self.memory.slice(offset as usize, records as usize) }
    }

    /// A small ring for this thread, which grows as it is written. None when nothing is left, or only rings with records that
    /// are not on disk.
    pub fn claim(&'static self, thread: u32) -> Option<OwnedRing> {
        let found = self.space().first(self);
        found.and_then(|index| OwnedRing::new(self, index, thread))
    }

    /// A ring that nobody writes, although what is oldest in it will be overwritten.
    pub fn claim_any(&'static self, thread: u32) -> Option<OwnedRing> {
        self.press();
        let found = self.space().any();
        found.and_then(|index| OwnedRing::new(self, index, thread))
    }

    /// A place for this thread's open calls, until it is given back.
    pub fn claim_calls(&'static self, thread: u32) -> Option<OpenCalls> {
        self.space().calls(self, thread)
    }

    pub fn release_calls(&self, calls: OpenCalls) {
        self.space().leave_calls(calls);
    }

    /// Asks the recorder to write to disk sooner.
    pub(super) fn press(&self) {
        self.header().pressed.store(1, Ordering::Relaxed);
    }
}
