//! The integration tests of this crate, in one binary: linking many takes longer than running them.

mod recording_cost;
mod refusals;
mod replay;
