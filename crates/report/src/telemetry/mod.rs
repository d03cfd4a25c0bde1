//! Memory telemetry in words: why a process died of memory, and tables of what was asked.

mod post_mortem;
mod tables;

pub use post_mortem::{PostMortem, sentences};
pub use tables::{events, summaries};
