//! What to do about what happened: every rule looks at a recording, what they find is ranked and settled, and the answer is said in three
//! sentences ([`diagnose`]). How it looks is left to `report`.
//!
//! The modules stand in the order in which they use each other: none uses a later one.

mod bottleneck_kind;

mod rule_code;

mod threshold;

pub mod finding;

pub mod too_short;

pub mod rule;

pub mod losses;

pub mod measures;

#[cfg(test)]
mod testing;

pub mod rules;

pub mod fixes;

pub mod advice;

mod device_limit;

mod rank;

mod telling;

mod confidence;

pub mod health;

mod bottleneck;

mod answer;

mod diagnose;

pub mod named;

pub mod expression;

pub mod user_rules;

pub mod compare;

pub mod verify;

pub use bottleneck::Bottleneck;
pub use bottleneck_kind::BottleneckKind;
pub use diagnose::{Diagnosis, Options, diagnose};
pub use finding::{Abstention, Evidence, Finding, Severity};
pub use health::{HealthLine, HealthState};
pub use rule::{Case, Edit, Rule, RuleDocs, Verdict};
pub use rule_code::RuleCode;
pub use threshold::{RuleSettings, Threshold, Unit};
