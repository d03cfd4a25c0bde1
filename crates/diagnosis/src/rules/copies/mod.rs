//! Copies between host and device, and calls that make the host wait for the device.

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

use crate::rule::Family;

/// In the order of the page.
pub const FAMILY: Family = Family {
    name: "copies",
    title: "Copies and synchronisation",
    summary: "Copies between host and device, and calls that make the CPU wait for the GPU.",
    is_of_recording: false,
    rules: &[
        &pageable_async_copy::PageableAsyncCopy,
        &sync_memcpy::SyncMemcpy,
        &sync_memset::SyncMemset,
        &sync_api::SyncApi,
        &implicit_sync::ImplicitSync,
        &many_small_copies::ManySmallCopies,
        &copies_exposed::CopiesExposed,
        &h2d_spike::H2dSpike,
        &created_on_cpu::CreatedOnCpu,
        &pcie_saturated::PcieSaturated,
        &low_pcie_bandwidth::LowPcieBandwidth,
        &logits_to_host::LogitsToHost,
    ],
};
