//! An analysis in, bytes out: text, Markdown, JSON, a page, and the formats of other tools.

mod absent_words;
mod attribution_words;
mod blocks;
mod escape;
mod gpu_words;
mod in_steps;
mod json_text;
mod lanes;
pub mod limits;
mod memory_words;
mod operator_words;
mod percentages;
mod picture;
mod provenance;
mod sampled;
mod streams;
mod style;
mod table;
mod units;

pub mod exports;
pub mod plots;
pub mod reports;

pub mod comparison;
pub mod telemetry;
pub mod verify;
pub mod whatif;

pub use attribution_words::parts as attributed_parts;
pub use escape::visible;
pub use style::{Ink, Style};
pub use units::{bytes, count, duration};
