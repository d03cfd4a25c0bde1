//! `inferscope analyze` and `export` on good traces and on everything else that a path may lead to.

use crate::support::{Place, files};
use serde_json::Value;

#[test]
fn the_summary_goes_to_stdout_or_to_a_file() {
    let place = Place::with_trace("analyze");
    let told = place.run(["analyze", "trace"]).fine();
    for text in ["python serve.py", "Steps", "request", "lines by samples", "serve.py:14", "Not recorded or lost"] {
        assert!(told.out.contains(text), "{text}: {}", told.out);
    }
    assert!(!told.out.contains('\x1b') && told.err.is_empty(), "{}", told.err);
    let told = place.run(["analyze", "trace", "--output", "summary.txt"]).fine();
    assert_eq!(told.out, "");
    let kept = std::fs::read_to_string(place.at("summary.txt")).unwrap();
    assert_eq!(kept, place.run(["analyze", "trace"]).out);
    let coloured = place.run(["analyze", "trace", "--color", "always"]).fine();
    assert!(coloured.out.contains("\x1b[1m"));
    let ascii = place.command(["analyze", "trace"]).env("LC_ALL", "C").output().unwrap();
    assert!(ascii.stdout.is_ascii());
}

#[test]
fn without_a_name_it_is_the_newest() {
    let place = Place::with_trace("newest");
    let error = place.run(["analyze"]).refused(5);
    assert!(error.contains("inferscope run"), "{error}");
    std::fs::create_dir(place.at("inferscope-traces")).unwrap();
    for name in ["20260101-000000-a-1", "20260102-000000-b-2"] {
        std::fs::create_dir(place.at("inferscope-traces").join(name)).unwrap();
        for file in files(&place.at("trace")) {
            std::fs::copy(&file, place.at("inferscope-traces").join(name).join(file.file_name().unwrap())).unwrap();
        }
    }
    std::fs::create_dir(place.at("inferscope-traces/zzz-no-trace")).unwrap();
    assert!(place.run(["analyze"]).fine().err.contains("20260102-000000-b-2"));
    let error = place.run(["analyze", "inferscope-traces"]).refused(5);
    assert!(error.contains("it holds traces; name one"), "{error}");
}

#[test]
fn what_is_not_a_trace_is_one_sentence_and_exit_code_5() {
    let place = Place::with_trace("bad");
    std::fs::create_dir(place.at("empty")).unwrap();
    place.write("file", "just text");
    place.write("other/manifest.json", r#"{"format":"zip"}"#);
    place.write("newer/manifest.json", r#"{"format":"inferscope-trace","format_version":999}"#);
    place.write("cut/manifest.json", r#"{"format":"inferscope-tr"#);
    place.write("void/manifest.json", "");
    place.write("list/manifest.json", "[]");
    for (path, words) in [
        ("nowhere", "there is no trace at nowhere"),
        ("empty", "manifest.json"),
        ("file", "not a trace"),
        ("other", "not a trace"),
        ("newer", "format 999"),
        ("cut", "damaged"),
        ("void", "empty"),
        ("list", "not a trace"),
        ("trace/manifest.json", "give the folder"),
    ] {
        for arguments in [vec!["analyze", path], vec!["export", path, "--format", "json"]] {
            let error = place.run(&arguments).refused(5);
            assert!(error.contains(words) && error.lines().count() == 1, "{arguments:?}: {error}");
        }
    }
}

#[test]
fn a_damaged_table_is_named_and_the_rest_is_shown() {
    let place = Place::with_trace("damaged");
    for file in files(&place.at("trace")) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let whole = std::fs::read(&file).unwrap();
        for cut in [0, 1, 4, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&file, &whole[..cut]).unwrap();
            let told = place.run(["analyze", "trace"]).fine();
            let flat = told.out.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(flat.contains(&name), "{name} cut at {cut}: {}", told.out);
        }
        std::fs::write(&file, &whole).unwrap();
    }
}

#[test]
fn a_trace_without_events_is_an_honest_summary() {
    let place = Place::with_trace("nothing");
    for file in files(&place.at("trace")).iter().filter(|file| file.extension().unwrap() == "parquet") {
        std::fs::remove_file(file).unwrap();
    }
    let told = place.run(["analyze", "trace"]).fine();
    assert!(told.out.contains("no stack samples") && told.out.contains("no memory"), "{}", told.out);
}

#[test]
fn every_export_is_json_on_stdout_or_in_a_file() {
    let place = Place::with_trace("export");
    for (format, key, count) in [("chrome", "traceEvents", 13), ("json", "events", 14)] {
        let told = place.run(["export", "trace", "--format", format]).fine();
        let root: Value = serde_json::from_str(&told.out).unwrap();
        assert_eq!(root[key].as_array().unwrap().len(), count, "{}", told.out);
        place.run(["export", "trace", "--format", format, "--output", "out.json"]).fine();
        assert_eq!(std::fs::read_to_string(place.at("out.json")).unwrap(), told.out);
    }
}

#[test]
fn usage_is_exit_code_2() {
    let place = Place::with_trace("usage");
    let error = place.run(["export", "trace", "--format", "tea-leaves"]).refused(2);
    assert!(error.contains("chrome") && error.contains("json"), "{error}");
    place.run(["export", "trace"]).refused(2);
    place.run(["analyse", "trace"]).refused(2);
    place.run(["analyze", "trace", "--no-such-flag"]).refused(2);
    assert!(place.run(["analyze", "trace", "--top", "0"]).refused(2).contains("--top"));
}

#[test]
fn an_output_that_cannot_be_written_is_an_error_and_leaves_nothing() {
    let place = Place::with_trace("unwritable");
    std::fs::create_dir(place.at("folder")).unwrap();
    for path in ["/proc/no/such/place", "no/such/folder/file", "folder"] {
        for arguments in [vec!["analyze", "trace", "--output", path], vec!["export", "trace", "-f", "json", "-o", path]]
        {
            let error = place.run(&arguments).refused(1);
            assert!(error.contains("cannot write"), "{error}");
        }
    }
    let before = files(&place.at("."));
    assert_eq!(before.len(), 2, "{before:?}");
    let full = place.run(["export", "trace", "--format", "json", "--output", "/dev/full"]).refused(1);
    assert!(full.contains("/dev/full"), "{full}");
}

#[test]
fn a_reader_who_leaves_early_is_no_error() {
    use std::io::Read;
    let place = Place::with_trace("pipe");
    let mut child = place
        .command(["export", "trace", "--format", "chrome"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
fn names_cannot_reach_the_terminal() {
    let place = Place::new("evil");
    let text = "process 100 a 3.12\nscope 0 100 0..9 \x1b]0;owned\x07 #1\nmark 0 100 3 \u{202e}abc";
    timeline::fixture::Fixture::parse(text).write(&place.at("trace"));
    let out = place.run(["analyze", "trace"]).fine().out;
    assert!(!out.contains('\x1b') && !out.contains('\x07') && !out.contains('\u{202e}'), "{out:?}");
}
