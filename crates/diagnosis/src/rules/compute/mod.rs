//! How well kernels use the device: number formats, shapes, fusion, occupancy, clocks.

pub(crate) mod attention_fallback;
pub(crate) mod below_roofline;
pub(crate) mod compute_bound;
pub(crate) mod conv_layout;
pub(crate) mod fp32_share;
pub(crate) mod gpu_shared;
pub(crate) mod kernel_drift;
pub(crate) mod kernel_hotspot;
pub(crate) mod known_fusion_missing;
pub(crate) mod layer_outlier;
pub(crate) mod low_occupancy;
pub(crate) mod memory_bandwidth_bound;
pub(crate) mod tensor_cores_unused;
pub(crate) mod tf32_off;
pub(crate) mod throttled;
pub(crate) mod unaligned_matmul;
pub(crate) mod unfused_elementwise;

use crate::rule::Family;

/// In the order of the page.
pub const FAMILY: Family = Family {
    name: "compute",
    title: "Kernels",
    summary: "How well kernels use the GPU: dtypes, shapes, fusion, occupancy, clocks.",
    is_of_recording: false,
    rules: &[
        &compute_bound::ComputeBound,
        &memory_bandwidth_bound::MemoryBandwidthBound,
        &tf32_off::Tf32Off,
        &tensor_cores_unused::TensorCoresUnused,
        &fp32_share::Fp32Share,
        &unaligned_matmul::UnalignedMatmul,
        &attention_fallback::AttentionFallback,
        &unfused_elementwise::UnfusedElementwise,
        &known_fusion_missing::KnownFusionMissing,
        &below_roofline::BelowRoofline,
        &conv_layout::ConvLayout,
        &low_occupancy::LowOccupancy,
        &kernel_drift::KernelDrift,
        &layer_outlier::LayerOutlier,
        &gpu_shared::GpuShared,
        &kernel_hotspot::KernelHotspot,
        &throttled::Throttled,
    ],
};
