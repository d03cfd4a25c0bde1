//! Servers of language models.

pub(crate) mod no_request_waiting;
pub(crate) mod prefill_blocks_decode;
pub(crate) mod sampler_share;
pub(crate) mod scheduler_gap;
