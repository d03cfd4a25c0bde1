//! What one kernel in place of several still has to do: what rules of unfused kernels rest their gains on.

/// Of three tensors that an elementwise kernel moves (the chain's, its own, its result), the fused one still has to read its own: arithmetic, and no level
/// to choose.
pub const OWN_OPERAND: f64 = 1.0 / 3.0;
