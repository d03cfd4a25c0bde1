//! Every event of a recording, in the formats of other tools, one a module.

pub mod chrome;
pub mod collapsed;
pub mod json;
pub mod perfetto;
pub mod pprof;
pub mod speedscope;
