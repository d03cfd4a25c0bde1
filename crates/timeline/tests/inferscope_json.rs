//! Opens InferScope JSON as others write it: in three shapes, with odd times, odd threads and types that are not shown yet.

use crate::support::{draw, gzip};
use timeline::fixture::TemporaryFolder;
use timeline::{OpenError, Timeline};

fn open(bytes: impl AsRef<[u8]>) -> Result<Timeline, OpenError> {
    let folder = TemporaryFolder::new("json");
    let path = folder.path().join("trace.json");
    std::fs::write(&path, bytes).unwrap();
    timeline::open(&path)
}

const EVENTS: &str = r#"[
    {"id":1,"type":"cpu_call","name":"f","timestamp_start_us":1790000000000000.001,"timestamp_end_us":1790000000000002.5,
     "duration_us":2.499,"metadata":{"thread_id":7,"cpu_id":1,"call_depth":0,"new":{"a":[{}]}},"later":[1,2]},
    {"id":2,"type":"cpu_syscall","name":"read","timestamp_start_us":"1790000000000001","duration_us":"0.25","metadata":{"thread_id":7}}]"#;

#[test]
fn three_shapes_plain_and_gzip_are_one_timeline() {
    let shapes = [
        EVENTS.to_owned(),
        format!(r#"{{"timeline":{EVENTS}}}"#),
        format!(r#"{{"format_version":"1.0","relationships":{{"scopes":[{{}}]}},"events":{EVENTS},"x":"]"}}"#),
        format!(r#"{{"events":{EVENTS},"format_version":1}}"#),
        format!("\u{feff} \n{EVENTS}\n"),
    ];
    for shape in shapes {
        for bytes in [shape.clone().into_bytes(), gzip(&shape), [gzip(&shape[..30]), gzip(&shape[30..])].concat()] {
            let timeline = open(bytes).unwrap();
            let expected = ["call f 1790000000000000001+2499", "c-call read 1790000000000001000+250"];
            assert_eq!(draw(&timeline), expected, "{shape}");
            assert_eq!((timeline.start, timeline.duration(), timeline.notes.len()), (1790000000000000001, 2499, 0));
        }
    }
}

#[test]
fn scopes_are_paired_by_number_or_by_name() {
    let at = |sort: &str, name: &str, time: u32, more: &str| {
        format!(r#"{{"type":"{sort}","name":"{name}","timestamp_us":{time},"metadata":{{"thread_id":1{more}}}}}"#)
    };
    let events = [
        at("scope_enter", "a", 1, ""),
        at("scope_enter", "a", 2, ""),
        at("scope_enter", "task", 3, r#","scope":9"#),
        at("scope_exit", "a", 4, ""),
        at("scope_exit", "other name, same number", 5, r#","scope":9,"kind":"step""#),
        at("scope_enter", "again", 6, r#","scope":9"#),
        at("scope_exit", "nobody", 7, ""),
        at("instant", "m", 8, r#","parent_scope":9,"args":{"k":[1]}"#),
    ];
    let timeline = open(format!("[{}]", events.join(","))).unwrap();
    let expected = [
        "scope a 1000+7000 open",
        "scope a 2000+2000",
        "scope task 3000+2000",
        "scope again 6000+2000 open",
        "mark m 8000+0",
    ];
    assert_eq!(draw(&timeline), expected);
    let mark = timeline.slices.len() - 1;
    assert_eq!((timeline.slices.detail(mark).parent, timeline.slices.args(mark)), (9, Some(r#"{"k":[1]}"#)));
    assert_eq!(
        timeline.notes_said(),
        [
            "1 scope exits without an enter.",
            "2 scopes without an exit, shown as open until the last event.",
            "1 scopes with a duplicate id, shown without children by id.",
        ]
    );
}

#[test]
fn threads_are_numbers_large_numbers_words_or_nothing() {
    let at = |time: u32, place: &str| {
        format!(
            r#"{{"type":"cpu_call","name":"f","timestamp_start_us":{time},"duration_us":1,"metadata":{{{place}}}}}"#
        )
    };
    let events = [
        at(1, r#""process_id":5,"thread_id":6"#),
        at(2, r#""process_id":8,"thread_id":140234567890123"#),
        at(3, r#""process_id":5,"thread_id":"5""#),
        at(4, r#""process_id":8,"thread_id":"loader""#),
        at(5, r#""process_id":8,"thread_id":140234567890123"#),
        at(6, r#""process_id":[],"thread_id":{}"#),
    ];
    let timeline = open(format!("[{}]", events.join(","))).unwrap();
    let tracks: Vec<_> =
        timeline.tracks.iter().map(|track| (timeline.process(track).pid, &*track.name, track.slices.len())).collect();
    let expected = [
        (5, "", 1),
        (5, "", 1),
        (8, "thread 140234567890123", 2),
        (8, "loader", 1),
        (0, "thread not named in the file", 1),
    ];
    assert_eq!(tracks, expected);
    assert_eq!((timeline.tracks[0].tid, timeline.tracks[1].tid), (5, 6), "the main thread comes first");
}

#[test]
fn what_is_not_shown_is_counted() {
    let text = r#"{"format_version":"1.7","events":[
        {"type":"gpu_kernel","name":"k","timestamp_start_us":1,"duration_us":2,"metadata":{"occupancy":NaN}},
        {"type":"gpu_kernel"},{"type":"h2d_copy"},{"type":"memory_event"},{"type":"quantum"},{},7,"x",[[]],
        {"type":"cpu_call","name":"no time"},
        {"type":"cpu_call","name":"nan","timestamp_start_us":NaN},
        {"type":"cpu_call","name":"late","timestamp_start_us":1e40},
        {"type":"instant","name":"c","timestamp_us":1,"metadata":{"category":"counter","value":"many"}},
        {"type":"instant","name":"s","timestamp_us":1,"metadata":{"category":"sample","stack":5}},
        {"type":"cpu_call","name":7,"timestamp_start_us":3,"timestamp_end_us":2,"metadata":[]}]}"#;
    let timeline = open(text).unwrap();
    assert_eq!(draw(&timeline), ["call (name not recorded) 3000+0"]);
    assert_eq!(
        timeline.notes_said(),
        [
            "Skipped, not supported by this version: 1 memory_event events.",
            "1 events without a type, skipped.",
            "1 events of the unknown type \"quantum\", skipped.",
            "3 events that are not valid JSON objects, skipped.",
            "5 events with a missing or invalid timestamp, skipped.",
            "1 events that end before they start, or at an invalid time: their duration is used, if any.",
            "1 samples with a missing stack: only the innermost function is known.",
            "1 counter readings without a numeric value, skipped.",
        ]
    );
    let leaf = timeline.stacks.frame(timeline.samples.get(0).stack);
    assert_eq!(timeline.names.text(leaf.name), "s");
}

#[test]
fn control_characters_and_broken_text_cost_nothing_but_themselves() {
    let mut bytes = br#"[{"type":"cpu_call","name":"a"#.to_vec();
    bytes.extend(b"\x01\n\xff\\ud800");
    bytes.extend(br#"b","timestamp_start_us":1,"duration_us":1,"metadata":{}}]"#);
    let timeline = open(bytes).unwrap();
    assert_eq!(draw(&timeline), ["call a  \u{fffd}\u{fffd}b 1000+1000"]);
}

#[test]
fn a_file_without_events_says_so() {
    for text in ["[]", r#"{"events":[]}"#, r#"{"format_version":"1.0","timeline":[ ]}"#] {
        assert_eq!(open(text).unwrap().notes_said(), ["The file holds no events."], "{text}");
    }
}

#[test]
fn other_json_is_recognised() {
    let cases = [
        (r#"{"schemaVersion":1,"traceEvents":[{"ph":"X"}]}"#, "Chrome's format"),
        (r#"[{"ph":"X","name":"a","ts":1}]"#, "Chrome's format"),
        (r#"{"analysis_version":"1.0","bottleneck":{}}"#, "an analysis that InferScope wrote"),
        (r#"{"$schema":"https://www.speedscope.app/file-format-schema.json"}"#, "a speedscope profile"),
        (r#"{"nodes":[],"samples":[],"timeDeltas":[]}"#, "a CPU profile"),
        (r#"[{"schema_version":2,"event_type":"sample"}]"#, "memory telemetry"),
        (r#"{"a":1,"b":{}}"#, r#"JSON without events (it has "a", "b")"#),
        (r#"{"events":{"a":1}}"#, "JSON without events"),
        (r#"{"type":"cpu_call"} {"type":"cpu_call"}"#, "one a line"),
        ("{}", "an empty JSON object"),
        ("[1,2]", "none of its entries is an event"),
    ];
    for (text, words) in cases {
        for error in [open(text).unwrap_err(), open(gzip(text)).unwrap_err()] {
            let said = error.to_string();
            assert!(matches!(error, OpenError::Foreign { .. }) && said.contains(words), "{text}: {said}");
            assert!(said.contains("InferScope trace JSON 1.0") && said.lines().count() == 1, "{said}");
        }
    }
    let newer = open(r#"{"format_version":"2.1","events":[]}"#).unwrap_err();
    assert!(matches!(newer, OpenError::NewerVersion { found: 2, known: 1, .. }), "{newer}");
    for (bytes, words) in [
        (b"just text".to_vec(), "neither a folder nor JSON"),
        (Vec::new(), "the file is empty"),
        (gzip("just text"), "it is gzip, but not of JSON"),
        (b"{\"format_version\":\"1.0\",".to_vec(), "it ends too early, at byte 24, before any event"),
        (b"\x1f\x8b\x00\x00junk".to_vec(), "before any event"),
    ] {
        let error = open(&bytes).unwrap_err();
        assert!(matches!(error, OpenError::NotATrace { .. }) && error.to_string().contains(words), "{error}");
    }
}

#[test]
fn kernels_copies_and_memory_of_devices() {
    let text = r#"[
        {"type":"cpu_call","name":"cudaLaunchKernel","timestamp_start_us":1,"duration_us":2,
         "metadata":{"process_id":9,"thread_id":9,"kind":"api","correlation_id":4}},
        {"type":"gpu_kernel","name":"gemm","timestamp_start_us":5,"timestamp_end_us":9.5,"metadata":{"process_id":9,"device_id":1,
         "grid_dim":[8,2,1],"block_dim":[128,1,1],"shared_memory_bytes":49152,"registers_per_thread":64,"stream_id":7,
         "occupancy":0.5,"correlation_id":4}},
        {"type":"h2d_copy","name":"copy","timestamp_start_us":2,"duration_us":1,"metadata":{"process_id":9,"device_id":1,
         "bytes":4096,"kind":"pinned","throughput_gbps":4.1,"stream_id":7}},
        {"type":"d2h_copy","name":"copy","timestamp_start_us":20,"duration_us":1,"metadata":{"device_id":0,"bytes":-1,"kind":"x"}},
        {"type":"memory_event","name":"m","timestamp_us":3,"metadata":{"operation":"malloc","bytes":64,"device_id":1,"address":"0x7f00"}},
        {"type":"memory_event","name":"s","timestamp_start_us":30,"duration_us":1,"metadata":{"operation":"memset","bytes":8,"device_id":0}},
        {"type":"memory_event","name":"m","timestamp_us":4,"metadata":{"operation":"free","bytes":64}},
        {"type":"memory_event","name":"m","timestamp_us":4,"metadata":{"operation":"numa_migration","bytes":64}}]"#;
    let timeline = open(text).unwrap();
    let gpu = &timeline.gpu;
    let streams: Vec<_> =
        gpu.streams.iter().map(|s| (timeline.processes[s.process.0 as usize].pid, s.device, s.stream)).collect();
    assert_eq!(streams, [(9, 1, 7), (0, 0, 0)]);
    let [copy, kernel, back] = [0, 1, 2].map(|index| gpu.work.get(index));
    assert_eq!((kernel.start, kernel.dur, kernel.launch), (5_000, 4_500, Some(0)));
    let shape = gpu.shape(1).unwrap();
    assert_eq!((shape.grid, shape.block, shape.registers, shape.shared_dynamic), ([8, 2, 1], [128, 1, 1], 64, 49_152));
    assert_eq!((copy.bytes, copy.copy().direction, copy.copy().source, gpu.shape(0)), (4096, 1, 2, None));
    assert_eq!((back.bytes, back.copy().direction, back.copy().target), (0, 2, 0));
    assert_eq!(
        gpu.allocations.iter().map(|one| (one.time, one.bytes, one.device)).collect::<Vec<_>>(),
        [(3_000, 64, 1)]
    );
    assert_eq!((gpu.allocations[0].address, gpu.work.kind(3)), (0x7f00, timeline::WorkKind::Memset));
    assert_eq!(timeline.notes_said(), ["Skipped, not supported by this version: 2 memory_event events."]);
}
