//! What several rules measure, count or say alike: gaps, collectives, rooflines, engine steps, and the proof of a finding. None of them is a rule.

pub mod ahead;
pub mod allocators;
pub mod calls_in_steps;
pub mod capture;
pub mod collections;
pub mod collectives;
pub mod compiled;
pub mod confidence;
pub mod element_reads;
pub mod engine_steps;
pub mod free_cores;
pub mod gap;
pub mod gpu_clock;
pub mod on_link;
pub mod on_path;
pub mod operators;
pub mod own_load;
pub mod pace;
pub mod proof;
pub mod reach;
pub mod recorded;
pub mod roofline;
pub mod rounds;
pub mod thread_load;
