//! Every version as it is written, and every way in which a file can be wrong.

use super::*;
use serde_json::json;

fn sample(version: u64) -> Value {
    let mut event = json!({
        "schema_version": version, "timestamp_ns": 1_700_000_000_000_000_000_u64, "event_type": "sample", "collector": "inferscope.nvml",
        "sampling_interval_ms": 100, "pid": 42, "host": "node1", "device_id": 0, "allocator_allocated_bytes": 10,
        "allocator_reserved_bytes": 20, "allocator_active_bytes": null, "allocator_inactive_bytes": null, "allocator_change_bytes": -3,
        "device_used_bytes": 30, "device_free_bytes": 70, "device_total_bytes": 100, "context": null, "metadata": {},
    });
    if version > 2 {
        event["session_id"] = json!("s1");
    }
    if version == 4 {
        event["metadata"] = json!({"memory_capabilities": {"supports_device_used": true}});
    }
    event
}

fn read_text(text: &str) -> Result<(Vec<Event>, ReadReport), String> {
    let mut events = Vec::new();
    let report = read(text.as_bytes(), &mut |event| events.push(event)).map_err(|error| error.to_string())?;
    Ok((events, report))
}

fn refused(change: impl Fn(&mut Value)) -> String {
    let mut event = sample(2);
    change(&mut event);
    read_text(&format!("{}\n{event}\n", sample(2))).unwrap_err()
}

