//! The segment: one file per process, mapped by the workload that writes it and the recorder that reads it.
//! Header, status page, ring directory, name table, then rings and open calls, taken from the budget as threads need them.

mod calls;
mod limits;
mod memory;
mod owned;
mod reader;
mod space;
mod writer;

pub use calls::{OpenCall, OpenCalls};
pub use limits::Limit;
pub use owned::OwnedRing;
pub use reader::{ReadError, RingView, SegmentReader};
pub use writer::{CreateError, Segment};

use crate::clock::Anchor;
use crate::event::EVENT_SIZE;
use crate::status::{Collector, CollectorStatus};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// "INFSCOPE" in the byte order of the machine: a segment never leaves it.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"INFSCOPE");
/// Raised when an older recorder would misread a newer segment. 1: a directory of 1024 rings, each with open calls in front.
pub const VERSION: u32 = 2;
/// File name suffix of a segment that is ready to be read.
pub const SUFFIX: &str = ".segment";

/// Directory entries of the largest segment: 5,000 threads that write, and the rings that they outgrew.
const MOST_RINGS: usize = 16384;
/// Directory entries in a segment of version 1.
const RINGS_V1: usize = 1024;
const TEXT_WORDS: usize = 32;

pub(crate) const PAGE: usize = 4096;
pub(crate) const STATUS_AT: usize = PAGE;
pub(crate) const RINGS_AT: usize = 2 * PAGE;

/// Directory entries of a segment of so many bytes: one for every page, and whole pages of them.
pub(crate) fn directory_rings(bytes: usize) -> usize {
    (bytes / PAGE).clamp(64, MOST_RINGS).next_multiple_of(PAGE / size_of::<RingEntry>())
}

/// Where the directory ends and the names begin.
pub(crate) fn names_at(directory: usize) -> usize {
    RINGS_AT + directory * size_of::<RingEntry>()
}

/// Who writes a segment.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    pub pid: u32,
    pub parent: u32,
    /// Field 22 of /proc/PID/stat: together with the pid it names a process for ever.
    pub start_ticks: u64,
    /// Program and script only: arguments may hold secrets.
    pub program: String,
    pub python: String,
    pub place: RankPlace,
}

/// Where a process stands in a distributed program, as its launcher said.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RankPlace {
    pub rank: Option<u32>,
    /// Among those on this machine.
    pub local_rank: Option<u32>,
    pub world_size: Option<u32>,
}

#[repr(C)]
pub(crate) struct Header {
    pub magic: AtomicU64,
    pub version: AtomicU32,
    pub record_bytes: AtomicU32,
    pub pid: AtomicU32,
    pub parent: AtomicU32,
    pub start_ticks: AtomicU64,
    pub clock: AtomicU32,
    /// 1 while a recorder wants records. The recorder clears it when it leaves; the collectors then stop.
    pub wanted: AtomicU32,
    /// The pid of the recorder that drains this segment, 0 if none.
    pub recorder: AtomicU32,
    pub rings: AtomicU32,
    pub names_bytes: AtomicU64,
    pub names_head: AtomicU64,
    pub start: AnchorCell,
    /// The recorder's last anchor, so that a recovery after its death has a second point.
    pub latest: AnchorCell,
    pub program: [AtomicU64; TEXT_WORDS],
    pub python: [AtomicU64; 4],
    /// Rank, local rank and world size, each plus one; 0: not said.
    pub place: [AtomicU32; 3],
    /// Entries that the directory has room for. The names follow it.
    pub directory: AtomicU32,
    /// Where the last block of open calls lies, 0 if there is none; each names the one before.
    pub calls: AtomicU64,
    /// How large the segment was to be, and what kept it smaller ([`Limit`]).
    pub asked: AtomicU64,
    pub limit: AtomicU32,
    /// 1 when a writer had to overwrite, or found no ring: the recorder writes to disk sooner and sets it to 0.
    pub pressed: AtomicU32,
}

const _: () = assert!(size_of::<Header>() <= PAGE);
const _: () = assert!(Collector::ALL.len() * size_of::<CollectorStatus>() <= PAGE);
const _: () = assert!(PAGE.is_multiple_of(size_of::<RingEntry>()));

#[repr(C)]
pub(crate) struct AnchorCell([AtomicU64; 4]);

impl AnchorCell {
    pub fn set(&self, anchor: Anchor) {
        let words = [anchor.ticks, anchor.mono, anchor.real, anchor.bracket];
        self.0.iter().zip(words).for_each(|(cell, word)| cell.store(word, Ordering::Relaxed));
    }

    /// None if never set.
    pub fn get(&self) -> Option<Anchor> {
        let [ticks, mono, real, bracket] = std::array::from_fn(|i| self.0[i].load(Ordering::Relaxed));
        (mono != 0).then_some(Anchor { ticks, mono, real, bracket })
    }
}

/// One line of the ring directory. Two cache lines, so that writer and reader do not disturb each other. Place and size
/// of a ring never change; threads may come and go.
#[repr(C, align(128))]
pub(crate) struct RingEntry {
    _state: AtomicU32,
    pub thread: AtomicU32,
    /// Where the records start; in version 1, the open calls, and the records behind them.
    pub offset: AtomicU64,
    pub records: AtomicU64,
    pub head: AtomicU64,
    /// Open calls, in version 1.
    pub depth: AtomicU64,
    _line: [AtomicU64; 3],
    /// First record not yet on disk, as the recorder says.
    pub durable: AtomicU64,
}

const _: () = assert!(size_of::<RingEntry>() == 128);

impl Header {
    pub fn set_place(&self, place: RankPlace) {
        let numbers = [place.rank, place.local_rank, place.world_size];
        for (cell, number) in self.place.iter().zip(numbers) {
            cell.store(number.and_then(|number| number.checked_add(1)).unwrap_or(0), Ordering::Relaxed);
        }
    }

    pub fn get_place(&self) -> RankPlace {
        let [rank, local_rank, world_size] =
            std::array::from_fn(|at| self.place[at].load(Ordering::Relaxed).checked_sub(1));
        RankPlace { rank, local_rank, world_size }
    }
}

pub(crate) fn set_text(cells: &[AtomicU64], text: &str) {
    let mut bytes = crate::event::cut(text, cells.len() * 8).bytes();
    for cell in cells {
        cell.store(u64::from_le_bytes(std::array::from_fn(|_| bytes.next().unwrap_or(0))), Ordering::Relaxed);
    }
}

pub(crate) fn get_text(cells: &[AtomicU64]) -> String {
    let bytes = cells.iter().flat_map(|cell| cell.load(Ordering::Relaxed).to_le_bytes());
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
