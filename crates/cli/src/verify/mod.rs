//! What `inferscope verify` runs: the fix that is asked for, and the command with and without it. What the two lists of times say about
//! each other is in `diagnosis`, how that is told in `report`.

pub mod edits;
pub mod fixes;
pub mod machine;
pub mod runs;
