//! How well kernels use the device.

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
