//! Synchronisation and copies between host and device.

pub(crate) mod copies_exposed;
pub(crate) mod created_on_cpu;
pub(crate) mod h2d_spike;
pub(crate) mod implicit_sync;
pub(crate) mod logits_to_host;
pub(crate) mod low_pcie_bandwidth;
pub(crate) mod many_small_copies;
pub(crate) mod pageable_async_copy;
pub(crate) mod pcie_saturated;
pub(crate) mod sync_api;
pub(crate) mod sync_memcpy;
pub(crate) mod sync_memset;
