//! What a recording is asked to do. The command line fills it; this crate has no settings of its own.

use std::path::PathBuf;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Calls {
    #[default]
    Off,
    Python,
    /// C functions too.
    WithC,
}

/// What is recorded of CUDA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GpuDetail {
    Off,
    /// What devices did.
    Kernel,
    /// And the calls that asked for it.
    #[default]
    Launch,
    /// And every other call of the CUDA API.
    All,
}

impl GpuDetail {
    pub const ALL: [GpuDetail; 4] = [GpuDetail::Off, GpuDetail::Kernel, GpuDetail::Launch, GpuDetail::All];

    pub fn name(self) -> &'static str {
        match self {
            GpuDetail::Off => "off",
            GpuDetail::Kernel => "kernel",
            GpuDetail::Launch => "launch",
            GpuDetail::All => "all",
        }
    }
}

/// How much of the workload's time recording CUDA may cost.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Budget {
    /// Everything is recorded, unless the program gives its GPU so much work that this would cost more than the collectors allow.
    #[default]
    Auto,
    /// Whatever it costs.
    Unlimited,
    /// Windows, from the start.
    Percent(f64),
}

impl std::fmt::Display for Budget {
    fn fmt(&self, text: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Budget::Auto => text.write_str("auto"),
            Budget::Unlimited => text.write_str("none"),
            Budget::Percent(percent) => write!(text, "{percent}%"),
        }
    }
}

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
    /// Shared memory that each process of the workload may use.
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
            trace_size_mb: 100,
            memory_hz: 10.0,
            gpu_detail: GpuDetail::default(),
            overhead_budget: Budget::Auto,
            layers: false,
            device_hz: 10.0,
        }
    }
}
