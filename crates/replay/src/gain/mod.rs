//! A gain: how much, between which bounds, what it rests on and what kind of change it is of.

mod amount;
mod kind;
mod left;

pub use amount::{ChangeId, Gain, GainBy};
pub use kind::ChangeKind;
pub use left::Left;
