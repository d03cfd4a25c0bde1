//! Exports parsed back: every event is there once, ids are unique, times are exact, and children lie inside their parents.

use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use timeline::Timeline;
use timeline::fixture::{Fixture, TemporaryFolder};

const SERVICE: &str = r#"
    process 100 serve.py 3.12.1
    process 200 worker.py 3.12.1
    thread 0 100 MainThread
    thread 0 101 "odd\u{1b}[31m
    step 0 100 10..90 request #1 {"i":1}
    scope 0 100 20..80 decode #2 ^1 {"n":[3,"x"]}
    scope 0 100 85.. tail #3 ^1 {"cut":"of
    mark 0 100 30 cache_miss ^2 {"key":"k"}
    call 0 100 20..60 forward@model.py:12
    ccall 0 100 30..40 matmul@np.py:3
    call 0 100 95..99 after@model.py:40
    scope 0 101 10..50 task-a #4
    scope 0 101 30..70 task-b #5
    scope 0 101 60..90 child-of-a #6 ^4
    call 0 101 35..40 inside@t.py:1
    sample 0 100 25 active,gil main@a.py:3;forward@model.py:14
    sample 0 100 35 active main@a.py:3;forward@model.py:15
    sample 1 200 35 idle main@w.py:9
    counter 0 0 10 rss_bytes 4096
    counter 0 100 20 cpu_ns 5000
    counter -1 0 20 psi_cpu_some_us 7
    loss 0 calls 3 overwritten
"#;

fn open(text: &str) -> Timeline {
    let folder = TemporaryFolder::new("exports");
    Fixture::parse(text).write(folder.path());
    timeline::open(folder.path()).unwrap()
}

fn parse(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Value {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&bytes)))
}

fn nanos(value: &Value) -> u64 {
    (value.as_f64().unwrap() * 1000.0).round() as u64
}

