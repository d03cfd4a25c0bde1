//! Whoever is killed, nothing that was recorded before is lost: the workload, the recorder, both; and when the disk is
//! full or the output is removed.

use crate::roles::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use trace::tables::{SliceKind, Table};

/// The scope that the writer has around everything: its duration, parent and args.
fn outer_scope(trace: &Path) -> Vec<(Option<i64>, Option<String>)> {
    let rows = rows(trace, Table::Slices);
    let scopes = rows.iter().filter(|row| integer(row, "kind") == Some(SliceKind::Scope as i64));
    scopes.map(|row| (integer(row, "dur_ns"), text(row, "args"))).collect()
}

#[test]
fn a_killed_workload_leaves_every_record_and_its_open_scope() {
    let folder = Folder::new("workload");
    let (trace, result) = (folder.path("trace"), folder.path("result"));
    let variables: [(&str, &Path); 4] =
        [("OUTPUT", &trace), ("RESULT", &result), ("COUNT", Path::new("100000")), ("END", Path::new("kill"))];
    let status = spawn("recorder", &variables).wait().unwrap();
    assert_eq!(status.code(), Some(128 + 9));
    assert_eq!((calls(&trace), lost(&trace)), (100_000, 0));
    assert_eq!(outer_scope(&trace), [(None, Some("{\"model\":\"gpt2\"}".into()))]);
    let manifest = state(&trace);
    assert_eq!(manifest.state, recorder::manifest::State::Complete);
    assert_eq!((manifest.exit, manifest.segments), (Some(recorder::Exit::Signal(9)), None));
    assert_eq!(manifest.processes.iter().filter(|process| process.program == "writer").count(), 1);
}

/// Kills the recorder between the halves of the writer's work; `both` kills the writer as well, at its end.
fn kill_recorder(name: &str, both: bool) {
    let folder = Folder::new(name);
    let (trace, half, go, written) =
        (folder.path("trace"), folder.path("half"), folder.path("go"), folder.path("written"));
    let end = if both { "kill" } else { "leave" };
    let mut recorder = spawn(
        "recorder",
        &[
            ("OUTPUT", &trace),
            ("COUNT", Path::new("200000")),
            ("HALF", &half),
            ("GO", &go),
            ("WRITTEN", &written),
            ("END", Path::new(end)),
        ],
    );
    // So that something is on disk and something is not.
    until("the writer is half done", || half.exists());
    until("a file is closed", || !rows(&trace, Table::Slices).is_empty());
    kill_all(&mut recorder, &trace);
    fs::write(&go, "").unwrap();
    until("the workload goes on without its recorder", || written.exists());
    let segments = state(&trace).segments.unwrap();
    let writer = fs::read_dir(&segments).unwrap().flatten().find_map(|entry| {
        entry.file_name().to_string_lossy().split_once('-').and_then(|(pid, _)| pid.parse::<i32>().ok())
    });
    // SAFETY: only asks.
    until("the writer has ended", || unsafe { libc::kill(writer.unwrap(), 0) } != 0);

    whole_in_a_copy(&trace);
    let recovered = recorder::recover(&trace).unwrap().unwrap();
    assert_eq!((calls(&trace), recovered.lost, lost(&trace)), (200_000, 0, 0));
    assert!(recovered.records > 0 && recovered.records <= 200_010, "{recovered:?}");
    assert!(
        recovered.notes.iter().any(|note| note.contains("the recorder was killed; its last write was at")),
        "{recovered:?}"
    );
    assert_eq!(state(&trace).state, recorder::manifest::State::Recovered);
    assert!(!Path::new(&segments).exists());
    let scopes = outer_scope(&trace);
    assert!(scopes.iter().all(|(_, args)| args.as_deref() == Some("{\"model\":\"gpt2\"}")), "{scopes:?}");
    assert_eq!(scopes.iter().filter(|(duration, _)| duration.is_some()).count(), usize::from(!both));
    assert_eq!(recorder::recover(&trace).unwrap(), None, "there is nothing left to do");
}

/// A trace that others could have changed is completed elsewhere, and stays as it is.
fn whole_in_a_copy(trace: &Path) {
    let listed = || {
        let entries = fs::read_dir(trace).unwrap().flatten();
        let mut all: Vec<_> = entries.map(|e| (e.file_name(), e.metadata().unwrap().modified().unwrap())).collect();
        all.sort();
        all
    };
    let before = listed();
    fs::set_permissions(trace, PermissionsExt::from_mode(0o777)).unwrap();
    let unfinished = recorder::Unfinished::find(trace, |_| true).unwrap().unwrap();
    let completed = unfinished.complete().unwrap().unwrap();
    let copy = completed.copy.expect("a copy");
    assert_eq!((calls(copy.path()), completed.recovered.lost), (200_000, 0));
    assert!(completed.recovered.notes.iter().any(|note| note.contains("temporary copy")), "{:?}", completed.recovered);
    let path = copy.path().to_owned();
    drop(copy);
    assert!(!path.exists(), "a copy goes when it has been read");
    assert_eq!((listed(), state(trace).state), (before, recorder::manifest::State::Recording));
    fs::set_permissions(trace, PermissionsExt::from_mode(0o700)).unwrap();
}

