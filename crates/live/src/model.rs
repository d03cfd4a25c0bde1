//! What is known of the last seconds of a recording, as numbers and sentences: what every view shows, and the JSON of `top --json`. Names come
//! from the program and are as it wrote them; whoever shows them on a terminal makes them visible first.

use serde::Serialize;

/// Raised when a field changes or goes: `live_version`.
pub const VERSION: &str = "1.0";

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Model {
    pub live_version: &'static str,
    pub trace: String,
    pub command: String,
    pub state: State,
    pub clock: Clock,
    /// The sentences that a report begins with, of this window. Empty: too little was recorded in it.
    pub answer: Vec<String>,
    /// In the order of the diagnosis; those that were found before and are not any more come last.
    pub findings: Vec<Finding>,
    pub steps: Option<Steps>,
    /// Most own time first.
    pub functions: Vec<Function>,
    pub devices: Vec<Device>,
    pub kernels: Vec<Kernel>,
    pub memory: Memory,
    pub processes: Vec<Process>,
    /// Most CPU time first.
    pub threads: Vec<Thread>,
    pub tracks: Vec<Track>,
    pub health: Vec<Health>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The program runs and is recorded.
    #[default]
    Recording,
    /// The recording has ended.
    Ended,
    /// Its recorder is gone, and it was never finished.
    Unfinished,
}

/// Times are nanoseconds after the start of the recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Clock {
    pub start_ns: u64,
    pub end_ns: u64,
    /// How long the whole recording is by now.
    pub recorded_ns: u64,
    /// From the newest event that is shown to now; null for a finished recording.
    pub lag_ns: Option<u64>,
    /// What making this took, off the path of the recording.
    pub cost_ns: u64,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Finding {
    pub code: String,
    pub title: String,
    #[serde(rename = "where")]
    pub place: String,
    pub severity: &'static str,
    pub gain_percent: Option<Gain>,
    pub confidence: f64,
    pub action: String,
    /// For how long it has been found, in this view.
    pub for_ns: u64,
    /// For how long it has not been found any more; null: it is there.
    pub gone_ns: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Gain {
    pub low: f64,
    pub mid: f64,
    pub high: f64,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Steps {
    pub name: String,
    pub source: &'static str,
    pub confidence: f64,
    pub count: u64,
    pub per_second: f64,
    pub p50_ns: u64,
    pub p99_ns: u64,
    pub slowest_ns: u64,
    /// The newest, oldest first: when each began, after the start of the recording, and how long it took.
    pub recent: Vec<(u64, u64)>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Function {
    pub name: String,
    pub file: String,
    pub line: u32,
    pub own_percent: f64,
    pub total_percent: f64,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Device {
    pub index: u32,
    pub name: String,
    /// The part of the window in which it did anything, from recorded work. Null: no work was recorded.
    pub busy_percent: Option<f64>,
    pub kernels_per_s: Option<f64>,
    /// What the driver says: newest reading.
    pub utilisation_percent: Option<i64>,
    pub memory_used_bytes: Option<u64>,
    pub memory_total_bytes: Option<u64>,
    pub sm_clock_mhz: Option<i64>,
    pub power_mw: Option<i64>,
    pub temperature_c: Option<i64>,
    /// The driver's bits; 0: none.
    pub throttle_reasons: Option<i64>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Kernel {
    pub name: String,
    pub count: u64,
    pub total_ns: u64,
    pub mean_ns: u64,
    pub share_percent: f64,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Memory {
    /// All recorded processes together, in buckets over the window. Null: nothing was read in a bucket.
    pub rss: Vec<Option<u64>>,
    pub rss_bytes: Option<u64>,
    pub peak_rss_bytes: Option<u64>,
    /// What the GPU memory in use is for, newest: parts that add up, or why they are not known.
    pub parts: Vec<Part>,
    pub not_attributed: Option<String>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Part {
    pub device: u32,
    pub what: String,
    pub bytes: u64,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Process {
    pub pid: i64,
    pub name: String,
    pub rank: Option<u32>,
    pub threads: usize,
    /// Of one core.
    pub cpu_percent: Option<f64>,
    pub rss_bytes: Option<u64>,
    pub ended: bool,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Thread {
    pub pid: i64,
    pub tid: i32,
    pub name: String,
    pub cpu_percent: Option<f64>,
    /// Ready to run and without a core.
    pub waited_percent: Option<f64>,
}

/// What a thread or a stream did in the window, in cells of equal length.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Track {
    pub name: String,
    /// The part of each cell that was busy, in percent.
    pub cells: Vec<u8>,
}

#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Health {
    pub state: &'static str,
    pub text: String,
}
