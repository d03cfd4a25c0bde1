//! An analysis in, bytes out: text, Markdown, JSON, a page, and the formats of other tools.

pub mod analysis_json;
pub mod brief;
pub mod chrome;
pub mod collapsed;
pub mod comparison;
pub mod comparison_json;
mod escape;
mod gpu_words;
pub mod html;
mod in_steps;
pub mod json;
mod json_text;
mod lanes;
pub mod limits;
pub mod markdown;
mod percentages;
pub mod perfetto;
mod picture;
pub mod pprof;
mod provenance;
mod sampled;
pub mod speedscope;
mod streams;
mod style;
pub mod text;
mod units;
pub mod whatif;
pub mod whatif_json;

pub use style::{Ink, Style};
pub use units::{bytes, count, duration};