#[test]
fn a_killed_recorder_loses_nothing_and_the_workload_goes_on() {
    kill_recorder("recorder", false);
}

#[test]
fn both_killed_lose_nothing() {
    kill_recorder("both", true);
}

/// A recording whose writer rests in the middle of COUNT calls, with something on disk.
struct Halfway {
    _folder: Folder,
    trace: PathBuf,
    result: PathBuf,
    go: PathBuf,
    written: PathBuf,
    supervisor: std::process::Child,
}

impl Halfway {
    fn start(name: &str, variables: &[(&str, &str)]) -> Halfway {
        let folder = Folder::new(name);
        let [trace, result, half, go, written] =
            ["trace", "result", "half", "go", "written"].map(|name| folder.path(name));
        let files: [(&str, &Path); 5] =
            [("OUTPUT", &trace), ("RESULT", &result), ("HALF", &half), ("GO", &go), ("WRITTEN", &written)];
        let more = variables.iter().map(|(name, value)| (*name, Path::new(*value)));
        let supervisor = spawn("recorder", &files.into_iter().chain(more).collect::<Vec<_>>());
        until("the writer is half done", || half.exists());
        // Their names only: small ones are joined meanwhile, and removed.
        let closed = |name: &str| name.starts_with("slices.") && name.ends_with(".parquet");
        let names = || fs::read_dir(&trace).unwrap().flatten().map(|entry| entry.file_name());
        until("a file is closed", || names().any(|name| closed(&name.to_string_lossy())));
        Halfway { _folder: folder, trace, result, go, written, supervisor }
    }

    fn go_on(&self) {
        fs::write(&self.go, "").unwrap();
    }

    /// Kills the recorder, and waits for the next one. Returns its pid.
    fn kill_recorder(&self) -> u32 {
        let old = recorder_pid(&self.trace).unwrap();
        kill(old);
        until_some("a new recorder writes the trace", || recorder_pid(&self.trace).filter(|pid| *pid != old))
    }

    fn send(&self, signal: i32) {
        // SAFETY: our own child, not waited for yet.
        unsafe { libc::kill(self.supervisor.id() as i32, signal) };
    }

    fn finish(&mut self) -> String {
        assert_eq!(self.supervisor.wait().unwrap().code(), Some(0));
        fs::read_to_string(&self.result).unwrap()
    }
}

#[test]
fn a_killed_recorder_is_started_again_and_the_trace_goes_on() {
    let mut recording = Halfway::start("again", &[("COUNT", "200000")]);
    let created = state(&recording.trace).created_unix_ns;
    (0..3).for_each(|_| _ = recording.kill_recorder());
    recording.go_on();
    let outcome = recording.finish();
    let note = "the recorder was killed 3 times and restarted: no records were overwritten";
    assert!(outcome.contains(note), "{outcome}");
    assert_eq!((calls(&recording.trace), lost(&recording.trace)), (200_000, 0));
    let manifest = state(&recording.trace);
    assert_eq!(
        (manifest.state, manifest.segments, manifest.created_unix_ns),
        (recorder::manifest::State::Complete, None, created)
    );
    assert_eq!(manifest.processes.iter().filter(|process| process.program == "writer").count(), 1);
    let scopes = outer_scope(&recording.trace);
    assert_eq!(scopes.iter().filter(|(duration, _)| duration.is_some()).count(), 1, "{scopes:?}");
}

#[test]
fn what_is_overwritten_while_no_recorder_runs_is_counted_once() {
    let mut recording = Halfway::start("away", &[("COUNT", "400000"), ("SIZE_MB", "2")]);
    recording.send(libc::SIGSTOP);
    kill(recorder_pid(&recording.trace).unwrap());
    recording.go_on();
    until("everything is written, and most overwritten", || recording.written.exists());
    recording.send(libc::SIGCONT);
    let outcome = recording.finish();
    let (there, missing) = (calls(&recording.trace), lost(&recording.trace));
    let started_again = |row: &parquet::record::Row| text(row, "reason").unwrap() == "overwritten-during-restart";
    let away = rows(&recording.trace, Table::Losses).into_iter().filter(started_again);
    let away: i64 = away.map(|row| integer(&row, "count").unwrap()).sum();
    assert!(away > 0, "the ring held everything");
    // Scope and calls are a record each, and the scope's text came in the first half.
    assert_eq!(there + missing, 400_000, "{there} calls are there, {missing} are said to be missing");
    let note = format!("the recorder was killed once and restarted: {away} records were overwritten");
    assert!(outcome.contains(&note), "{outcome}");
}

