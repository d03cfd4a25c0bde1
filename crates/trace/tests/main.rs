//! The tests of rings, segments and the pages of settings in one program. Apart from them is `kill`, which forks thousands of times.

mod ring_model;
mod segment;
mod settings_pages;
