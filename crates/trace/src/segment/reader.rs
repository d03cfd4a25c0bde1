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
    open: &'a [[AtomicU64; 2]],
}

impl RingView<'_> {
    pub fn durable(&self) -> u64 {
        self.entry.durable.load(Ordering::Acquire)
    }

    /// Says that every record before `next` is on disk.
    pub fn set_durable(&self, next: u64) {
        self.entry.durable.store(next, Ordering::Release);
    }

    /// The calls that were open, outermost first, as (name, begin time). Only meaningful once the writer is dead.
    pub fn open_calls(&self) -> Vec<(crate::NameId, u64)> {
        let depth = (self.entry.depth.load(Ordering::Acquire) as usize).min(self.open.len());
        let call = |cell: &[AtomicU64; 2]| {
            (crate::NameId(cell[0].load(Ordering::Relaxed) as u32), cell[1].load(Ordering::Relaxed))
        };
        self.open[..depth].iter().map(call).collect()
    }
}

impl SegmentReader {
    /// Maps the segment of a living process.
    pub fn open(path: &Path) -> Result<SegmentReader, ReadError> {
        let file = File::options().read(true).write(true).open(path)?;
        let bytes = usize::try_from(file.metadata()?.len()).map_err(|_| ReadError::Damaged("absurd size"))?;
        if bytes < NAMES_AT {
            return Err(ReadError::NotASegment);
        }
        SegmentReader::check(Memory::map(&file, bytes)?)
    }

    /// Copies a segment whose writer is dead.
    pub fn load(bytes: &[u8]) -> Result<SegmentReader, ReadError> {
        if bytes.len() < NAMES_AT {
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
        let bytes = header.names_bytes.load(Ordering::Relaxed) as usize;
        let words = bytes.min(self.memory.bytes() - NAMES_AT) / 8;
        // SAFETY: atomics.
        let words = unsafe { self.memory.slice(NAMES_AT, words) }.unwrap_or(&[]);
        NameTable::new(&header.names_head, words)
    }

    /// How many rings there are; numbers stay the same for the life of the segment.
    pub fn rings(&self) -> usize {
        (self.header().rings.load(Ordering::Acquire) as usize).min(MOST_RINGS)
    }

    /// A ring by number. None if the directory's line for it is damaged.
    pub fn ring(&self, number: usize) -> Option<RingView<'_>> {
        let at = RINGS_AT + number * size_of::<RingEntry>();
        // SAFETY: `RingEntry` consists of atomics.
        let entry: &RingEntry = (number < MOST_RINGS).then(|| unsafe { self.memory.at(at) })??;
        let offset = usize::try_from(entry.offset.load(Ordering::Relaxed)).ok()?;
        let records = entry.records.load(Ordering::Relaxed);
        if !records.is_power_of_two() || offset < NAMES_AT {
            return None;
        }
        let end = ring_bytes(records)?.checked_add(offset as u64)?;
        if end > self.memory.bytes() as u64 {
            return None;
        }
        // SAFETY: atomics; `slice` checks bounds and alignment.
        let open = unsafe { self.memory.slice(offset, OPEN_CALLS) }?;
        // SAFETY: as above.
        let slots = unsafe { self.memory.slice(offset + OPEN_BYTES, records as usize) }?;
        Some(RingView { thread: entry.thread.load(Ordering::Relaxed), head: &entry.head, slots, entry, open })
    }
}
