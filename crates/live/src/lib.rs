//! A recording while it runs, or a finished one with a clock: a window of its last seconds is read from the trace's files, goes through the
//! same analysis and rules as a report, and becomes one [`Model`], which the terminal and JSON show. Nothing is asked of the recorder and
//! nothing is written, so watching changes no recording, however many watch.
//!
//! The modules stand in the order in which they use each other: none uses a later one.

pub mod model;

mod build;

mod history;

mod watcher;

mod worker;

pub mod tui;

pub use model::Model;
pub use watcher::{Position, WINDOW, Watcher};
pub use worker::Worker;
