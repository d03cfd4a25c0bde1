//! An analysis in, bytes out: text, JSON, Chrome.

pub mod collapsed;
mod lanes;
pub mod perfetto;
pub mod pprof;
mod provenance;
mod sampled;
pub mod speedscope;
