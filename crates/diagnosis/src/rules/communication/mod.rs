//! Collectives between devices and ranks: how long they take, what they delay, which rank is late.

pub(crate) mod bus_bandwidth_low;
pub(crate) mod collectives_serialized;
pub(crate) mod comm_exposed;
pub(crate) mod comm_share;
pub(crate) mod data_parallel;
pub(crate) mod straggler_rank;
pub(crate) mod wrong_backend;

use crate::rule::Family;

/// In the order of the page.
pub const FAMILY: Family = Family {
    name: "communication",
    title: "Several GPUs",
    summary: "Collectives between GPUs and ranks: how long they take, what they delay, which rank is late.",
    is_of_recording: false,
    rules: &[
        &comm_share::CommShare,
        &comm_exposed::CommExposed,
        &collectives_serialized::CollectivesSerialized,
        &straggler_rank::StragglerRank,
        &bus_bandwidth_low::BusBandwidthLow,
        &wrong_backend::WrongBackend,
        &data_parallel::DataParallel,
    ],
};
