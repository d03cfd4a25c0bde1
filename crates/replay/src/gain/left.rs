//! What is left of the time of some work after a change.

/// At the worst, usually, at the best.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Left {
    pub worst: f64,
    pub usual: f64,
    pub best: f64,
}

impl Left {
    /// All that is known are the bounds: half way is taken for usual.
    pub fn between(best: f64, worst: f64) -> Left {
        Left { worst, usual: best.midpoint(worst), best }
    }

    /// It goes; at worst so much of it stays.
    pub fn gone(worst: f64) -> Left {
        Left { worst, usual: 0.0, best: 0.0 }
    }
}