#[test]
fn a_recorder_without_its_supervisor_completes_the_trace() {
    let mut recording = Halfway::start("orphan", &[("COUNT", "200000")]);
    let (recorder, segments) = (recorder_pid(&recording.trace).unwrap(), state(&recording.trace).segments.unwrap());
    recording.supervisor.kill().unwrap();
    recording.supervisor.wait().unwrap();
    assert_eq!(recorder::recover(&recording.trace).unwrap(), None, "it is recorded");
    recording.go_on();
    until("the recorder has ended", || !runs(recorder));
    assert_eq!((calls(&recording.trace), lost(&recording.trace)), (200_000, 0));
    let manifest = state(&recording.trace);
    assert_eq!((manifest.state, manifest.exit), (recorder::manifest::State::Complete, None));
    assert!(
        manifest.notes.iter().any(|note| note.said().contains("the supervisor was killed")),
        "{:?}",
        manifest.notes
    );
    assert!(!Path::new(&segments).exists());
}

#[test]
fn a_recorder_that_is_killed_while_it_completes_the_trace_is_started_again() {
    let mut recording = Halfway::start("completing", &[("COUNT", "200000")]);
    recording.go_on();
    until("everything is written", || recording.written.exists());
    let mut killed = Vec::new();
    let ended = until_some("the trace is complete", || {
        let pid = recorder_pid(&recording.trace).filter(|pid| killed.len() < 10 && !killed.contains(pid));
        pid.into_iter().for_each(|pid| {
            kill(pid);
            killed.push(pid);
        });
        recording.supervisor.try_wait().unwrap()
    });
    assert_eq!(ended.code(), Some(0));
    assert!(!killed.is_empty());
    assert_eq!((calls(&recording.trace), lost(&recording.trace)), (200_000, 0));
    assert_eq!(state(&recording.trace).state, recorder::manifest::State::Complete);
}

#[test]
fn a_recovery_leaves_a_living_recording_alone() {
    let folder = Folder::new("living");
    let (trace, leave, written) = (folder.path("trace"), folder.path("leave"), folder.path("written"));
    let variables: [(&str, &Path); 4] =
        [("OUTPUT", &trace), ("LEAVE", &leave), ("WRITTEN", &written), ("END", Path::new("wait"))];
    let mut recorder = spawn("recorder", &variables);
    until("the writer has written", || written.exists());
    assert_eq!(recorder::recover(&trace).unwrap(), None);
    fs::write(&leave, "").unwrap();
    assert_eq!(recorder.wait().unwrap().code(), Some(0));
    assert_eq!(calls(&trace), 1000);
}

#[test]
fn a_removed_folder_is_put_back() {
    let folder = Folder::new("removed");
    let (trace, half, go, result) =
        (folder.path("trace"), folder.path("half"), folder.path("go"), folder.path("result"));
    let mut recorder = spawn(
        "recorder",
        &[("OUTPUT", &trace), ("RESULT", &result), ("COUNT", Path::new("400000")), ("HALF", &half), ("GO", &go)],
    );
    until("the writer is half done", || half.exists());
    until("files are closed", || fs::read_dir(&trace).is_ok() && !rows(&trace, Table::Slices).is_empty());
    fs::remove_dir_all(&trace).unwrap();
    fs::write(&go, "").unwrap();
    assert_eq!(recorder.wait().unwrap().code(), Some(0));
    assert_eq!((calls(&trace), lost(&trace)), (400_000, 0));
    assert!(fs::read_to_string(&result).unwrap().contains("were deleted while recording"));
    assert_eq!(state(&trace).state, recorder::manifest::State::Complete);
}

/// A small disk of its own.
struct Disk(std::path::PathBuf);

impl Disk {
    fn new(at: std::path::PathBuf, size: &str) -> Disk {
        fs::create_dir_all(&at).unwrap();
        let options = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(&at).status();
        assert!(mounted.is_ok_and(|status| status.success()), "this test mounts a small tmpfs, so it must run as root");
        Disk(at)
    }

    fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_never_blocks_and_every_record_is_accounted_for() {
    let folder = Folder::new("full");
    let disk = Disk::new(folder.path("disk"), "600k");
    let (trace, result) = (disk.0.join("trace"), folder.path("result"));
    let variables: [(&str, &Path); 4] =
        [("OUTPUT", &trace), ("RESULT", &result), ("COUNT", Path::new("3000000")), ("NAMES", Path::new("5000"))];
    assert_eq!(spawn("recorder", &variables).wait().unwrap().code(), Some(0));
    let outcome = fs::read_to_string(&result).unwrap();
    assert!(outcome.contains("free some space, then run `inferscope analyze"), "{outcome}");
    // Still full: the recovery says so and changes nothing.
    assert!(matches!(recorder::recover(&trace), Err(recorder::Error::NotCompleted { .. })));
    disk.grow("500m");
    recorder::recover(&trace).unwrap().unwrap();
    let (there, missing) = (calls(&trace), lost(&trace));
    assert_eq!(there + missing, 3_000_000, "{there} calls are there, {missing} are said to be missing");
    assert!(there > 500_000, "the ring and the memory alone hold more than {there}");
    let manifest = state(&trace);
    assert_eq!((manifest.state, manifest.exit), (recorder::manifest::State::Recovered, Some(recorder::Exit::Code(0))));
}
