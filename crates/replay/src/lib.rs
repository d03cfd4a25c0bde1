//! What if: the recorded steps played again on their dependency graph with some of the work changed. A replay with nothing
//! changed must come out as it was recorded; where it does not, there is no answer. What to change is read in `expression`.

pub mod allocator;
mod answer;
mod apply;
mod assume;
mod assumption;
mod critical;
mod expression;
pub mod gain;
mod graph;
mod plan;
mod player;
mod recording;
mod replayed_steps;
mod run;

pub use answer::{Answer, Changed, Check, MOST_OFF, Near, NotThere, Refusal, Unknown};
pub use assume::Assume;
pub use assumption::{Assumption, Direction};
pub use critical::{Limit, On};
pub use expression::{Change, Target, Wrong, parse};
pub use gain::{ChangeId, Gain, GainBy};
pub use player::Player;
pub use recording::RecordingCost;
pub use replayed_steps::ReplayedSteps;

use analysis::host::full_queue::FullQueue;
use analysis::steps::Steps;
use analysis::steps::chosen::Chosen;
use timeline::Timeline;

/// Replays the measured steps with nothing changed.
pub fn check(timeline: &Timeline, steps: &Steps) -> Result<Check, Refusal> {
    Ok(Player::new(timeline, steps, &Chosen::all(), &FullQueue::new(timeline))?.check())
}

/// Replays the measured steps with the changes.
pub fn replay(timeline: &Timeline, steps: &Steps, changes: &[Change]) -> Result<Answer, Refusal> {
    Player::new(timeline, steps, &Chosen::all(), &FullQueue::new(timeline))?.ask(changes)
}
