//! The pprof export read back, with the checks that pprof's own reader makes: every reference leads somewhere, every
//! sample has as many values as there are types.

use super::{parse, timelines};
use flate2::read::GzDecoder;
use prost::Message;
use report::exports::pprof::{self, messages::*};
use std::collections::HashMap;
use std::io::Read;
use timeline::Timeline;

fn read(timeline: &Timeline) -> Profile {
    let mut bytes = Vec::new();
    pprof::write(timeline, &mut bytes).unwrap();
    let mut plain = Vec::new();
    GzDecoder::new(&*bytes).read_to_end(&mut plain).unwrap();
    let profile = Profile::decode(&*plain).unwrap();
    check(&profile);
    profile
}

fn check(profile: &Profile) {
    assert_eq!(profile.string_table[0], "");
    let text = |index: i64| assert!((index as usize) < profile.string_table.len());
    let functions: HashMap<u64, &Function> = profile.function.iter().map(|function| (function.id, function)).collect();
    let locations: HashMap<u64, &Location> = profile.location.iter().map(|location| (location.id, location)).collect();
    assert_eq!((functions.len(), locations.len()), (profile.function.len(), profile.location.len()));
    assert!(!functions.contains_key(&0) && !locations.contains_key(&0));
    for function in &profile.function {
        text(function.name);
        text(function.filename);
    }
    assert!(
        profile.location.iter().flat_map(|location| &location.line).all(|l| functions.contains_key(&l.function_id))
    );
    for sample in &profile.sample {
        assert_eq!(sample.value.len(), profile.sample_type.len());
        assert!(!sample.location_id.is_empty());
        assert!(sample.location_id.iter().all(|id| locations.contains_key(id)));
        for label in &sample.label {
            text(label.key);
            assert!((label.str == 0) != (label.num == 0), "a label is a text or a number: {label:?}");
        }
    }
    profile.comment.iter().for_each(|index| text(*index));
}

/// `leaf:line;…;root:line samples wall-ms cpu-ms labels`.
fn draw(profile: &Profile) -> Vec<String> {
    let text = |index: i64| profile.string_table[index as usize].as_str();
    let frame = |id: &u64| {
        let location = profile.location.iter().find(|location| location.id == *id).unwrap();
        let line = &location.line[0];
        let function = profile.function.iter().find(|function| function.id == line.function_id).unwrap();
        format!("{}:{}", text(function.name), line.line)
    };
    let sample = |sample: &Sample| {
        let stack: Vec<String> = sample.location_id.iter().map(frame).collect();
        let labels = sample.label.iter().filter(|label| label.str != 0).map(|label| text(label.str));
        let labels: Vec<&str> = labels.collect();
        let value = &sample.value;
        let ms = 1_000_000;
        format!("{} {} {} {} {}", stack.join(";"), value[0], value[1] / ms, value[2] / ms, labels.join("|"))
    };
    profile.sample.iter().map(sample).collect()
}

#[test]
fn samples_are_counted_and_timed_by_stack_thread_and_state() {
    let profile = read(&timelines::open(&timelines::everything()));
    let main = "serve.py (100)|MainThread (100)";
    assert_eq!(
        draw(&profile),
        [
            format!("main:3 1 10 10 {main}|running|held"),
            format!("forward:14;main:3 1 10 10 {main}|running|held"),
            format!("matmul:2;forward:15;main:3 1 10 10 {main}|running|not held"),
            format!("matmul:2;forward:15;main:3 1 10 10 {main}|running|held"),
            format!("wait:8;main:4 1 10 0 {main}|waiting|not held"),
            "loop:1 1 10 0 serve.py (100)|loop (101)|waiting|not held".to_owned(),
        ]
    );
    let text = |index: i64| profile.string_table[index as usize].as_str();
    let types: Vec<(&str, &str)> =
        profile.sample_type.iter().map(|kind| (text(kind.r#type), text(kind.unit))).collect();
    assert_eq!(types, [("samples", "count"), ("wall", "nanoseconds"), ("cpu", "nanoseconds")]);
    assert_eq!(text(profile.default_sample_type), "cpu");
    assert_eq!((profile.period, profile.duration_nanos), (10_000_000, 90_000_000));
    assert_eq!(profile.time_nanos, 1_790_000_000_000_000_000);
    assert!(profile.comment.iter().any(|index| text(*index).contains("3 records overwritten")));
}

#[test]
fn a_function_has_one_entry_and_a_location_for_each_line() {
    let profile = read(&parse(
        "track main
        sample 1us active f@a.py:1
        sample 2us active f@a.py:2
        sample 3us active f@a.py:1",
    ));
    assert_eq!((profile.function.len(), profile.location.len(), profile.sample.len()), (1, 2, 2));
    assert_eq!(profile.sample.iter().map(|sample| sample.value[0]).sum::<i64>(), 3);
}

#[test]
fn what_a_terminal_would_obey_is_written_out() {
    let profile = read(&timelines::hostile());
    let hostile = |text: &String| text.starts_with("a;b c\\td\\r\\n7 \\u{0}\\u{1b}[31m");
    let name = profile.string_table.iter().position(hostile).unwrap() as i64;
    assert!(profile.function.iter().any(|function| (function.name, function.filename) == (name, name)));
    assert!(profile.comment.contains(&name));
    assert!(profile.string_table.iter().all(|text| !text.chars().any(char::is_control)));
    assert!(profile.string_table[name as usize].contains("名前 🦀"));
}

#[test]
fn an_empty_recording_says_so() {
    let profile = read(&timelines::nothing());
    assert_eq!((profile.sample.len(), profile.sample_type.len()), (0, 3));
    let comments: Vec<&str> =
        profile.comment.iter().map(|index| profile.string_table[*index as usize].as_str()).collect();
    assert!(comments.contains(&"nothing was recorded in this trace"), "{comments:?}");
}
