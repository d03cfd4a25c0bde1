//! What runs with and without a fix say: the change of the time with its interval, held against what the analysis predicted. Running
//! the command is left to `cli`, the words to `report`.

mod experiment;
mod interval;
mod judge;

pub use experiment::{Basis, Experiment, FixState, Measure, Output, Prediction, Run, RunTimes};
pub use interval::{Interval, paired};
pub use judge::{Outcome, PredictedGain, judge};
