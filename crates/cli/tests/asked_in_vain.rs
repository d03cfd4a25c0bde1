//! What was asked for and cannot be had is refused with a reason, instead of a file or a recording without it.

use crate::support::{Place, files};
use timeline::fixture::Fixture;

#[test]
fn parquet_tables_come_only_from_a_recorded_trace_into_another_folder() {
    let place = Place::with_trace("tables");
    place.run(["export", "trace", "--format", "json", "--output", "trace.json"]).fine();
    let error = place.run(["export", "trace.json", "--format", "parquet", "--output", "new"]).refused(5);
    assert!(error.contains("only a trace folder that InferScope recorded has Parquet tables"), "{error}");
    assert!(error.contains("trace.json is a file") && !place.at("new").exists(), "{error}");
    let sizes = || files(&place.at("trace")).iter().map(|file| file.metadata().unwrap().len()).collect::<Vec<_>>();
    let before = sizes();
    let error = place.run(["export", "trace", "--format", "parquet", "--output", "./trace/"]).refused(2);
    assert!(error.contains("is the trace itself"), "{error}");
    assert_eq!(sizes(), before);
    place.run(["export", "trace", "--format", "parquet", "--output", "new"]).fine();
    place.run(["export", "trace", "--format", "parquet", "--output", "new"]).fine();
    assert_eq!(files(&place.at("new")).len(), before.len() - 1, "all but the manifest");
}

#[test]
fn no_stacks_make_no_file_of_stacks() {
    let place = Place::with_trace("no-stacks");
    let export = |trace| place.run(["export", trace, "--format", "collapsed", "--output", "stacks.txt"]);
    for (text, why) in [
        ("step 0 1 0..9 request #1", "nothing to write: no stacks were sampled"),
        ("sample 0 1 1 - f@a.py:1", "nothing to write: no thread was running"),
    ] {
        Fixture::parse(&format!("process 1 a 3.12\n{text}")).write(&place.at("none"));
        let error = export("none").refused(1);
        assert!(error.contains(why), "{error}");
        assert!(!place.at("stacks.txt").exists());
        std::fs::remove_dir_all(place.at("none")).unwrap();
    }
    export("trace").fine();
    assert!(std::fs::read_to_string(place.at("stacks.txt")).unwrap().contains("tokenise"));
}

#[test]
fn a_report_under_an_unknown_ending_is_not_written() {
    let place = Place::with_trace("ending");
    for name in ["x.pdf", "x.json.gz", "x.pftrace"] {
        let error = place.run(["analyze", "trace", "--output", name]).refused(2);
        assert!(error.contains(".md, .html, .json or .txt") && error.contains("--format"), "{error}");
        for recording in [["run", "--report", name, "true"], ["attach", "--report", name, "1"]] {
            let error = place.run(recording).refused(2);
            assert!(error.contains(".md, .html, .json or .txt"), "{error}");
        }
        assert!(!place.at(name).exists());
    }
    place.run(["analyze", "trace", "--output", "x.pdf", "--format", "html"]).fine();
    place.run(["analyze", "trace", "--output", "x"]).fine();
    place.run(["analyze", "trace", "--output", "x.HTML"]).fine();
    let read = |name| std::fs::read_to_string(place.at(name)).unwrap();
    assert!(read("x.pdf").contains("</html>") && read("x.HTML").contains("</html>") && read("x").starts_with('#'));
}

#[test]
fn a_comparison_is_written_as_its_file_is_called() {
    let place = Place::with_trace("diff-ending");
    for name in ["d.html", "d.pdf", "d.json.gz"] {
        // Refused before either is opened.
        let error = place.run(["diff", "nowhere", "nowhere", "--output", name]).refused(2);
        assert!(error.contains(".md, .json or .txt") && error.contains("--format"), "{error}");
        assert!(!place.at(name).exists());
    }
    let written = |arguments: &[&str], name| {
        let told = place.run([&["diff", "trace", "trace", "--output", name], arguments].concat()).fine();
        assert_eq!((told.out.as_str(), told.err), ("", format!("inferscope: wrote {name}\n")));
        std::fs::read_to_string(place.at(name)).unwrap()
    };
    assert!(written(&[], "d.json").starts_with('{') && written(&[], "d.JSON").starts_with('{'));
    assert!(written(&[], "d.md").starts_with("# InferScope: `trace`") && written(&[], "d").starts_with('#'));
    assert!(written(&[], "d.txt").starts_with("A trace\n") && written(&["--format", "text"], "x.md").starts_with("A "));
    assert!(place.run(["diff", "trace", "trace", "--output", "-"]).fine().out.starts_with("A trace\n"));
}

#[test]
fn what_is_recorded_from_inside_cannot_be_asked_of_a_running_process() {
    let place = Place::new("inside");
    for flag in [
        "--calls",
        "--calls=c",
        "--layers",
        "--include=a",
        "--exclude=a",
        "--min-us=5",
        "--gpu-detail=all",
        "--overhead-budget=2%",
    ] {
        let name = flag.split('=').next().unwrap();
        let error = place.run(["attach", "1", flag]).refused(2);
        assert!(error.contains(&format!("{name} does nothing")) && error.contains("inferscope run"), "{error}");
    }
    // Settings for all recordings are no wish for this one: it gets as far as looking for the process.
    let told = place.command(["attach", "4194305"]).env("INFERSCOPE_CALLS", "true").output().unwrap();
    let err = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(err.contains("4194305") && !err.contains("does nothing"), "{err}");
}

#[test]
fn the_help_of_whatif_names_its_exit_codes() {
    let out = Place::new("codes").run(["whatif", "--help"]).fine().out;
    for text in ["Exit code 1: ", "2: a change cannot be parsed", "5: no such\ntrace", "no such kernel"] {
        assert!(out.contains(text), "{text}: {out}");
    }
}
