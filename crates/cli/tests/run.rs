//! `inferscope run` around a shell: it ends as the command does, keeps its own words to stderr, and leaves a report.

use crate::support::Place;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

#[test]
fn output_and_exit_code_are_the_commands() {
    let place = Place::new("run");
    let told = place.run(["run", "--output", "trace", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!((told.code, told.out.as_str()), (Some(7), "out\n"), "{}", told.err);
    assert!(told.err.starts_with("err\n") && told.err.contains("trace"), "{}", told.err);
    let report = std::fs::read_to_string(place.at("trace/report.md")).unwrap();
    assert!(report.contains("exit code 7"), "{report}");
    place.run(["analyze", "trace"]).fine();
}

#[test]
fn quiet_is_quiet_and_a_second_report_goes_where_it_should() {
    let place = Place::new("quiet");
    let told = place.run(["run", "--quiet", "--report", "mine.txt", "--", "sh", "-c", "exit 0"]).fine();
    assert_eq!((told.out.as_str(), told.err.as_str()), ("", ""));
    assert!(place.at("mine.txt").is_file() && place.at("inferscope-traces").is_dir());
}

#[test]
fn a_report_that_cannot_be_written_is_told_before_the_command_runs() {
    let place = Place::new("report");
    std::fs::create_dir(place.at("folder.md")).unwrap();
    for report in ["no/such/folder/x", "folder.md"] {
        for rest in [["run", "--report", report, "--", "touch", "ran"].as_slice(), &["attach", "1", "--report", report]]
        {
            let error = place.run(rest).refused(1);
            assert!(error.contains(report) && error.contains("--report"), "{error}");
        }
    }
    assert!(!place.at("ran").exists() && !place.at("inferscope-traces").exists());
    // The trace's own folder is made in time.
    place.run(["run", "-q", "--output", "trace", "--report", "trace/mine.txt", "--", "true"]).fine();
    assert!(place.at("trace/mine.txt").is_file());
}

#[test]
fn a_report_that_is_lost_on_the_way_is_no_success() {
    let place = Place::new("lost-report");
    for (code, told) in [(0, 1), (4, 4)] {
        std::fs::create_dir(place.at("out")).unwrap();
        let command = format!("rmdir out; exit {code}");
        let ended = place.run(["run", "--report", "out/x.md", "--", "sh", "-c", &command]);
        assert_eq!(ended.code, Some(told), "{}", ended.err);
        assert!(ended.err.contains("out/x.md"), "{}", ended.err);
    }
}

#[test]
fn a_death_by_signal_is_passed_on() {
    let place = Place::new("signal");
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGSEGV] {
        let told = place.run(["run", "-q", "--", "sh", "-c", &format!("kill -{signal} $$")]);
        assert_eq!(told.status.signal(), Some(signal), "{:?} {}", told.status, told.err);
        assert!(!told.status.core_dumped());
    }
}

#[test]
fn layers_without_pytorch_are_not_waited_for() {
    let place = Place::new("no-layers");
    let said = "no layers: no recorded process imported PyTorch";
    let told = place.run(["run", "--layers", "--output", "asked", "true"]).fine();
    assert!(told.err.contains(said), "{}", told.err);
    assert!(place.run(["analyze", "asked"]).fine().out.contains("no layers: "));
    let told = place.run(["run", "--output", "not-asked", "true"]).fine();
    assert!(!told.err.contains("layers"), "{}", told.err);
}

#[test]
fn a_command_that_cannot_start_is_127_or_126_and_leaves_nothing() {
    let place = Place::new("no-command");
    assert!(place.run(["run", "--", "no-such-command-anywhere"]).refused(127).contains("not found"));
    let file = place.write("plain.txt", "text");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    place.run(["run", "--", "./plain.txt"]).refused(126);
    assert!(!place.at("inferscope-traces").exists());
    let error = place.run(["attach", "4194304"]).err;
    assert!(error.contains("no process has pid 4194304"), "{error}");
}