#[test]
fn chrome_has_every_event() {
    let timeline = open(SERVICE);
    let root = parse(|out| report::exports::chrome::write(&timeline, out));
    let events = root["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    // tail and task-b outlast what is open around them on their thread: they are asynchronous.
    assert_eq!((of("X").len(), of("i").len(), of("b").len(), of("e").len()), (8, 1, 2, 2));
    assert_eq!(of("C").len(), 3);
    let forward = of("X").into_iter().find(|event| event["name"] == "forward").unwrap();
    assert_eq!((&forward["ts"], &forward["dur"], &forward["cat"]), (&json!(20.0), &json!(40.0), &json!("call")));
    assert_eq!(forward["args"], json!({"file": "model.py", "line": 12}));
    let decode = of("X").into_iter().find(|event| event["name"] == "decode").unwrap();
    assert_eq!(decode["args"]["args"], json!({"n": [3, "x"]}));
    let tail = of("b").into_iter().find(|event| event["name"] == "tail").unwrap();
    assert_eq!((&tail["args"]["open"], &tail["args"]["args"]), (&json!(true), &json!({"text": "{\"cut\":\"of"})));
    let host = of("C").into_iter().find(|event| event["pid"] == 0).unwrap();
    assert_eq!((&host["name"], &host["args"]["value"]), (&json!("psi_cpu_some_us"), &json!(7)));
    for (id, count) in [(1, 2), (3, 1)] {
        let mut micros = 0;
        let mut known = HashSet::new();
        let mut samples = Vec::new();
        for chunk in of("P").into_iter().filter(|event| event["id"] == id && event["name"] == "ProfileChunk") {
            let data = &chunk["args"]["data"];
            for node in data["cpuProfile"]["nodes"].as_array().unwrap() {
                assert!(node.get("parent").is_none_or(|parent| known.contains(&parent.as_u64().unwrap())));
                assert!(known.insert(node["id"].as_u64().unwrap()));
            }
            for (sample, delta) in
                data["cpuProfile"]["samples"].as_array().unwrap().iter().zip(data["timeDeltas"].as_array().unwrap())
            {
                micros += delta.as_u64().unwrap();
                samples.push((micros, sample.as_u64().unwrap()));
            }
        }
        assert_eq!(samples.len(), count);
        assert!(samples.iter().all(|(_, node)| known.contains(node)));
        assert_eq!(samples[0].0, if id == 1 { 25 } else { 35 });
    }
}

#[test]
fn json_has_every_event_and_the_scopes_tree() {
    let timeline = open(SERVICE);
    let root = parse(|out| report::exports::json::write(&timeline, out));
    check(&timeline, &root);
    let scopes = root["relationships"]["scopes"].as_array().unwrap();
    let by_name = |name: &str| scopes.iter().find(|scope| scope["name"] == name).unwrap();
    assert_eq!(by_name("decode")["parent_id"], by_name("request")["id"]);
    assert_eq!(by_name("request")["child_ids"], json!([by_name("decode")["id"]]));
    // tail ends after its parent, child-of-a after task-a: neither lies inside.
    assert_eq!((&by_name("tail")["parent_id"], &by_name("child-of-a")["parent_id"]), (&Value::Null, &Value::Null));
    let events = root["events"].as_array().unwrap();
    let event = |name: &str| events.iter().find(|event| event["name"] == name).unwrap();
    assert_eq!(event("matmul")["metadata"]["parent_scope"], by_name("decode")["id"]);
    assert_eq!(event("matmul")["metadata"]["call_depth"], 1);
    assert_eq!(event("inside")["metadata"]["parent_scope"], Value::Null, "two tasks are open: which one is not known");
    assert_eq!(event("cache_miss")["metadata"]["args"], json!({"key": "k"}));
    assert_eq!(event("cache_miss")["metadata"]["parent_scope"], by_name("decode")["id"]);
    let range = |name: &str| {
        by_name(name)["event_range"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect::<Vec<_>>()
    };
    let inside =
        |name: &str, scope: &str| (range(scope)[0]..range(scope)[1]).contains(&event(name)["id"].as_u64().unwrap());
    assert!(inside("matmul", "decode") && inside("matmul", "request") && !inside("after", "request"));
    assert_eq!(
        root["losses"],
        json!([{"collector": "calls", "reason": "overwritten",
            "what": "records overwritten before they could be written to disk", "count": 3}])
    );
    assert_eq!(root["trace_metadata"]["timestamp_created"], "2026-09-21T14:13:20Z");
}

/// What `schemas.md` asks of every file.
fn check(timeline: &Timeline, root: &Value) {
    assert_eq!(root["format_version"], "1.1");
    let events = root["events"].as_array().unwrap();
    let mut ids = HashSet::new();
    let mut times = HashMap::new();
    for event in events {
        let id = event["id"].as_u64().unwrap();
        assert!(ids.insert(id), "{id} twice");
        let (start, end) = (nanos(&event["timestamp_start_us"]), nanos(&event["timestamp_end_us"]));
        assert!(start <= end, "{event}");
        assert_eq!(end - start, nanos(&event["duration_us"]), "{event}");
        times.insert(id, (start, end));
    }
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    let points: usize = timeline.counters.iter().map(|counter| counter.time.len()).sum();
    let exits = count("scope_exit");
    assert_eq!(count("scope_enter"), exits);
    let marks = events.iter().filter(|event| event["metadata"]["category"] == "mark").count();
    assert_eq!(exits + count("cpu_call") + marks, timeline.slices.len());
    assert_eq!(count("instant") - marks, timeline.samples.len() + points);
    assert_eq!(events.len(), 2 * exits + count("cpu_call") + count("instant"));
    let scopes = root["relationships"]["scopes"].as_array().unwrap();
    assert_eq!(scopes.len(), exits);
    let mut spans = HashMap::new();
    for scope in scopes {
        let (enter, exit) = (&scope["event_range"][0], &scope["event_range"][1]);
        assert!(enter.as_u64() < exit.as_u64(), "{scope}");
        let span = (times[&enter.as_u64().unwrap()].0, times[&exit.as_u64().unwrap()].0);
        assert!(spans.insert(scope["id"].as_u64().unwrap(), span).is_none());
    }
    for scope in scopes {
        let own = spans[&scope["id"].as_u64().unwrap()];
        for child in scope["child_ids"].as_array().unwrap() {
            let child = scopes.iter().find(|other| other["id"] == *child).unwrap();
            assert_eq!(child["parent_id"], scope["id"]);
            let inner = spans[&child["id"].as_u64().unwrap()];
            assert!(own.0 <= inner.0 && inner.1 <= own.1, "{child} is not inside {scope}");
        }
    }
    for event in events {
        if let Some(parent) = event["metadata"]["parent_scope"].as_u64() {
            let (outer, inner) = (spans[&parent], times[&event["id"].as_u64().unwrap()]);
            assert!(outer.0 <= inner.0 && inner.1 <= outer.1, "{event} is not inside scope {parent}");
        }
    }
    let stacks: HashSet<_> = root["stacks"].as_array().unwrap().iter().map(|stack| stack["id"].as_u64()).collect();
    for sample in events.iter().filter(|event| event["metadata"]["category"] == "sample") {
        let stack = sample["metadata"]["stack"].as_u64();
        assert!(stack.is_none() || stacks.contains(&stack));
    }
}

/// Slices that overlap as they please: whatever was recorded, the file keeps its promises.
#[test]
fn json_and_chrome_hold_for_slices_that_do_not_nest() {
    let mut random = 0x2545_f491_4f6c_dd1du64;
    let mut below = |limit: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % limit
    };
    for case in 0..200 {
        let mut text = String::from("process 100 a 3.12\n");
        for id in 1..=1 + below(25) {
            let kind = ["scope", "step", "call", "mark"][below(4) as usize];
            let (start, length, thread) = (below(20), below(12), 100 + below(2));
            let end = if kind == "mark" { String::new() } else { format!("..{}", start + length) };
            let end = if below(9) == 0 && kind != "mark" { "..".into() } else { end };
            let parent = below(8);
            let ids = if kind == "call" { String::new() } else { format!(" #{id} ^{parent}") };
            text += &format!("{kind} 0 {thread} {start}{end} n{}{ids}\n", below(3));
            if below(3) == 0 {
                text += &format!("sample 0 {thread} {} active f@a.py:{}\n", below(25), below(4));
            }
        }
        let timeline = open(&text);
        check(&timeline, &parse(|out| report::exports::json::write(&timeline, out)));
        let root = parse(|out| report::exports::chrome::write(&timeline, out));
        nests(root["traceEvents"].as_array().unwrap(), case);
    }
}

/// No two `X` of a thread overlap without one lying inside the other: viewers drop or misplace those.
fn nests(events: &[Value], case: i32) {
    let mut ends: HashMap<u64, Vec<u64>> = HashMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let (start, dur) = (nanos(&event["ts"]), nanos(&event["dur"]));
        let open = ends.entry(event["tid"].as_u64().unwrap()).or_default();
        while open.last().is_some_and(|end| *end <= start) {
            open.pop();
        }
        assert!(open.last().is_none_or(|end| start + dur <= *end), "case {case}: {event}");
        open.push(start + dur);
    }
}

#[test]
fn an_empty_trace_is_still_a_file() {
    let timeline = open("process 100 a 3.12");
    let root = parse(|out| report::exports::json::write(&timeline, out));
    check(&timeline, &root);
    assert_eq!(root["events"], json!([]));
    assert_eq!(parse(|out| report::exports::chrome::write(&timeline, out))["traceEvents"].as_array().unwrap().len(), 1);
}
