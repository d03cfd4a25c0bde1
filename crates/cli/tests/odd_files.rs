//! Every shape of a file that users may have, through the command: ages and units of torch.profiler, InferScope JSON that breaks
//! its own rules, files of tools that are not read, and pairs of recordings that cannot be compared.

use crate::support::Place;
use serde_json::Value;

/// The report as JSON, after the text has been written too.
fn analyse(place: &Place, name: &str, bytes: impl AsRef<[u8]>) -> (String, Value) {
    place.write(name, bytes);
    let text = place.run(["analyze", name]).fine().out;
    let json = place.run(["analyze", name, "--format", "json"]).fine().out;
    (text.split_whitespace().collect::<Vec<_>>().join(" "), serde_json::from_str(&json).unwrap())
}

fn torch(events: &str) -> String {
    format!(r#"{{"schemaVersion":1,"traceEvents":[{events}]}}"#)
}

const EVENTS: &str = r#"{"ph":"X","cat":"user_annotation","name":"ProfilerStep#1","pid":7,"tid":7,"ts":1000,"dur":900},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":7,"tid":7,"ts":1500,"dur":10,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1520,"dur":90,"args":{"device":0,"stream":7,"correlation":1}}"#;

#[test]
fn torch_profiler_of_every_age_says_the_same() {
    let place = Place::new("ages");
    let of = |name: &str, text: String| {
        let (_, json) = analyse(&place, name, text);
        (json["gpu"][0]["busy_us"].as_f64(), json["gpu"][0]["kernels"].as_u64(), json["steps"]["count"].as_u64())
    };
    let today = of("today.json", torch(EVENTS));
    assert_eq!(today, (Some(90.0), Some(1), Some(1)));
    let old = EVENTS.replace("cuda_runtime", "Runtime").replace("\"kernel\"", "\"Kernel\"");
    assert_eq!(of("old.json", torch(&old)), today);
    let amd = EVENTS.replace("cudaLaunchKernel", "hipModuleLaunchKernel");
    assert_eq!(of("amd.json", torch(&amd)), today);
    let fractions = EVENTS.replace("\"ts\":1520", "\"ts\":1520.000").replace("\"dur\":90,", "\"dur\":90.0,");
    assert_eq!(of("fractions.json", torch(&fractions)), today);
    let based = torch(EVENTS).replacen('{', r#"{"baseTimeNanoseconds":1751410836000000000,"#, 1);
    assert_eq!(of("based.json", based), today);
    assert_eq!(of("list.json", format!("[{EVENTS}]")), today, "a bare list of events");
    let control = torch(EVENTS).replace("gemm", "ge\u{1}m\tm");
    assert_eq!(of("control.json", control), today, "control characters in a name");
}

#[test]
fn cut_files_say_where_they_end() {
    let place = Place::new("cut");
    let whole = torch(EVENTS);
    let (text, json) = analyse(&place, "cut.json", &whole[..whole.len() - 30]);
    assert!(text.contains("The file ends too early, at byte"), "{text}");
    let first = "Only the beginning of the file is readable: this covers its first 2 events. ";
    assert!(text.split_once("The one").unwrap().0.ends_with(first), "{text}");
    let lines = json["health"]["lines"].as_array().unwrap();
    let losses = lines.iter().find(|line| line["label"] == "losses").unwrap();
    assert_eq!((&json["health"]["state"], &losses["state"]), (&"cut".into(), &"warn".into()), "{losses}");
    for format in ["markdown", "html"] {
        let told = place.run(["analyze", "cut.json", "--format", format]).fine().out;
        assert!(told.contains(first.trim()), "{format}: {told}");
    }
}

#[test]
fn a_file_without_events_is_refused() {
    let place = Place::new("no-events");
    for (name, text) in [("list.json", "[]"), ("torch.json", r#"{"traceEvents": []}"#)] {
        place.write(name, text);
        let error = place.run(["analyze", name]).refused(5);
        assert!(error.contains(&format!("nothing to analyze in {name}. The file holds no events.")), "{error}");
    }
}

#[test]
fn inferscope_json_that_breaks_its_rules() {
    let place = Place::new("rules-of-json");
    let call = |id: u32, start: i64, end: i64| {
        format!(
            r#"{{"id":{id},"type":"cpu_call","name":"f","timestamp_start_us":{start},"timestamp_end_us":{end},"duration_us":{},"metadata":{{"thread_id":1}}}}"#,
            end - start
        )
    };
    let scopes = |range: &str| {
        format!(
            r#"{{"format_version":"1.0","events":[{},{},{}],"relationships":{{"scopes":[{{"id":1,"name":"s","parent_id":1,"child_ids":[1,9],"event_range":{range}}}]}}}}"#,
            call(1, 10, 90),
            call(1, 20, 400),
            call(3, 50, 5)
        )
    };
    for (name, text) in [
        ("ids-twice.json", scopes("[0,2]")),
        ("range-backwards.json", scopes("[2,0]")),
        ("range-outside.json", scopes("[5,900000]")),
        ("range-of-one.json", scopes("[1]")),
        ("range-of-words.json", scopes(r#"["a","b"]"#)),
        ("timeline.json", format!(r#"{{"timeline":[{}]}}"#, call(1, 10, 90))),
        ("list.json", format!("[{}]", call(1, 10, 90))),
        ("unknown-fields.json", format!("[{}]", call(1, 10, 90).replacen('{', r#"{"x":{"y":[1,{"z":2}]},"#, 1))),
        ("no-metadata.json", r#"[{"type":"gpu_kernel","name":"k","timestamp_start_us":1,"duration_us":5}]"#.into()),
        ("unknown-type.json", format!(r#"[{{"type":"warp","timestamp_us":3}},{}]"#, call(1, 1, 2))),
        (
            "exit-first.json",
            format!(r#"[{{"type":"scope_exit","name":"s","timestamp_start_us":1}},{}]"#, call(1, 1, 2)),
        ),
    ] {
        let (text, json) = analyse(&place, name, text);
        assert!(!text.is_empty() && json["bottleneck"]["type"].is_string(), "{name}: {text}");
    }
    let (text, _) = analyse(&place, "end-first.json", format!("[{}]", call(1, 50, 5)));
    assert!(text.contains("Not recorded or lost"), "{text}");
}

#[test]
fn what_is_not_read_is_recognised() {
    let place = Place::new("not-read");
    let files: [(&str, &[u8], &str); 8] = [
        ("snapshot.pickle", b"\x80\x04\x95\x00\x00\x00\x00\x00\x00\x00\x00", "Python pickle"),
        ("report.nsys-rep", b"QDSTRM\x00\x00", "Nsight Systems"),
        ("archive.zip", b"PK\x03\x04aaaa", "zip"),
        ("empty.json", b"", "empty"),
        ("blank.json", b"  \n ", "before any event"),
        ("words.txt", b"hello", "neither a folder nor JSON"),
        ("half.json.gz", b"\x1f\x8b", "ends too early"),
        ("a.sqlite", b"SQLite format 3\x00", "."),
    ];
    for (name, bytes, said) in files {
        place.write(name, bytes);
        let error = place.run(["analyze", name]).refused(5);
        let supported = ["torch.profiler", "nsys export", "InferScope trace JSON"];
        assert!(error.contains(said) && error.contains(name) && error.lines().count() == 1, "{name}: {error}");
        assert!(name == "a.sqlite" || supported.iter().all(|tool| error.contains(tool)), "{name}: {error}");
    }
    place.write("telemetry.json", r#"[{"schema_version":2,"timestamp_ns":1,"event_type":"sample","collector":"x"}]"#);
    for command in [["analyze", "telemetry.json"], ["diagnose", "telemetry.json"]] {
        let error = place.run(command).refused(5);
        assert!(error.contains("event 1: sampling_interval_ms is missing"), "{error}");
    }
    place.write("oom_dump/manifest.json", r#"{"schema":"x","bundle_name":"oom_dump_1","files":[]}"#);
    let error = place.run(["analyze", "oom_dump"]).refused(5);
    assert!(error.contains("does not name a format"), "{error}");
}

#[test]
fn recordings_that_cannot_be_compared() {
    let place = Place::with_trace("incomparable");
    place.write("steps.json", torch(EVENTS));
    place.write("nothing.json", torch(""));
    place.write("kernel.json", torch(EVENTS.lines().last().unwrap()));
    for (a, b) in [("steps.json", "nothing.json"), ("nothing.json", "steps.json"), ("steps.json", "trace")] {
        let error = place.run(["diff", a, b]).refused(5);
        assert!(error.contains("cannot be compared"), "{a} {b}: {error}");
    }
    let error = place.run(["diff", "steps.json", "steps.txt"]).refused(5);
    assert!(error.contains("steps.txt"), "{error}");
    // Nothing against nothing is no difference, or refused; it is not silence.
    let told = place.run(["diff", "nothing.json", "nothing.json"]);
    assert!(matches!(told.code, Some(0 | 5)) && told.out.len() + told.err.len() > 20, "{}{}", told.out, told.err);
    let told = place.run(["diff", "kernel.json", "kernel.json"]);
    assert!(matches!(told.code, Some(0 | 5)) && told.out.len() + told.err.len() > 20, "{}{}", told.out, told.err);
}
