//! What somebody tries who does not know the command yet: no arguments, `help`, `-` for stdout, names that are not text,
//! Ctrl-C while a file is written.

use crate::support::{Place, files};
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};
use timeline::fixture::Fixture;

#[test]
fn without_a_command_there_is_help_and_no_complaint() {
    let place = Place::new("no-command");
    for arguments in [&[][..], &["rules"], &["config"]] {
        let told = place.run(arguments);
        assert_eq!((told.code, told.out.as_str()), (Some(2), ""));
        assert!(told.err.contains("Usage: inferscope") && !told.err.contains("inferscope: "), "{}", told.err);
    }
    assert!(place.run(["help"]).fine().out.contains("Examples:"));
    assert!(place.run(["help", "run"]).fine().out.contains("--overhead-budget"));
}

#[test]
fn a_line_is_stdout_wherever_a_file_can_be_named() {
    let place = Place::with_trace("stdout");
    for (arguments, text) in [
        (&["analyze", "trace"][..], "Data quality"),
        (&["analyze", "trace", "--format", "json"], "analysis_version"),
        (&["export", "trace", "--format", "json"], "format_version"),
        (&["diff", "trace", "trace"], "A trace\n"),
    ] {
        let told = place.run([arguments, &["--output", "-"]].concat()).fine();
        assert!(told.out.contains(text), "{arguments:?}: {}", told.out);
        assert_eq!(told.err, "", "{arguments:?}");
    }
    assert!(!place.at("-").exists());
}

#[test]
fn samples_that_there_are_none_of_make_no_profile() {
    let place = Place::new("no-profile");
    Fixture::parse("process 1 a 3.12\nstep 0 1 0..9 request #1").write(&place.at("none"));
    let error = place.run(["export", "none", "--format", "pprof", "--output", "p.pb.gz"]).refused(1);
    assert!(error.contains("no stacks were sampled") && !place.at("p.pb.gz").exists(), "{error}");
}

#[test]
fn changes_need_no_quotes() {
    let place = Place::with_trace("words");
    let quoted = place.run(["whatif", "trace", "scale host:tokenise 0.5"]).fine().out;
    assert_eq!(place.run(["whatif", "trace", "scale", "host:tokenise", "0.5"]).fine().out, quoted);
    let error = place.run(["whatif", "trace", "scale", "host:tokenise", "half"]).refused(2);
    assert!(error.contains("column 21"), "{error}");
}

#[test]
fn a_folder_may_have_a_name_that_is_no_text() {
    let place = Place::new("no-text");
    let name = OsStr::from_bytes(b"tr\xff");
    let told = place.run([OsStr::new("run"), OsStr::new("--output"), name, OsStr::new("true")]).fine();
    assert!(!told.err.contains("must be text"), "{}", told.err);
    place.run([OsStr::new("analyze"), name]).fine();
}

#[test]
fn a_report_that_cannot_be_written_takes_nothing_else_away() {
    let place = Place::new("no-folder");
    place.write("gone/now", "");
    let told = place.run(["run", "--output", "trace", "--report", "gone/x.md", "rm", "-r", "gone"]);
    assert_eq!(told.code, Some(1), "a report is missing: {}", told.err);
    assert!(told.err.contains("cannot write gone/x.md"), "{}", told.err);
    assert!(told.err.contains("recorded ") && told.err.contains("details  inferscope analyze trace"), "{}", told.err);
}

#[test]
fn a_program_without_python_is_no_reason_to_warn() {
    let place = Place::new("no-python");
    place.run(["run", "--output", "trace", "--quiet", "true"]).fine();
    let out = place.run(["analyze", "trace", "--format", "json"]).fine().out;
    let analysis: serde_json::Value = serde_json::from_str(&out).unwrap();
    let lines = analysis["health"]["lines"].as_array().unwrap();
    let note = lines.iter().find(|line| line["text"] == "no stacks: no Python process was seen");
    assert_eq!(note.unwrap()["state"], "info", "{lines:?}");
    let text = place.run(["analyze", "trace", "--color", "always"]).fine().out;
    assert!(text.contains("\n  no stacks: no Python process was seen\n"), "{text}");
}

#[test]
fn a_process_is_told_by_its_number() {
    let place = Place::new("pid");
    for name in ["server.py", "0", "-5"] {
        let error = place.run(["attach", "--", name]).refused(2);
        assert!(error.contains("`pgrep -f NAME` finds it"), "{error}");
    }
}

#[test]
fn whoever_does_not_wait_for_the_report_is_told_where_the_trace_is() {
    let place = Place::new("impatient");
    // Nobody reads from it, so this report takes for ever.
    assert!(std::process::Command::new("mkfifo").arg(place.at("slow.md")).status().unwrap().success());
    let arguments = ["run", "--output", "a trace", "--report", "slow.md", "true"];
    let mut child = place.command(arguments).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while !place.at("a trace/report.html").exists() {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "no report");
        std::thread::yield_now();
    }
    // SAFETY: a plain system call; the child was not waited for yet, so the pid is still its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(libc::SIGINT));
    let said = "inferscope: interrupted before the report was written; to see it, run `inferscope analyze 'a trace'`\n";
    assert_eq!(String::from_utf8_lossy(&output.stderr), said);
}

#[test]
fn an_interrupt_leaves_no_half_written_file() {
    let place = Place::new("interrupt");
    let mut text = String::from("{\"traceEvents\":[");
    for index in 0..150_000 {
        let comma = if index == 0 { "" } else { "," };
        let name = format!("\"name\":\"aten::add\",\"pid\":1,\"tid\":1,\"ts\":{},\"dur\":1", 2 * index);
        _ = write!(text, "{comma}{{\"ph\":\"X\",\"cat\":\"cpu_op\",{name}}}");
    }
    place.write("big.json", text + "]}");
    let arguments = ["export", "big.json", "--format", "json", "--output", "all.json"];
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let mut child = place.command(arguments).stderr(Stdio::null()).spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while files(&place.at(".")).len() < 2 {
            assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "never seen writing");
            std::thread::yield_now();
        }
        // SAFETY: a plain system call; the child was not waited for yet, so the pid is still its own.
        unsafe { libc::kill(child.id() as i32, signal) };
        assert_eq!(child.wait().unwrap().signal(), Some(signal));
        let left: Vec<_> = files(&place.at(".")).into_iter().filter(|file| !file.ends_with("big.json")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}
