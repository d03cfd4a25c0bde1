//! What `inferscope verify` is made of: the fixes that can be switched, runs of the command with and without one, what the
//! two lists of times say about each other, and how that is told.

pub mod edits;
pub mod fixes;
pub mod interval;
pub mod judge;
pub mod machine;
pub mod runs;
pub mod tell;
