//! Memory telemetry: how much memory a program, its allocator and its device hold, as events over hours or weeks. Read and written as JSON
//! (the format that tools of this kind share), kept in a compact append-only sink, asked by [`query`]. [`track`] samples a program; starting it is left to the command.

pub mod alerts;
pub mod bundle;
pub mod collect;
pub mod csv;
pub mod death;
pub mod event;
pub mod identity;
pub mod json;
pub mod query;
pub mod risk;
pub mod sink;
pub mod track;

pub use event::{Counters, Event, EventType, Source};
pub use identity::Identity;
