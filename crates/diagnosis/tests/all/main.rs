//! The integration tests of this crate, in one binary: linking many takes longer than running them.

mod advice;
mod answer;
mod bad_input;
mod bad_memory;
mod bound;
mod causes;
mod compare;
mod diagnose;
mod gpu;
mod idle;
mod no_constants;
mod recorded_traces;
mod recording_cost;
mod replay_answers;
mod rule_codes;
mod rule_thresholds;
mod rules_page;
mod slow_steps;
mod steps;
mod titles;
