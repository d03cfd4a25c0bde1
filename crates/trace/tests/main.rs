//! The tests of rings and segments in one program. Apart from them is `kill`, which forks thousands of times.

mod ring_model;
mod segment;
