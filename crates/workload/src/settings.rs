//! What the recorder asked for, read from `INFERSCOPE_*` when recording starts. The recorder has put every setting there, as
//! flags, environment and file made it; here a value that makes no sense becomes the default, for the workload must start.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use trace::settings::internal;
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
        Settings::from_variables(|name| env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Option<Settings> {
        let segments = variable(internal::SEGMENTS).filter(|folder| !folder.is_empty())?;
        let text = |name: &str| variable(name).unwrap_or_default().to_string_lossy().trim().to_owned();
        let mut recording = Recording::default();
        for row in Recording::ROWS.iter().filter(|row| row.told) {
            recording.set(row, &[text(&row.variable())]);
        }
        let recorder = text(internal::RECORDER_PID).parse().ok();
        Some(Settings { segments: segments.into(), recorder, recording })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Option<Settings> {
        Settings::from_variables(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into()))
    }

    #[test]
    fn what_the_recorder_tells_is_what_is_read() {
        let asked = Recording {
            calls: Calls::WithC,
            include: vec!["a".into(), "b.c".into()],
            min_us: 7,
            trace_size_mb: 8,
            gpu_detail: GpuDetail::All,
            overhead_budget: Budget::Windows(2.5),
            layers: true,
            ..Recording::default()
        };
        let told: Vec<(String, String)> = Recording::ROWS.iter().map(|row| (row.variable(), asked.text(row))).collect();
        let told = told.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let own = [("INFERSCOPE_SEGMENTS", "/segments"), ("INFERSCOPE_RECORDER_PID", " 12 ")];
        let settings = read(&told.chain(own).collect::<Vec<_>>()).unwrap();
        assert_eq!(settings, Settings { segments: "/segments".into(), recorder: Some(12), recording: asked });
    }

    #[test]
    fn what_makes_no_sense_is_the_default_and_without_a_recorder_there_is_nothing() {
        let wrong =
            [("INFERSCOPE_SEGMENTS", "/segments"), ("INFERSCOPE_CALLS", "often"), ("INFERSCOPE_TRACE_SIZE_MB", "0")];
        assert_eq!(read(&wrong).unwrap().recording, Recording::default());
        // How often memory is read is not theirs.
        let other = [("INFERSCOPE_SEGMENTS", "/segments"), ("INFERSCOPE_MEMORY_HZ", "3"), ("INFERSCOPE_CALLS", " C ")];
        let expected = Recording { calls: Calls::WithC, ..Recording::default() };
        assert_eq!(read(&other).unwrap().recording, expected);
        assert_eq!((read(&[]), read(&[("INFERSCOPE_SEGMENTS", "")])), (None, None));
    }
}
