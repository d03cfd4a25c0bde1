//! What several rules measure, count or say alike: gaps, collectives, rooflines, engine steps, and the proof of a finding. None of them is a rule.

pub mod calls_in_steps;
pub mod collectives;
pub mod confidence;
pub mod engine_steps;
pub mod gap;
pub mod gpu_clock;
pub mod on_path;
pub mod pace;
pub mod proof;
pub mod reach;
pub mod recorded;
pub mod roofline;
