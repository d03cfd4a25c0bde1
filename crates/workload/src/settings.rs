//! What the recorder asked for, read from `INFERSCOPE_*` when recording starts. The recorder has put every setting there, as
//! flags, environment and file made it; here a value that makes no sense becomes the default, for the workload must start.

use std::env;
use std::path::PathBuf;
pub use trace::settings::{Budget, Calls, GpuDetail, Group, Recording};

#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Where this process's segment goes.
    pub segments: PathBuf,
    /// Who may read our memory, where the kernel asks (Yama).
    pub recorder: Option<u32>,
    /// What the collectors are told; of everything else the defaults.
    pub recording: Recording,
}

impl Settings {
    /// None when no recorder is there.
    pub fn from_environment() -> Option<Settings> {
        let segments = env::var_os("INFERSCOPE_SEGMENTS").filter(|folder| !folder.is_empty())?;
        let mut recording = Recording::default();
        for row in Recording::ROWS.iter().filter(|row| row.told) {
            recording.set(row, &[text(&row.variable())]);
        }
        let recorder = text("INFERSCOPE_RECORDER_PID").parse().ok();
        Some(Settings { segments: segments.into(), recorder, recording })
    }
}

fn text(name: &str) -> String {
    env::var_os(name).map(|value| value.to_string_lossy().trim().to_owned()).unwrap_or_default()
}
