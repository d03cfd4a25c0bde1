//! A recorded trace is followed: windows of it, the whole of it, and what is left when it is damaged or gone.

use live::model::State;
use live::{Model, Position, Watcher};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name)
}

fn watcher(trace: &Path, seconds: u64) -> Watcher {
    Watcher::new(trace, Duration::from_secs(seconds), Default::default(), Box::new(|| false))
}

pub fn decode() -> Model {
    watcher(&trace("decode"), 3600).look(Position::Newest).unwrap()
}

#[test]
fn a_window_of_everything_says_what_the_report_says() {
    let model = decode();
    let timeline = timeline::open(&trace("decode")).unwrap();
    let diagnosis = diagnosis::diagnose(&timeline, &Default::default());
    assert_eq!(model.state, State::Ended);
    assert_eq!(model.answer, diagnosis.answer);
    assert_eq!(model.findings.len(), diagnosis.findings.len());
    let steps = model.steps.as_ref().unwrap();
    assert_eq!((steps.p50_ns, steps.count), (diagnosis.steps.p50(), diagnosis.steps.measured().count() as u64));
    assert!(model.devices.iter().any(|device| device.busy_percent.is_some_and(|busy| busy > 0.0)));
    assert!(!model.kernels.is_empty() && !model.tracks.is_empty() && !model.processes.is_empty());
}

#[test]
fn windows_of_a_finished_recording_are_parts_of_it() {
    let mut watcher = watcher(&trace("decode"), 1);
    let all = watcher.look(Position::Newest).unwrap();
    let recorded = all.clock.recorded_ns;
    assert!(all.clock.start_ns > 0 || recorded <= 1_000_000_000);
    let first = watcher.look(Position::At(recorded / 2)).unwrap();
    assert_eq!(first.clock.end_ns, recorded / 2);
    assert!(first.clock.start_ns <= first.clock.end_ns);
    // Before anything was recorded nothing is said, and nothing fails.
    let none = watcher.look(Position::At(0)).unwrap();
    assert!(none.steps.is_none() && none.functions.is_empty());
    // Beyond the end is the end.
    assert_eq!(watcher.look(Position::At(u64::MAX)).unwrap().clock.end_ns, recorded);
}

#[test]
fn the_json_has_its_version_and_round_trips_as_json() {
    let text = serde_json::to_string(&decode()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["live_version"], live::model::VERSION);
    assert_eq!(value["state"], "ended");
    assert!(value["clock"]["lag_ns"].is_null());
}

#[test]
fn a_trace_that_is_gone_is_an_error_and_not_a_panic() {
    let folder = std::env::temp_dir().join(format!("inferscope-live-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for file in std::fs::read_dir(trace("decode")).unwrap().flatten() {
        std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    let mut watcher = watcher(&folder, 60);
    assert!(watcher.look(Position::Newest).is_ok());
    // A file is cut while it is watched.
    let slices = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let slices = slices.into_iter().find(|path| path.to_string_lossy().contains("slices.")).unwrap();
    std::fs::write(&slices, b"PAR1").unwrap();
    assert!(watcher.look(Position::Newest).is_ok());
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(watcher.look(Position::Newest).is_err());
}
