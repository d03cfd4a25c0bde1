//! One command a file: settings and arguments in, an ending out.

pub mod analyze;
pub mod attach;
pub mod completions;
pub mod config;
pub mod doctor;
pub mod export;
pub mod record;
pub mod run;
