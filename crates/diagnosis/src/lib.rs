//! What to do about what happened: every rule looks at a recording, what they find is ranked and settled, and the answer is said in three
//! sentences ([`diagnose`]). How it looks is left to `report`.
//!
//! The modules stand in the order in which they use each other: none uses a later one.

mod bottleneck_kind;

mod health_topic;

mod rule_code;

mod threshold;

pub mod wording;

pub mod action;

pub mod certainty;

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

mod calibration;

mod device_limit;

mod recording_cost;

mod relation;

mod rank;

mod leading;

mod quiet_machine;

mod confidence;

mod considered;

pub mod health;

mod bottleneck;

mod answer;

mod memory_answer;

pub mod named;

pub mod expression;

pub mod user_rules;

mod diagnose;

pub mod failed_request;

pub mod memory_figures;

pub mod compare;

pub mod verify;

pub use action::{Action, Precondition};
pub use bottleneck::Bottleneck;
pub use bottleneck_kind::BottleneckKind;
pub use certainty::Certainty;
pub use considered::Considered;
pub use diagnose::{Diagnosis, Options, diagnose};
pub use finding::{Abstention, Evidence, Finding, Severity};
pub use health::{HealthLine, HealthState};
pub use health_topic::HealthTopic;
pub use rule::{Case, Edit, Rule, RuleDocs, Shown, Verdict};
pub use rule_code::RuleCode;
pub use threshold::{RuleSettings, Threshold, Unit};
