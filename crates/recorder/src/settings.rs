//! What a recording is asked to do. The command line fills it; this crate has no settings of its own.

use std::path::PathBuf;
pub use trace::settings::{Budget, Calls, GpuDetail};

#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The trace's folder, exactly. None: a new one under `./inferscope-traces`.
    pub output: Option<PathBuf>,
    /// Stack samples a second, 1 to 1000. 0: none.
    pub rate_hz: u32,
    /// Native frames below the Python ones (only when built with the `native` feature).
    pub native: bool,
    pub calls: Calls,
    /// Modules, packages or path globs whose calls are recorded; empty: all.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// Calls shorter than this are not recorded.
    pub min_us: u64,
    /// Shared memory for the records of each process's Python part; its CUDA library may use as much again, up to 64 MB.
    pub trace_size_mb: u32,
    /// How often /proc is read. 0: never.
    pub memory_hz: f64,
    pub gpu_detail: GpuDetail,
    pub overhead_budget: Budget,
    /// Which `nn.Module` asked for what a device did.
    pub layers: bool,
    /// How often devices are asked how they are. 0: never.
    pub device_hz: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            output: None,
            rate_hz: 100,
            native: false,
            calls: Calls::Off,
            include: Vec::new(),
            exclude: Vec::new(),
            min_us: 0,
            trace_size_mb: trace::settings::SIZE_MB,
            memory_hz: 10.0,
            gpu_detail: GpuDetail::default(),
            overhead_budget: Budget::Auto,
            layers: false,
            device_hz: 10.0,
        }
    }
}
