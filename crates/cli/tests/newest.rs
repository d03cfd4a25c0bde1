//! Which trace a command opens that was given none: that of the newest run, wherever it was written, and never silently an older one.

use crate::support::Place;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

/// A folder with one usual recording, and one that was written elsewhere.
fn place(name: &str) -> (Place, String) {
    let place = Place::new(name);
    place.run(["run", "--quiet", "true"]).fine();
    let usual = opened(&place);
    assert!(usual.starts_with("inferscope-traces/2"), "{usual}");
    place.run(["run", "--quiet", "--output", "elsewhere/a trace", "true"]).fine();
    (place, usual)
}

fn told(place: &Place) -> String {
    place.run(["analyze", "--format", "json"]).fine().err
}

/// The trace that was opened.
fn opened(place: &Place) -> String {
    let told = told(place);
    let line = told.lines().find_map(|line| line.strip_prefix("inferscope: opening "));
    line.unwrap_or_else(|| panic!("{told}")).to_owned()
}

#[test]
fn the_newest_run_is_found_wherever_it_was_written() {
    let (place, usual) = place("newest");
    assert_eq!(opened(&place), "elsewhere/a trace");
    let error = place.run(["check", "--max-step-ms", "0"]).err;
    assert!(error.starts_with("inferscope: opening elsewhere/a trace\n"), "{error}");
    // Newer ones, as usual, under a name of their own in the usual folder, and in another.
    place.run(["run", "--quiet", "true"]).fine();
    let newer = opened(&place);
    assert!(newer.starts_with("inferscope-traces/2") && newer != usual, "{newer}");
    place.run(["run", "--quiet", "--output", "inferscope-traces/mine", "true"]).fine();
    assert_eq!(opened(&place), "inferscope-traces/mine");
    let outside = Place::new("newest-outside");
    let path = outside.at("trace").display().to_string();
    place.run(["run", "--quiet", "--output", &path, "true"]).fine();
    assert_eq!(opened(&place), path);
    // What `verify` runs is no run of the user's.
    place.run(["verify", "--fix", "launch-queue", "--rounds", "2", "true"]);
    assert_eq!(opened(&place), path);
    std::fs::remove_dir_all(&path).unwrap();
    let told = told(&place);
    assert!(told.contains(&format!("the newest run was recorded to {path}, which is gone\n")), "{told}");
    assert_eq!(opened(&place), newer);
}

#[test]
fn a_path_that_may_be_anybodys_is_not_followed() {
    let (place, usual) = place("newest-hostile");
    let pointer = place.at("inferscope-traces/.newest");
    let trace = place.at("elsewhere/a trace");
    let path = std::fs::read(&pointer).unwrap();
    let ignored = |why: &str| {
        let told = told(&place);
        assert!(told.contains("inferscope-traces/.newest is ignored: ") && told.contains(why), "{why}: {told}");
        assert_eq!(opened(&place), usual, "{why}");
    };
    std::fs::set_permissions(&pointer, PermissionsExt::from_mode(0o666)).unwrap();
    ignored("others may write to it");
    std::fs::set_permissions(&pointer, PermissionsExt::from_mode(0o600)).unwrap();
    for wrong in [&b"elsewhere/a trace"[..], b"", b"/a\0b", &[b'/'; 5000]] {
        std::fs::write(&pointer, wrong).unwrap();
        ignored("it is not the path of a trace");
    }
    std::fs::write(&pointer, &path).unwrap();
    chown(&trace, Some(12345), None).expect("this test makes a folder of another user, so it must run as root");
    ignored("belongs to another user (uid 12345)");
    chown(&trace, Some(0), None).unwrap();
    chown(&pointer, Some(12345), None).unwrap();
    ignored("it belongs to another user (uid 12345)");
    std::fs::rename(&pointer, place.at("moved")).unwrap();
    symlink(place.at("moved"), &pointer).unwrap();
    ignored("symbolic link");
    std::fs::remove_file(&pointer).unwrap();
    std::fs::create_dir(&pointer).unwrap();
    ignored("it is a folder");
}

#[test]
fn where_nothing_was_recorded_a_trace_beside_is_named_but_not_opened() {
    let place = Place::with_trace("newest-none");
    let error = place.run(["analyze"]).refused(5);
    assert!(error.contains("no trace in ./inferscope-traces: pass the folder that was given to `run --output` (the newest nearby is trace), or record one"), "{error}");
    // A run with a name of its own makes no folder that nobody asked for.
    place.run(["run", "--quiet", "--output", "other", "true"]).fine();
    assert!(!place.at("inferscope-traces").exists());
    place.run(["analyze"]).refused(5);
}
