//! The steps of an engine that serves language models: padding, prefill, decode, sampling and scheduling.

pub(crate) mod padding_waste;
pub(crate) mod prefill_blocks_decode;
pub(crate) mod sampler_share;
pub(crate) mod scheduler_gap;

use crate::rule::Family;

/// In the order of the page.
pub const FAMILY: Family = Family {
    name: "serving",
    title: "Serving engines",
    summary: "Steps of an LLM serving engine: padding, prefill, decode, sampling and scheduling.",
    is_of_recording: false,
    rules: &[
        &padding_waste::PaddingWaste,
        &sampler_share::SamplerShare,
        &prefill_blocks_decode::PrefillBlocksDecode,
        &scheduler_gap::SchedulerGap,
    ],
};
