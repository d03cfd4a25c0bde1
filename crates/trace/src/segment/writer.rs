//! The workload's end of a segment: creates the file, hands rings to threads, takes them back when threads end.
//! Nothing here runs per record.

use super::memory::Memory;
use super::*;
use crate::clock::{self, Source};
use crate::event::EVENT_WORDS;
use crate::names::NameTable;
use crate::ring::Writer;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

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
    busy: bool,
    /// Bytes given out so far. Only slow paths take this lock, and a forked child makes a segment of its own.
    used: Mutex<usize>,
}

/// A ring in the hands of one thread.
pub struct OwnedRing {
    pub writer: Writer<'static, AtomicU64>,
    pub open: &'static [[AtomicU64; 2]],
    pub depth: &'static AtomicU64,
    entry: &'static RingEntry,
}

impl OwnedRing {
    /// Lets another thread take the ring over; what is in it stays for the reader.
    pub fn release(self) {
        self.depth.store(0, Ordering::Relaxed);
        self.entry.state.store(FREE, Ordering::Release);
    }
}

impl Segment {
    /// Creates `<pid>-<start>.segment` in `folder` and maps it for ever: threads may write until the very end
    /// of the process, so it is never unmapped. `busy` sizes the rings for millions of records a second.
    ///
    /// A process that replaced its program (exec) keeps its pid and start: the new program's segment gets a number,
    /// so that the old program's records stay for the recorder.
    pub fn create(folder: &Path, budget: usize, who: &Identity, busy: bool) -> Result<&'static Segment, CreateError> {
        Segment::create_with(folder, budget, who, busy, Source::detect())
    }

    /// As [`Segment::create`], with records in this clock.
    pub fn create_with(
        folder: &Path,
        budget: usize,
        who: &Identity,
        busy: bool,
        source: Source,
    ) -> Result<&'static Segment, CreateError> {
        let mut path = folder.join(format!("{}-{}{SUFFIX}", who.pid, who.start_ticks));
        let mut number = 2;
        while path.exists() {
            path = folder.join(format!("{}-{}-{number}{SUFFIX}", who.pid, who.start_ticks));
            number += 1;
        }
        let hidden = folder.join(format!(".{}-{}.new", who.pid, who.start_ticks));
        Segment::make(&hidden, &path, budget, who, busy, source).map_err(|error| {
            let _ = std::fs::remove_file(&hidden);
            CreateError { path, error }
        })
    }

    fn make(
        hidden: &Path,
        path: &Path,
        budget: usize,
        who: &Identity,
        busy: bool,
        source: Source,
    ) -> io::Result<&'static Segment> {
        let bytes = budget.clamp(1 << 20, 1 << 36).next_multiple_of(PAGE);
        let names_bytes = (bytes / 8).next_multiple_of(PAGE);
        // Only this user may read what the workload does.
        let file = File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(hidden)?;
        file.set_len(bytes as u64)?;
        let memory = Memory::map(&file, bytes)?;
        memory.populate(0, NAMES_AT, hidden)?;
        let used = Mutex::new(NAMES_AT + names_bytes);
        let segment = Segment { memory, path: path.to_owned(), busy, used };
        clock::set_source(source);
        let header = segment.header();
        header.version.store(VERSION, Ordering::Relaxed);
        header.record_bytes.store(EVENT_SIZE as u32, Ordering::Relaxed);
        header.pid.store(who.pid, Ordering::Relaxed);
        header.parent.store(who.parent, Ordering::Relaxed);
        header.start_ticks.store(who.start_ticks, Ordering::Relaxed);
        header.clock.store(source as u32, Ordering::Relaxed);
        header.wanted.store(1, Ordering::Relaxed);
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
        self.memory.populate(NAMES_AT, bytes, &self.path).ok()?;
        // SAFETY: atomics.
        let words = unsafe { self.memory.slice::<AtomicU64>(NAMES_AT, bytes / 8) }?;
        Some(NameTable::new(&header.names_head, words))
    }

    fn entries(&self) -> &[RingEntry] {
        // SAFETY: `RingEntry` consists of atomics.
        unsafe { self.memory.slice(RINGS_AT, MOST_RINGS) }.expect("the directory is inside the segment")
    }

    /// A ring for this thread: one that another thread left, else a new one. None when the budget is spent.
    pub fn claim(&'static self, thread: u32) -> Option<OwnedRing> {
        let header = self.header();
        let known = header.rings.load(Ordering::Acquire) as usize;
        for entry in &self.entries()[..known.min(MOST_RINGS)] {
            let taken = entry.state.compare_exchange(FREE, OWNED, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                entry.thread.store(thread, Ordering::Relaxed);
                return self.own(entry);
            }
        }
        let mut used = self.used.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let index = header.rings.load(Ordering::Acquire) as usize;
        let entry = self.entries().get(index)?;
        let mut records = self.ring_records(index, self.memory.bytes() - *used);
        while records >= 256 {
            let bytes = ring_bytes(records)? as usize;
            if *used + bytes <= self.memory.bytes() && self.memory.populate(*used, bytes, &self.path).is_ok() {
                entry.offset.store(*used as u64, Ordering::Relaxed);
                entry.records.store(records, Ordering::Relaxed);
                entry.thread.store(thread, Ordering::Relaxed);
                entry.state.store(OWNED, Ordering::Relaxed);
                header.rings.store(index as u32 + 1, Ordering::Release);
                *used += bytes;
                return self.own(entry);
            }
            records /= 2;
        }
        None
    }

    /// The first ring (the main thread's) is the largest; later ones take a share of what is left, so that
    /// over a hundred threads fit into the default budget.
    fn ring_records(&self, index: usize, left: usize) -> u64 {
        let bytes = match (index, self.busy) {
            (0, true) => left / 4,
            (0, false) => (left / 16).min(4 << 20),
            (_, true) => (left / 16).min(4 << 20),
            (_, false) => (left / 64).min(1 << 20),
        };
        let records = (bytes.max(32 << 10) / EVENT_SIZE) as u64;
        1 << records.ilog2()
    }

    fn own(&'static self, entry: &'static RingEntry) -> Option<OwnedRing> {
        let offset = entry.offset.load(Ordering::Relaxed) as usize;
        let records = entry.records.load(Ordering::Relaxed) as usize;
        // SAFETY: atomics, in a range that was made present.
        let open = unsafe { self.memory.slice(offset, OPEN_CALLS) }?;
        // SAFETY: as above.
        let slots: &[[AtomicU64; EVENT_WORDS]] = unsafe { self.memory.slice(offset + OPEN_BYTES, records) }?;
        entry.depth.store(0, Ordering::Relaxed);
        Some(OwnedRing { writer: Writer::new(&entry.head, slots), open, depth: &entry.depth, entry })
    }
}
