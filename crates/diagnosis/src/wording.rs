//! The sentences for what `analysis` and `replay` hand on as codes and numbers. Findings and health lines use them, and so does `report`.

pub mod device;
pub mod memory;
pub mod origin;
pub mod replay;
pub mod slow_steps;
pub mod steps;