#[test]
fn every_version_is_read_and_comes_back() {
    for version in 2..=4 {
        let (events, _) = read_text(&sample(version).to_string()).unwrap();
        assert_eq!(
            (events[0].counters.allocated, events[0].counters.change, events[0].source.pid),
            (Some(10), Some(-3), 42)
        );
        let mut written = Vec::new();
        line(&events[0], &mut written).unwrap();
        let (again, _) = read_text(std::str::from_utf8(&written).unwrap()).unwrap();
        assert_eq!(again[0].counters, events[0].counters, "version {version}");
    }
    let (events, _) = read_text(r#"{"timestamp": 1.5, "memory_mb": 2, "device": "cuda:3", "type": "peak"}"#).unwrap();
    let event = &events[0];
    assert_eq!((event.time_ns, event.counters.allocated, event.source.device_id), (1_500_000_000, Some(2 << 20), 3));
    assert_eq!((event.kind, event.counters.reserved), (EventType::Peak, None), "what is not said is not known");
    let (events, _) =
        read_text(r#"{"timestamp_ns": 7, "memory_mb": null, "device": 2, "pid": null, "mine": [1]}"#).unwrap();
    assert_eq!((events[0].counters.allocated, events[0].source.device_id, events[0].source.pid), (None, 2, -1));
}

#[test]
fn wrong_types_of_version_1_are_said_too() {
    let cases: [(&str, Value, &str); 9] = [
        ("memory_mb", json!("lots"), "memory_mb must be a number of megabytes, got \"lots\""),
        ("memory_mb", json!(-1), "memory_mb must be a number of megabytes"),
        ("memory_allocated", json!(1.5), "memory_allocated must be a number of bytes"),
        ("memory_change", json!("a"), "memory_change must be a whole number"),
        ("pid", json!("x"), "pid must be a whole number"),
        ("device_id", json!(1.5), "device_id must be a whole number"),
        ("device", json!([]), "device must be a text or null"),
        ("event_type", json!(3), "event_type must be a text or null"),
        ("timestamp", json!("noon"), "timestamp_ns (or timestamp, in seconds) is missing"),
    ];
    for (field, value, why) in cases {
        let mut event = json!({"timestamp": 1.5});
        event[field] = value;
        let said = read_text(&event.to_string()).unwrap_err();
        assert!(said.contains(why), "{field}: {said}");
    }
}

#[test]
fn what_was_not_measured_is_written_as_null() {
    let mut event = sample(4);
    event["allocator_allocated_bytes"] = Value::Null;
    let (events, _) = read_text(&event.to_string()).unwrap();
    let written = object(&events[0]);
    assert_eq!((&written["schema_version"], &written["allocator_allocated_bytes"]), (&json!(4), &Value::Null));
    event["schema_version"] = json!(3);
    assert!(
        read_text(&event.to_string())
            .unwrap_err()
            .contains("allocator_allocated_bytes must be a number of bytes, got null")
    );
}

#[test]
fn arrays_objects_and_lines_are_the_same() {
    let one = sample(2);
    for text in [format!("{one}\n{one}\n"), format!("  [{one}, {one}]"), format!("{{\"events\": [{one}, {one}]}}")] {
        let (events, report) = read_text(&text).unwrap();
        assert_eq!((events.len(), report.events, report.cut_short), (2, 2, false), "{text}");
        assert!(Arc::ptr_eq(&events[0].source, &events[1].source));
    }
    assert_eq!(read_text("  \n ").unwrap().1, ReadReport::default());
    // Over many lines, as tools write what people read; and larger than one event may be.
    let object = json!({"tool": "x", "events": [one, one], "more": {"a": [1]}});
    for text in
        [format!("{object:#}"), format!("{:#}", json!([one, one])), format!("{:#}\n", json!({"events": [one, one]}))]
    {
        assert_eq!(read_text(&text).unwrap().1, ReadReport { events: 2, cut_short: false }, "{text}");
    }
    assert_eq!(read_text(&format!("{one:#}")).unwrap().1.events, 1);
    assert_eq!(read_text(&format!("\u{feff}{one}\n")).unwrap().1.events, 1);
    assert!(read_text("\u{1f}\u{8b}").unwrap_err().contains("unpack it first"));
    let many = json!({"events": vec![one; 3000]}).to_string();
    assert!(many.len() as u64 > LONGEST_EVENT);
    assert_eq!(read_text(&many).unwrap().1.events, 3000);
}

#[test]
fn one_element_takes_no_memory_without_end() {
    for start in ["[", "{\"events\":[", "{\n\"events\":[", "{\n\"events\": 5, \"x\": ["] {
        let endless = format!("{start}{}", "[0],".repeat(1 << 20));
        let said = read_text(&endless).unwrap_err();
        assert!(said.contains("an event must be an object") || said.contains("an array of events"), "{start}: {said}");
        let long = format!("{start}{{\"metadata\":[{}", "0,".repeat(1 << 20));
        let said = read_text(&long).unwrap_err();
        assert!(said.contains("longer than 1048576 bytes") || said.contains("an array of events"), "{start}: {said}");
    }
    let nested = format!("{{\n\"events\":{}", "[".repeat(100_000));
    assert!(read_text(&nested).unwrap_err().contains("recursion limit"));
}

#[test]
fn telemetry_is_told_from_traces() {
    let is = |text: &str| is_telemetry(text.as_bytes());
    let one = sample(3).to_string();
    assert!(
        is(&one) && is(&format!("[{one}")) && is(&format!("{{\"events\": [{one}]}}")) && is(&format!("\n{one}\n{{"))
    );
    assert!(is(&format!("{:#}", sample(4))) && is(r#"[{"timestamp": 1, "memory_mb": 5}]"#));
    assert!(is(r#"{"schema_version": 9, "event_type": 5}"#), "wrong, and telemetry");
    for other in [
        r#"{"traceEvents":[{"ph":"X","ts":1,"dur":2,"name":"event_type"}]}"#,
        r#"{"format_version":"1.0","events":[{"id":1,"type":"cpu_call","timestamp_start_us":1}]}"#,
        r#"{"schemaVersion":1,"#,
        "",
        "SQLite format 3",
        "\u{1f}\u{8b}",
    ] {
        assert!(!is(other) && !is(&format!("{other}{}", " ".repeat(3 << 20))), "{other}");
    }
}

#[test]
fn a_file_whose_writer_was_killed_is_read_up_to_there() {
    let one = sample(2).to_string();
    let (events, report) = read_text(&format!("{one}\n{}", &one[..50])).unwrap();
    assert_eq!((events.len(), report.cut_short), (1, true));
    assert!(read_text(&one[..50]).is_err(), "nothing of it is an event");
    for start in ["[", "{\n\"events\": ["] {
        let (events, report) = read_text(&format!("{start}{one},\n{}", &one[..50])).unwrap();
        assert_eq!((events.len(), report.cut_short), (1, true), "{start}");
    }
    assert!(read_text(&format!("{}\n{one}\n", &one[..50])).unwrap_err().starts_with("line 1: not JSON"));
}

#[test]
fn what_is_wrong_is_said_with_its_line_and_field() {
    let cases: [(&str, Value, &str); 12] = [
        ("surprise", json!(1), "unknown field \"surprise\""),
        ("pid", json!(-2), "pid must be -1 or more, got -2"),
        ("pid", json!("1"), "pid must be a whole number, got \"1\""),
        ("timestamp_ns", json!(-1), "timestamp_ns must be a whole number from 0"),
        ("event_type", json!("sampel"), "unknown event_type \"sampel\""),
        ("device_used_bytes", json!(101), "device_used_bytes exceeds device_total_bytes"),
        ("device_free_bytes", json!(u64::MAX), "device_free_bytes exceeds device_total_bytes"),
        ("device_total_bytes", json!(1e30), "device_total_bytes must be a number of bytes"),
        ("metadata", json!([]), "metadata must be an object"),
        ("host", json!(""), "host must be a text that is not empty"),
        ("rank", json!(5_000_000_000_u64), "rank must be a whole number from 0"),
        ("schema_version", json!(5), "schema_version 5 is newer"),
    ];
    for (field, value, why) in cases {
        let said = refused(|event| event[field] = value.clone());
        assert!(said.starts_with("line 2: ") && said.contains(why), "{field}: {said}");
    }
    assert!(refused(|event| _ = event.as_object_mut().unwrap().remove("host")).contains("host is missing"));
    assert!(refused(|event| (event["rank"], event["world_size"]) = (json!(2), json!(2))).contains("rank must be less"));
    let mut event = sample(4);
    event["metadata"] = json!({});
    assert!(read_text(&event.to_string()).unwrap_err().contains("memory_capabilities is missing"));
    for field in ["schema_version", "event_type", "pid"] {
        assert!(refused(|event| event[field] = json!(vec!["x".repeat(5_000)])).len() < 500, "{field}");
        assert!(refused(|event| event[field] = json!("é".repeat(5_000).as_str())).len() < 1_500, "{field}");
    }
    assert!(refused(|event| event["y".repeat(5_000)] = json!(1)).len() < 500);
    assert!(read_text("[1]").unwrap_err().contains("an event must be an object"));
    assert!(read_text(&"[".repeat(10_000)).is_err(), "nesting is bounded");
    assert!(read_text(&"x".repeat(2 << 20)).unwrap_err().contains("longer than"));
}

#[test]
fn sizes_beyond_two_to_the_63_are_kept() {
    let mut event = sample(2);
    event["device_total_bytes"] = json!(u64::MAX);
    event["device_used_bytes"] = json!((1_u64 << 63) + 1);
    assert_eq!(read_text(&event.to_string()).unwrap().0[0].counters.used, Some((1 << 63) + 1));
}
