//! Memory telemetry in words: why a process died of memory, and tables of what was asked.

pub mod failed_request;
mod post_mortem;
mod risk;
mod tables;

pub use post_mortem::{PostMortem, ended_while_full, sentences};
pub use risk::{advice, diagnosis};
pub use tables::{doubts, events, overview, summaries};
