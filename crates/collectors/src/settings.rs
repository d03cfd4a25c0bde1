//! What the recorder asked for, read from `INFERSCOPE_*` when recording starts. The command checks values and complains;
//! here a value that makes no sense becomes the default, for the workload must start.

use std::env;
use std::path::PathBuf;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Calls {
    Off,
    Python,
    WithC,
}

/// How much of CUDA is recorded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub enum GpuDetail {
    Off,
    /// What devices do.
    Kernel,
    /// And the calls that ask for it.
    Launch,
    /// And every other call.
    All,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Where this process's segment goes.
    pub segments: PathBuf,
    pub trace_size: usize,
    pub calls: Calls,
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    pub min_us: u64,
    /// Who may read our memory, where the kernel asks (Yama).
    pub recorder: Option<u32>,
    pub gpu_detail: GpuDetail,
    pub overhead_budget: Budget,
}

/// How much of the run recording the GPU may cost.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Budget {
    /// Everything is recorded, unless the program gives its GPU so many pieces of work that this costs too much.
    Auto,
    Unlimited,
    /// Windows from the start, so that it costs no more than so many per cent.
    Windows(f64),
}

impl Budget {
    fn from_text(text: &str) -> Budget {
        match text.strip_suffix('%').unwrap_or(text).trim_end().parse::<f64>() {
            Ok(percent) if percent > 0.0 => Budget::Windows(percent),
            Ok(_) => Budget::Unlimited,
            Err(_) if text.eq_ignore_ascii_case("none") => Budget::Unlimited,
            Err(_) => Budget::Auto,
        }
    }
}

const DEFAULT_SIZE_MB: usize = 100;
const MOST_SIZE_MB: usize = 64 << 10;

impl Settings {
    /// None when no recorder is there.
    pub fn from_environment() -> Option<Settings> {
        let segments = env::var_os("INFERSCOPE_SEGMENTS").filter(|folder| !folder.is_empty())?;
        let megabytes = number("INFERSCOPE_TRACE_SIZE_MB").unwrap_or(DEFAULT_SIZE_MB).clamp(1, MOST_SIZE_MB);
        Some(Settings {
            segments: segments.into(),
            trace_size: megabytes << 20,
            calls: match text("INFERSCOPE_CALLS").as_str() {
                "1" | "true" | "python" => Calls::Python,
                "c" => Calls::WithC,
                _ => Calls::Off,
            },
            include: list("INFERSCOPE_CALLS_INCLUDE"),
            exclude: list("INFERSCOPE_CALLS_EXCLUDE"),
            min_us: number("INFERSCOPE_CALLS_MIN_US").unwrap_or(0),
            recorder: number("INFERSCOPE_RECORDER_PID"),
            gpu_detail: match text("INFERSCOPE_GPU_DETAIL").as_str() {
                "off" | "0" => GpuDetail::Off,
                "kernel" => GpuDetail::Kernel,
                "all" => GpuDetail::All,
                _ => GpuDetail::Launch,
            },
            overhead_budget: Budget::from_text(&text("INFERSCOPE_OVERHEAD_BUDGET")),
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
