//! The recorder's end of a segment. Everything read here may be damaged: offsets and sizes are checked
//! against the memory that is really there before anything is reached through them.

use super::memory::Memory;
use super::*;
use crate::clock::Source;
use crate::event::EVENT_WORDS;
use crate::names::NameTable;
use std::fs::File;
use std::io;
use std::path::Path;

#[derive(Debug)]
pub enum ReadError {
    Io(io::Error),
    NotASegment,
    NewerVersion(u32),
    Damaged(&'static str),
}

impl std::fmt::Display for ReadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "cannot be read: {error}"),
            ReadError::NotASegment => write!(f, "is not an InferScope segment"),
            ReadError::NewerVersion(version) => {
                write!(f, "is of version {version}, newer than this inferscope reads ({VERSION}): upgrade inferscope")
            }
            ReadError::Damaged(what) => write!(f, "is damaged: {what}"),
        }
    }
}

impl std::error::Error for ReadError {}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> ReadError {
        ReadError::Io(error)
    }
}

pub struct SegmentReader {
    memory: Memory,
}

/// One ring as the reader sees it.
#[derive(Clone, Copy)]
pub struct RingView<'a> {
    pub thread: u32,
    pub head: &'a AtomicU64,
    pub slots: &'a [[AtomicU64; EVENT_WORDS]],
    entry: &'a RingEntry,
}

impl RingView<'_> {
    pub fn durable(&self) -> u64 {
        self.entry.durable.load(Ordering::Acquire)
    }

    /// Says that every record before `next` is on disk.
    pub fn set_durable(&self, next: u64) {
        self.entry.durable.store(next, Ordering::Release);
    }
}

