//! Odd recordings through the command that people use: each becomes a report in every format, says what is odd about it, and
//! neither panics nor ends well with nothing. Damage to files is in the crate `fuzz`, and in the tests of the readers.

use crate::support::Place;
use serde_json::Value;

/// An event as torch.profiler writes it; times in microseconds.
fn event(category: &str, name: &str, thread: u32, ts: impl ToString, dur: impl ToString, args: &str) -> String {
    let (ts, dur) = (ts.to_string(), dur.to_string());
    format!(
        r#"{{"ph":"X","cat":"{category}","name":"{name}","pid":7,"tid":{thread},"ts":{ts},"dur":{dur},"args":{{{args}}}}}"#
    )
}

fn kernel(name: &str, stream: u32, correlation: u32, ts: i64, dur: i64) -> String {
    let args = format!(r#""device":0,"context":1,"stream":{stream},"correlation":{correlation}"#);
    event("kernel", name, stream, ts, dur, &args)
}

fn call(name: &str, correlation: u32, ts: i64, dur: i64) -> String {
    event("cuda_runtime", name, 7, ts, dur, &format!(r#""correlation":{correlation}"#))
}

/// A step of a millisecond with a launch and its kernel.
fn step(number: u32) -> Vec<String> {
    let at = i64::from(number) * 1000;
    vec![
        event("user_annotation", &format!("ProfilerStep#{number}"), 7, at, 900, ""),
        call("cudaLaunchKernel", number, at + 500, 10),
        kernel("gemm", 7, number, at + 520, 90),
    ]
}

fn steps(count: u32) -> Vec<String> {
    (1..=count).flat_map(step).collect()
}

fn file(events: &[String]) -> String {
    format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(",\n"))
}

/// All formats of the report, each with something in it; gives the text and the JSON.
fn analyse(place: &Place, trace: &str) -> (String, Value) {
    let of = |format: &str| place.run(["analyze", trace, "--format", format]).fine().out;
    let (text, markdown, html) = (of("text"), of("markdown"), of("html"));
    assert!(text.lines().count() > 2 && markdown.lines().count() > 2 && html.contains("</html>"), "{trace}: {text}");
    assert!(!text.contains("NaN") && !text.contains("inf "), "{trace}: {text}");
    let json: Value = serde_json::from_str(&of("json")).unwrap();
    assert!(json["bottleneck"]["type"].is_string(), "{json}");
    let share = |part: &Value| part["percentage"].as_f64().unwrap();
    let sum: f64 = json["timeline_breakdown"].as_array().unwrap().iter().map(share).sum();
    assert!(sum == 0.0 || (sum - 100.0).abs() < 0.1, "{trace}: {sum} %");
    (text, json)
}

/// One recording a test, under a name that says what is odd.
fn odd(name: &str, events: &[String], says: &[&str]) -> Value {
    let place = Place::new(name);
    place.write("trace.json", file(events));
    let (text, json) = analyse(&place, "trace.json");
    // Lines wrap where they must; words do not.
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    says.iter().for_each(|said| assert!(flat.contains(said), "{said:?} is not said:\n{text}"));
    json
}

#[test]
fn nothing_to_divide_by() {
    odd("no-steps", &[call("cudaLaunchKernel", 1, 0, 5), kernel("gemm", 7, 1, 9, 50)], &["gemm"]);
    odd("one-event", &[event("cpu_op", "aten::mm", 7, 5, 3, "")], &[]);
    odd("one-kernel", &[kernel("gemm", 7, 1, 5, 3)], &["gemm"]);
    odd("one-mark", &[event("user_annotation", "ProfilerStep#1", 7, 5, 0, "")], &[]);
    let zero: Vec<String> = (1..20)
        .flat_map(|n| {
            [
                event("user_annotation", &format!("ProfilerStep#{n}"), 7, n, 0, ""),
                call("cudaLaunchKernel", n, i64::from(n), 0),
                kernel("gemm", 7, n, i64::from(n), 0),
            ]
        })
        .collect();
    odd("zero-length", &zero, &[]);
    let place = Place::new("no-events");
    place.write("empty.json", r#"{"schemaVersion":1,"traceEvents":[]}"#);
    let error = place.run(["analyze", "empty.json"]).refused(5);
    assert!(error.contains("no events"), "{error}");
}

#[test]
fn half_of_the_story() {
    let host: Vec<String> = steps(8).into_iter().filter(|event| !event.contains("\"kernel\"")).collect();
    let json = odd("no-gpu", &host, &["ProfilerStep"]);
    assert_eq!(json["gpu"].as_array().map(Vec::len), Some(0), "{}", json["gpu"]);
    let device: Vec<String> = steps(8).into_iter().filter(|event| event.contains("\"kernel\"")).collect();
    odd("only-gpu", &device, &["gemm"]);
    // Launched before the recording began: its launch is not in the file.
    let mut before = vec![kernel("from_before", 7, 900, 100, 700)];
    before.extend(steps(8));
    let json = odd("before", &before, &["gemm"]);
    assert!(json["gpu"][0]["unlinked_events"].as_u64().is_some(), "{}", json["gpu"]);
}

#[test]
fn times_that_cannot_be() {
    let mut negative = steps(8);
    negative.push(event("cpu_op", "aten::mm", 7, 2000, -5, ""));
    negative.push(kernel("backwards", 7, 77, 3000, -90));
    negative.push(event("cpu_op", "aten::mm", 7, "-1e300", "1e300", ""));
    odd(
        "negative",
        &negative,
        &["1 events with a missing or invalid timestamp", "2 events with a negative or absurd duration"],
    );
    // The clock of the device lies behind, then jumps an hour ahead.
    let mut jump = steps(8);
    jump.extend([call("cudaLaunchKernel", 50, 4200, 5), kernel("early", 7, 50, 4199, 2)]);
    jump.extend([call("cudaLaunchKernel", 51, 4300, 5), kernel("late", 7, 51, 3_600_000_000, 2)]);
    odd("jump", &jump, &["gemm"]);
    // All that the device did lies a century away.
    let mut far: Vec<String> = steps(8).into_iter().filter(|event| !event.contains("\"kernel\"")).collect();
    far.push(kernel("far", 7, 3, 4_000_000_000_000_000, 5));
    odd("far", &far, &["ProfilerStep"]);
    let absurd: Vec<String> = steps(8).into_iter().map(|event| event.replace(r#""dur":90"#, r#""dur":9e15"#)).collect();
    odd("absurd", &absurd, &[]);
}

#[test]
fn slices_that_cross_and_numbers_given_out_again() {
    let mut crossing = steps(8);
    for at in 0..40 {
        crossing.push(event("cpu_op", "aten::a", 7, at * 100, 150, ""));
        crossing.push(event("python_function", "a.py(3): f", 7, at * 100 + 70, 110, ""));
    }
    odd("crossing", &crossing, &["ProfilerStep"]);
    let same: Vec<String> = steps(20)
        .into_iter()
        .map(|event| {
            let from = event.find(r#""correlation":"#).unwrap_or(event.len());
            let digits =
                event[from..].char_indices().skip(14).find(|(_, c)| !c.is_ascii_digit()).map_or(0, |(at, _)| at);
            if digits == 0 { event } else { format!("{}\"correlation\":5{}", &event[..from], &event[from + digits..]) }
        })
        .collect();
    assert!(same.iter().filter(|event| event.contains(r#""correlation":5}"#)).count() == 40, "{}", same[1]);
    odd("reused", &same, &["gemm"]);
    let nested: Vec<String> =
        (0..300).map(|at| event("user_annotation", &format!("ProfilerStep#{at}"), 7, at, 1000 - 2 * at, "")).collect();
    odd("steps-in-steps", &nested, &[]);
}

#[test]
fn a_million_streams_end_in_one_report() {
    let events: Vec<String> = (0..1_000_000).map(|n| kernel("k", n, 0, i64::from(n), 1)).collect();
    let place = Place::new("million-streams");
    place.write("trace.json", file(&events));
    let page = place.run(["analyze", "trace.json", "--format", "html"]).fine().out;
    assert!(page.len() < 20 << 20, "the page has {} bytes", page.len());
    assert!(page.contains("998976 GPU operations are in streams beyond the first 1024"), "it is said");
}

#[test]
fn two_ranks_with_one_number() {
    let place = Place::new("same-rank");
    let rank = |number: u32| {
        let head = format!(r#"{{"distributedInfo":{{"backend":"nccl","rank":{number},"world_size":2}},"#);
        file(&steps(8)).replacen('{', &head, 1)
    };
    place.write("ranks/a.json", rank(0));
    place.write("ranks/b.json", rank(0));
    let (text, _) = analyse(&place, "ranks");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("rank 0"), "{text}");
}
