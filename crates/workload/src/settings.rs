//! What the recorder asked for, read from `INFERSCOPE_*` when recording starts. The recorder has put every setting there, as
//! flags, environment and file made it; here a value that makes no sense becomes the default, for the workload must start.

use std::env;
use std::path::PathBuf;
pub use trace::settings::{Budget, Calls, GpuDetail};
use trace::settings::{SIZE_MB, SIZES_MB};

#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Where this process's segment goes.
    pub segments: PathBuf,
    /// For the Python part; the CUDA library takes its share of it.
    pub trace_size_mb: u32,
    pub calls: Calls,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    pub min_us: u64,
    /// Who may read our memory, where the kernel asks (Yama).
    pub recorder: Option<u32>,
    pub gpu_detail: GpuDetail,
    pub overhead_budget: Budget,
}

impl Settings {
    /// None when no recorder is there.
    pub fn from_environment() -> Option<Settings> {
        let segments = env::var_os("INFERSCOPE_SEGMENTS").filter(|folder| !folder.is_empty())?;
        let size_mb = number("INFERSCOPE_TRACE_SIZE_MB").unwrap_or(SIZE_MB);
        Some(Settings {
            segments: segments.into(),
            trace_size_mb: size_mb.clamp(*SIZES_MB.start(), *SIZES_MB.end()),
            calls: Calls::parse(&text("INFERSCOPE_CALLS")).unwrap_or_default(),
            include: list("INFERSCOPE_CALLS_INCLUDE"),
            exclude: list("INFERSCOPE_CALLS_EXCLUDE"),
            min_us: number("INFERSCOPE_CALLS_MIN_US").unwrap_or(0),
            recorder: number("INFERSCOPE_RECORDER_PID"),
            gpu_detail: GpuDetail::parse(&text("INFERSCOPE_GPU_DETAIL")).unwrap_or_default(),
            overhead_budget: Budget::parse(&text("INFERSCOPE_OVERHEAD_BUDGET")).unwrap_or_default(),
        })
    }
}

fn text(name: &str) -> String {
    env::var_os(name).map(|value| value.to_string_lossy().trim().to_owned()).unwrap_or_default()
}

fn number<N: std::str::FromStr>(name: &str) -> Option<N> {
    text(name).parse().ok()
}

fn list(name: &str) -> Vec<String> {
    text(name).split(',').map(str::trim).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