impl SegmentReader {
    /// Maps the segment of a living process.
    pub fn open(path: &Path) -> Result<SegmentReader, ReadError> {
        let file = File::options().read(true).write(true).open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).map_err(|_| ReadError::Damaged("absurd size"))?;
        if bytes < RINGS_AT {
            return Err(ReadError::NotASegment);
        }
        SegmentReader::check(Memory::map(&file, bytes)?)
    }

    /// Copies a segment whose writer is dead.
    pub fn load(bytes: &[u8]) -> Result<SegmentReader, ReadError> {
        if bytes.len() < RINGS_AT {
            return Err(ReadError::NotASegment);
        }
        SegmentReader::check(Memory::copy(bytes)?)
    }

    fn check(memory: Memory) -> Result<SegmentReader, ReadError> {
        let reader = SegmentReader { memory };
        let header = reader.header();
        if header.magic.load(Ordering::Acquire) != MAGIC {
            return Err(ReadError::NotASegment);
        }
        let version = header.version.load(Ordering::Relaxed);
        if version > VERSION {
            return Err(ReadError::NewerVersion(version));
        }
        if header.record_bytes.load(Ordering::Relaxed) as usize != EVENT_SIZE {
            return Err(ReadError::Damaged("records are not 32 bytes"));
        }
        if Source::from_u32(header.clock.load(Ordering::Relaxed)).is_none() {
            return Err(ReadError::Damaged("unknown clock"));
        }
        if reader.names_at() > reader.memory.bytes() {
            return Err(ReadError::Damaged("smaller than its directory"));
        }
        Ok(reader)
    }

    fn header(&self) -> &Header {
        // SAFETY: `Header` consists of atomics.
        unsafe { self.memory.at(0) }.expect("checked when opened: larger than the header")
    }

    pub fn identity(&self) -> Identity {
        let header = self.header();
        Identity {
            pid: header.pid.load(Ordering::Relaxed),
            parent: header.parent.load(Ordering::Relaxed),
            start_ticks: header.start_ticks.load(Ordering::Relaxed),
            program: get_text(&header.program),
            python: get_text(&header.python),
            place: header.get_place(),
        }
    }

    pub fn source(&self) -> Source {
        Source::from_u32(self.header().clock.load(Ordering::Relaxed)).unwrap_or(Source::Monotonic)
    }

    pub fn start_anchor(&self) -> Option<Anchor> {
        self.header().start.get()
    }

    pub fn latest_anchor(&self) -> Option<Anchor> {
        self.header().latest.get()
    }

    pub fn set_latest_anchor(&self, anchor: Anchor) {
        self.header().latest.set(anchor);
    }

    /// Becomes the recorder of this segment, or says who is. A recorder that died (`alive` says no) is replaced.
    pub fn claim(&self, recorder: u32, alive: impl Fn(u32) -> bool) -> Result<(), u32> {
        let cell = &self.header().recorder;
        let holder = cell.load(Ordering::Acquire);
        if holder != 0 && holder != recorder && alive(holder) {
            return Err(holder);
        }
        cell.compare_exchange(holder, recorder, Ordering::AcqRel, Ordering::Acquire).map(|_| ())
    }

    /// Tells the collectors whether to go on.
    pub fn set_wanted(&self, wanted: bool) {
        self.header().wanted.store(u32::from(wanted), Ordering::Relaxed);
    }

    /// Takes the segment's pages out of this process's memory; they come back when they are read. A recorder of many
    /// processes would otherwise seem to own all their rings.
    pub fn forget_pages(&self) {
        self.memory.forget_pages();
    }

    pub fn status(&self, collector: Collector) -> &CollectorStatus {
        let at = STATUS_AT + collector as usize * size_of::<CollectorStatus>();
        // SAFETY: `CollectorStatus` consists of atomics.
        unsafe { self.memory.at(at) }.expect("checked when opened: larger than the status page")
    }

    pub fn names(&self) -> NameTable<'_> {
        let header = self.header();
        let (at, bytes) = (self.names_at(), header.names_bytes.load(Ordering::Relaxed) as usize);
        let words = bytes.min(self.memory.bytes().saturating_sub(at)) / 8;
        // SAFETY: atomics.
        let words = unsafe { self.memory.slice(at, words) }.unwrap_or(&[]);
        NameTable::new(&header.names_head, words)
    }

    fn version(&self) -> u32 {
        self.header().version.load(Ordering::Relaxed)
    }

    /// Rings that the directory has room for.
    fn directory(&self) -> usize {
        match self.version() {
            1 => RINGS_V1,
            _ => (self.header().directory.load(Ordering::Relaxed) as usize).min(MOST_RINGS),
        }
    }

    fn names_at(&self) -> usize {
        names_at(self.directory())
    }

    /// How large the segment was to be, how large it is, and why. None: as it was to be.
    pub fn shortage(&self) -> Option<(u64, u64, Limit)> {
        let header = self.header();
        let (asked, bytes) = (header.asked.load(Ordering::Relaxed), self.memory.bytes() as u64);
        (asked > bytes).then(|| (asked, bytes, Limit::from_u32(header.limit.load(Ordering::Relaxed))))
    }

    pub fn bytes(&self) -> u64 {
        self.memory.bytes() as u64
    }

    /// Whether a writer had to overwrite records, or found no ring, since this was last asked.
    pub fn take_pressed(&self) -> bool {
        let pressed = &self.header().pressed;
        pressed.load(Ordering::Relaxed) != 0 && pressed.swap(0, Ordering::Relaxed) != 0
    }

    /// How many rings there are; numbers stay the same for the life of the segment.
    pub fn rings(&self) -> usize {
        (self.header().rings.load(Ordering::Acquire) as usize).min(self.directory())
    }

    /// The number of the next record of each ring, in order: one look at all of them, which costs a load each.
    pub fn heads(&self) -> impl Iterator<Item = u64> + '_ {
        // SAFETY: `RingEntry` consists of atomics.
        let entries: &[RingEntry] = unsafe { self.memory.slice(RINGS_AT, self.rings()) }.unwrap_or(&[]);
        entries.iter().map(|entry| entry.head.load(Ordering::Acquire))
    }

    /// A ring by number. None if the directory's line for it is damaged.
    pub fn ring(&self, number: usize) -> Option<RingView<'_>> {
        let at = RINGS_AT + number * size_of::<RingEntry>();
        // SAFETY: `RingEntry` consists of atomics.
        let entry: &RingEntry = (number < self.directory()).then(|| unsafe { self.memory.at(at) })??;
        let offset = usize::try_from(entry.offset.load(Ordering::Relaxed)).ok()?;
        let records = entry.records.load(Ordering::Relaxed);
        if !records.is_power_of_two() || offset < self.names_at() {
            return None;
        }
        let offset = if self.version() == 1 { offset.checked_add(OPEN_V1 * 16)? } else { offset };
        // SAFETY: atomics; `slice` checks bounds and alignment.
        let slots = unsafe { self.memory.slice(offset, usize::try_from(records).ok()?) }?;
        Some(RingView { thread: entry.thread.load(Ordering::Relaxed), head: &entry.head, slots, entry })
    }

    /// The calls that were open, each thread's outermost first. Only meaningful once the writer is dead.
    pub fn open_calls(&self) -> Vec<OpenCall> {
        if self.version() != 1 {
            return calls::read(&self.memory, self.header().calls.load(Ordering::Acquire));
        }
        let rings = (0..self.rings()).filter_map(|number| self.ring(number));
        let calls = rings.flat_map(|ring| {
            let at = ring.entry.offset.load(Ordering::Relaxed) as usize;
            // SAFETY: atomics.
            let cells = unsafe { self.memory.slice(at, OPEN_V1) }.unwrap_or(&[]);
            calls::open(cells, ring.entry.depth.load(Ordering::Acquire), ring.thread)
        });
        calls.collect()
    }
}

/// Open calls in front of each ring of a segment of version 1.
const OPEN_V1: usize = 1024;
