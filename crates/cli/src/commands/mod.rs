//! One command a file: settings and arguments in, an ending out.

pub mod analyze;
pub mod attach;
pub mod check;
pub mod completions;
pub mod config;
pub mod diagnose;
pub mod diff;
pub mod doctor;
pub mod export;
pub mod info;
pub mod monitor;
pub mod plot;
pub mod query;
pub mod record;
pub mod rules;
pub mod run;
pub mod top;
pub mod track;
pub mod verify;
mod watch;
pub mod whatif;
