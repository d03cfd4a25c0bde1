//! What frameworks' allocators hold of device memory: growth, holes, what is reserved and unused, and how near the end is.

pub(crate) mod allocator_retries;
pub(crate) mod cudamalloc_in_steady_state;
pub(crate) mod fragmentation;
pub(crate) mod hidden_memory;
pub(crate) mod leak;
pub(crate) mod memory_imbalance;
pub(crate) mod memory_near_full;
pub(crate) mod memory_underused;
pub(crate) mod oom_near_miss;
pub(crate) mod pinned_growth;
pub(crate) mod reserved_unused;

use crate::rule::Family;

/// In the order of the page.
pub const FAMILY: Family = Family {
    name: "memory",
    title: "GPU memory",
    summary: "What PyTorch's allocator holds and what it does not know of: leaks, fragmentation, unused reserved memory, and how close it is to the limit.",
    is_of_recording: false,
    rules: &[
        &leak::Leak,
        &hidden_memory::HiddenMemory,
        &pinned_growth::PinnedGrowth,
        &oom_near_miss::OomNearMiss,
        &memory_near_full::MemoryNearFull,
        &allocator_retries::AllocatorRetries,
        &fragmentation::Fragmentation,
        &reserved_unused::ReservedUnused,
        &cudamalloc_in_steady_state::CudamallocInSteadyState,
        &memory_imbalance::MemoryImbalance,
        &memory_underused::MemoryUnderused,
    ],
};
