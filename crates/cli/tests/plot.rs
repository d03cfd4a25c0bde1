//! `inferscope plot`: the ending decides the format, what is missing is an error and no file, and telemetry comes from a file or stdin.

use crate::support::{Place, Told, files};
use std::io::Write;
use std::process::Stdio;

/// A line of version 2, with so many bytes of a rank.
fn sample(second: u64, rank: u32, held: u64) -> String {
    format!(
        r#"{{"schema_version":2,"timestamp_ns":{},"event_type":"sample","collector":"c","sampling_interval_ms":100,"pid":7,"host":"h","device_id":0,"allocator_allocated_bytes":{held},"allocator_reserved_bytes":{held},"allocator_active_bytes":null,"allocator_inactive_bytes":null,"allocator_change_bytes":0,"device_used_bytes":{held},"device_free_bytes":null,"device_total_bytes":null,"context":null,"metadata":{{}},"rank":{rank},"local_rank":{rank},"world_size":2}}"#,
        second * 1_000_000_000
    )
}

fn events() -> String {
    let lines = (0..20).flat_map(|second| (0..2).map(move |rank| sample(second, rank, (second + 1) << 20)));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn the_ending_decides_the_format() {
    let place = Place::with_trace("plot-endings");
    place.write("two.jsonl", events());
    for (file, begin) in [("a.svg", &b"<svg xmlns"[..]), ("a.png", b"\x89PNG"), ("a.html", b"<!doctype html>")] {
        for what in ["two.jsonl", "trace"] {
            place.run(["plot", what, "--output", file]).fine();
            assert!(std::fs::read(place.at(file)).unwrap().starts_with(begin), "{file}");
        }
    }
    place.run(["plot", "two.jsonl", "--output", "two.svg"]).fine();
    let text = std::fs::read_to_string(place.at("two.svg")).unwrap();
    assert!(text.contains("Memory by rank") && text.contains("rank 1"), "{text}");
}

#[test]
fn what_is_missing_is_an_error_and_no_file() {
    let place = Place::with_trace("plot-nothing");
    place.write("none.jsonl", "");
    let before = files(&place.at(""));
    for (arguments, code, why) in [
        (
            vec!["trace", "--kind", "lifetimes", "--output", "a.svg"],
            1,
            "no blocks recorded: record with --memory-events gpu",
        ),
        (vec!["none.jsonl", "--output", "a.svg"], 1, "no samples of memory"),
        (vec!["trace", "--output", "a.pdf"], 2, ".svg, .png or .html"),
        (vec!["trace", "--output", "-"], 2, "--format"),
        (vec!["trace", "--by", "layer", "--output", "a.svg"], 2, "--kind heatmap"),
        (vec!["missing", "--output", "a.svg"], 5, "missing"),
    ] {
        let error = place.run(["plot"].into_iter().chain(arguments)).refused(code);
        assert!(error.contains(why), "{error}");
    }
    assert_eq!(files(&place.at("")), before);
}

#[test]
fn events_are_read_from_stdin() {
    let place = Place::new("plot-stdin");
    let mut command = place.command(["plot", "-", "--kind", "timeline", "--format", "svg", "--output", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(events().as_bytes()).unwrap();
    let told = Told::new(child.wait_with_output().unwrap());
    assert!(told.code == Some(0) && told.out.contains("rank 0, device 0: allocated"), "{} {}", told.out, told.err);
}
