//! Memory telemetry of other tools and of unlucky ones, through the command: every shape and version, ranks that are missing, clocks that go back, a
//! million alerts, files that are no files.

use crate::support::Place;
use serde_json::{Value, json};

fn sample(time_s: u64) -> Value {
    json!({
        "schema_version": 2, "timestamp_ns": time_s * 1_000_000_000, "event_type": "sample", "collector": "x", "sampling_interval_ms": 100,
        "pid": 42, "host": "n", "device_id": 0, "allocator_allocated_bytes": 10, "allocator_reserved_bytes": 20,
        "allocator_active_bytes": null, "allocator_inactive_bytes": null, "allocator_change_bytes": 0, "device_used_bytes": 30,
        "device_free_bytes": 70, "device_total_bytes": 100, "context": null, "metadata": {},
    })
}

fn lines(events: impl IntoIterator<Item = Value>) -> String {
    events.into_iter().map(|event| format!("{event}\n")).collect()
}

#[test]
fn telemetry_of_every_shape_is_opened_by_every_command() {
    let place = Place::new("telemetry-shapes");
    let both = json!([sample(1), sample(2)]);
    let shapes = [
        ("lines.jsonl", lines([sample(1), sample(2)])),
        ("array.json", both.to_string()),
        ("object.json", json!({ "events": both }).to_string()),
        // As `diagnose` itself and most tools write it.
        ("indented.json", format!("{:#}\n", json!({ "events": both }))),
        ("no-extension", format!("{both:#}")),
    ];
    for (name, text) in shapes {
        place.write(name, text);
        let events = place.run(["query", "events", name, "--format", "json"]).fine().out;
        assert_eq!(events.lines().count(), 2, "{name}: {events}");
        let shown = place.run(["analyze", name]).fine().out;
        assert!(shown.starts_with("Memory telemetry:") && shown.contains("memory never ran out"), "{name}: {shown}");
        let folder = format!("{name}.diagnosis");
        place.run(["diagnose", name, "--output", &folder]).fine();
        // What it wrote is telemetry again.
        let again = place.run(["query", "events", &format!("{folder}/telemetry_timeline.json"), "--format", "json"]);
        assert_eq!(again.fine().out, events, "{name}");
    }
    let said = place.run(["analyze", "array.json", "--output", "x.html"]).refused(2);
    assert!(said.contains("--format json"), "{said}");
}

#[test]
fn missing_ranks_and_clocks_that_go_back_are_said() {
    let place = Place::new("telemetry-ranks");
    let of = |rank: u64, time| {
        let mut event = sample(time);
        (event["rank"], event["world_size"], event["job_id"]) = (json!(rank), json!(4), json!("train"));
        event
    };
    place.write("ranks.jsonl", lines([of(0, 900), of(1, 901), of(3, 902), of(0, 5), of(0, 6)]));
    let said = place.run(["query", "summary", "ranks.jsonl", "--by", "rank"]).fine().out;
    assert!(said.contains("Only 3 of 4 ranks of job train are here: no event of rank 2."), "{said}");
    assert!(said.contains("2 events are earlier than one before: the clock was set back"), "{said}");
    let told = place.run(["query", "summary", "ranks.jsonl", "--format", "csv"]).fine();
    assert!(told.err.contains("no event of rank 2") && !told.out.contains("no event of rank 2"), "{}", told.err);
    let json: Value =
        serde_json::from_str(&place.run(["analyze", "ranks.jsonl", "--format", "json"]).fine().out).unwrap();
    assert_eq!((json["doubts"].as_array().unwrap().len(), &json["sessions"][0]["out_of_order"]), (2, &json!(2)));
    place.write("whole.jsonl", lines((0..4).map(|rank| of(rank, 900 + rank))));
    let said = place.run(["analyze", "whole.jsonl"]).fine().out;
    assert!(!said.contains("ranks") && !said.contains("earlier"), "{said}");
}

