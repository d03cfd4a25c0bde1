//! Names that were mistyped, values in the wrong place, formats that were not named: what was meant is said, or taken.

use crate::support::{Place, Told};
use std::fs::File;
use std::io::Read;
use std::os::fd::FromRawFd;

#[test]
fn a_step_that_is_not_there_is_told_with_the_nearest() {
    let place = Place::with_trace("step-slip");
    for arguments in [
        &["analyze", "trace", "--step", "reqest"][..],
        &["check", "trace", "--step", "reqest", "--max-step-ms", "5"],
        &["diff", "trace", "trace", "--step", "reqest"],
        &["whatif", "trace", "graph steps", "--step", "reqest"],
    ] {
        let error = place.run(arguments).refused(5);
        assert!(error.ends_with("did you mean \"request\"?\n"), "{error}");
    }
    let error = place.run(["analyze", "trace", "--step", "xylophone"]).refused(5);
    assert!(error.ends_with("it has \"request\", \"tokenise\"\n"), "{error}");
    timeline::fixture::Fixture::parse("process 1 a 3.12\nsample 0 1 5 active f@a.py:1").write(&place.at("bare"));
    let error = place.run(["analyze", "bare", "--step", "request"]).refused(5);
    assert!(error.contains("mark them with `inferscope.step()`"), "{error}");
}

#[test]
fn a_function_of_a_replay_is_told_with_the_nearest() {
    let place = Place::with_trace("host-slip");
    // Recorded as a scope, and one that only samples show.
    for (slip, meant) in [("tokenize", "tokenise"), ("mian", "main")] {
        let error = place.run(["whatif", "trace", &format!("scale host:{slip} 0.5")]).refused(5);
        assert!(error.ends_with(&format!("did you mean \"{meant}\"?\n")), "{error}");
    }
    let error = place.run(["whatif", "trace", "remove host:xylophone"]).refused(5);
    assert!(error.contains("the longest are \"request\", \"tokenise\""), "{error}");
}

#[test]
fn metrics_rules_fixes_and_formats_too() {
    let place = Place::with_trace("other-slips");
    for (arguments, meant) in [
        (&["diff", "trace", "trace", "--fail-on", "step_p5 > +5%"][..], "did you mean step_p50?"),
        (&["rules", "explain", "hot-lin"], "did you mean hot-line?"),
        (&["verify", "--fix", "gc-freze", "true"], "did you mean gc-freeze?"),
        (&["export", "trace", "--format", "perfeto"], "'perfetto'"),
        (&["analyze", "trace", "--format", "markdwon"], "'markdown'"),
        (&["analize", "trace"], "'analyze'"),
    ] {
        let error = place.run(arguments).refused(2);
        assert!(error.contains(meant), "{error}");
    }
}

#[test]
fn a_script_that_is_not_there_is_no_command() {
    let place = Place::new("no-script");
    assert_eq!(place.run(["run", "nothere.py"]).refused(127), "inferscope: no such file: nothere.py\n");
    assert_eq!(place.run(["run", "./nothere"]).refused(127), "inferscope: no such file: ./nothere\n");
    place.write("serve.py", "");
    let error = place.run(["run", "srve.py", "--port", "80"]).refused(127);
    assert_eq!(error, "inferscope: no such file: srve.py; did you mean serve.py?\n");
    place.write("start", "");
    assert!(place.run(["run", "start"]).refused(127).contains("write ./start"));
}

#[test]
fn a_value_of_calls_without_its_equals_sign_is_told() {
    let place = Place::new("calls-c");
    place.write("serve.py", "");
    let error = place.run(["run", "--calls", "c", "serve.py", "--port", "80"]).refused(2);
    assert!(error.contains("write `--calls=c serve.py --port 80`"), "{error}");
    // Who did not ask for calls means a command.
    let error = place.run(["run", "c", "serve.py"]).refused(127);
    assert!(error.contains("c: command not found"), "{error}");
}

#[test]
fn a_file_that_is_named_for_a_tool_is_written_for_it() {
    let place = Place::with_trace("by-name");
    for (name, format) in [
        ("x.pftrace", "perfetto"),
        ("x.speedscope.json", "speedscope"),
        ("x.chrome.json", "chrome"),
        ("x.json", "json"),
        ("x.pb.gz", "pprof"),
        ("x.folded", "collapsed"),
    ] {
        let told = place.run(["export", "trace", "--output", name]).fine();
        assert!(told.err.starts_with(&format!("inferscope: wrote {name}")), "{}", told.err);
        assert_eq!(told.err.contains("--format chrome"), name == "x.json", "{}", told.err);
        place.run(["export", "trace", "--format", format, "--output", "same"]).fine();
        assert_eq!(std::fs::read(place.at(name)).unwrap(), std::fs::read(place.at("same")).unwrap(), "{name}");
    }
    std::fs::create_dir(place.at("tables")).unwrap();
    place.run(["export", "trace", "--output", "tables"]).fine();
    assert!(crate::support::files(&place.at("tables")).len() > 3);
    for (arguments, said) in [
        (&["--output", "x.html"][..], "inferscope analyze --output x.html"),
        (&["--output", "x.doc"], "add --format chrome, json,"),
        (&[], "--output trace.pftrace"),
    ] {
        // Refused before the trace is opened.
        let error = place.run([&["export", "nowhere"], arguments].concat()).refused(2);
        assert!(error.contains(said), "{error}");
    }
}

/// What a command writes to a terminal, and how it ends.
fn on_a_terminal(place: &Place, arguments: &[&str]) -> (Told, String) {
    let (mut master, mut slave) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: the two numbers are filled by the call; name and settings are not asked for.
    assert_eq!(unsafe { libc::openpty(&mut master, &mut slave, none, none.cast(), none.cast()) }, 0);
    // SAFETY: both were opened just now, and belong to nobody else.
    let (mut master, slave) = unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) };
    let mut command = place.command(arguments);
    command.stdout(slave);
    let output = command.output().unwrap();
    // Closes our copies of the other end: what is left to read ends with an error, as terminals do.
    drop(command);
    let mut shown = Vec::new();
    let _ = master.read_to_end(&mut shown);
    (Told::new(output), String::from_utf8_lossy(&shown).into_owned())
}

#[test]
fn binary_formats_are_kept_from_a_terminal() {
    let place = Place::with_trace("terminal");
    for (format, file) in [("pprof", "trace.pb.gz"), ("perfetto", "trace.pftrace")] {
        for output in [&[][..], &["--output", "-"]] {
            let (told, shown) = on_a_terminal(&place, &[&["export", "trace", "--format", format], output].concat());
            assert_eq!((told.code, shown.as_str()), (Some(2), ""), "{}", told.err);
            assert!(told.err.contains(&format!("{format} is a binary format")), "{}", told.err);
            assert!(told.err.contains(&format!("--output {file}")), "{}", told.err);
        }
        // A pipe takes them.
        place.run(["export", "trace", "--format", format]).fine();
    }
    let (told, shown) = on_a_terminal(&place, &["export", "trace", "--format", "collapsed"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(shown.contains("tokenise"), "{shown}");
}
