//! The contract between the workload and everything outside it: what a record is, which clock it carries,
//! how names are written once, how a ring and a segment are laid out, which settings are handed over, what the tables on
//! disk are called, and the codes that say what is missing from them.
//! Runs on both sides, so it depends on libc alone and never panics on what it reads.

pub mod block;
pub mod clock;
pub mod codes;
pub mod counters;
pub mod device;
pub mod device_facts;
pub mod event;
pub mod gathered;
pub mod gc_pause;
pub mod manifest;
pub mod names;
pub mod plain_file;
pub mod quantity;
pub mod ring;
pub mod segment;
pub mod settings;
pub mod spelling;
pub mod stack_frame;
pub mod status;
pub mod tables;
pub mod wording;

pub use clock::{Anchor, Mapping, Nanos, Source, Ticks};
pub use event::{Event, Kind, NameId};
pub use segment::{Segment, SegmentReader};