#[test]
fn a_million_alerts_end_in_one_table() {
    let place = Place::new("telemetry-alerts");
    let mut alert = sample(1);
    alert["event_type"] = json!("critical");
    place.write("alerts.jsonl", format!("{alert}\n").repeat(100_000));
    let told = place.run(["analyze", "alerts.jsonl", "--max-memory-mb", "300"]).fine();
    assert!(told.out.contains("Alerts and errors: 100,000, the newest 20 shown"), "{}", told.out);
    assert!(told.out.lines().count() < 40);
    let told = place.run(["query", "alerts", "alerts.jsonl", "--limit", "3"]).fine();
    assert!(told.out.lines().count() == 4 && told.err.contains("99997 older events are not shown"), "{}", told.err);
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let place = Place::new("telemetry-pipes");
    for name in ["pipe.jsonl", "pipe.telemetry"] {
        let made = std::process::Command::new("mkfifo").arg(place.at(name)).status();
        assert!(made.is_ok_and(|status| status.success()));
        for command in [["query", "events"], ["query", "summary"]] {
            let said = place.run([command[0], command[1], name]).refused(5);
            assert!(said.contains("it is a pipe"), "{said}");
        }
        assert_ne!(place.run(["analyze", name]).code, Some(0));
        assert_ne!(place.run(["diagnose", name]).code, Some(0));
    }
    let said = place.run(["query", "summary", "/dev/zero"]).refused(5);
    assert!(said.contains("a device"), "{said}");
}

#[test]
fn sizes_and_times_at_the_end_of_their_range() {
    let place = Place::new("telemetry-range");
    let mut most = sample(0);
    for field in ["timestamp_ns", "device_total_bytes", "device_used_bytes", "allocator_reserved_bytes"] {
        most[field] = json!(u64::MAX);
    }
    most["device_free_bytes"] = json!(0);
    most["allocator_allocated_bytes"] = json!((1_u64 << 63) + 1);
    place.write("most.jsonl", lines([sample(0), most]));
    for command in [&["query", "summary"][..], &["query", "events"], &["analyze"], &["diagnose"]] {
        let told = place.run([command, &["most.jsonl"]].concat()).fine();
        assert!(
            !told.out.is_empty() && !told.out.contains("NaN") && !told.out.contains('-'.to_string().repeat(3).as_str())
        );
    }
    let summary: Value =
        serde_json::from_slice(&std::fs::read(place.at("inferscope-diagnosis/diagnostic_summary.json")).unwrap())
            .unwrap();
    assert_eq!((&summary["reserved_bytes"], &summary["utilization_ratio"]), (&json!(u64::MAX), &json!(1.0)));
}

#[test]
fn a_process_that_is_not_there_is_said_and_leaves_no_folder() {
    let place = Place::new("telemetry-nobody");
    let told = place.run(["track", "--pid", "2147483647"]);
    assert!(told.code != Some(0) && told.err.contains("no process has pid 2147483647"), "{}", told.err);
    assert!(!place.at("inferscope-telemetry").exists());
}

/// The command cuts the file that its tracker writes: the exit code is the command's own, and what was lost is said.
#[test]
fn a_telemetry_file_that_is_cut_meanwhile_harms_nobody() {
    let place = Place::new("telemetry-cut");
    let script = "sleep 0.2; for file in out/*.telemetry; do : > $file; done; sleep 0.2; exit 3";
    let told = place.run(["track", "--interval", "0.02", "--output", "out", "--", "sh", "-c", script]);
    assert_eq!(told.code, Some(3), "{}", told.err);
    assert!(told.err.contains("events could not be written") && told.err.contains("truncated"), "{}", told.err);
    let events = place.run(["query", "events", "out", "--format", "json"]).fine();
    assert!(events.out.lines().last().is_some_and(|line| line.contains("\"stop\"")), "{}", events.out);
}
