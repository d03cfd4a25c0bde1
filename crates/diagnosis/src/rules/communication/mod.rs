//! Several devices and ranks.

pub(crate) mod bus_bandwidth_low;
pub(crate) mod collectives_serialized;
pub(crate) mod comm_exposed;
pub(crate) mod comm_share;
pub(crate) mod data_parallel;
pub(crate) mod straggler_rank;
pub(crate) mod wrong_backend;
