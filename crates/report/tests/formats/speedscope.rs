//! The speedscope export read back: frames, weights and events are what the format's schema asks for, and say what the
//! timeline says.

use super::timelines;
use report::exports::speedscope;
use serde_json::Value;
use timeline::Timeline;

fn read(timeline: &Timeline) -> Value {
    let mut bytes = Vec::new();
    speedscope::write(timeline, &mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

fn profile<'a>(file: &'a Value, name: &str) -> &'a Value {
    let profiles = file["profiles"].as_array().unwrap();
    profiles.iter().find(|profile| profile["name"] == name).unwrap_or_else(|| {
        let names: Vec<&Value> = profiles.iter().map(|profile| &profile["name"]).collect();
        panic!("no {name} in {names:?}")
    })
}

fn frame(file: &Value, index: &Value) -> String {
    file["shared"]["frames"][index.as_u64().unwrap() as usize]["name"].as_str().unwrap().into()
}

#[test]
fn samples_are_stacks_with_the_time_they_stand_for() {
    let file = read(&timelines::open(&timelines::everything()));
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let profile = profile(&file, "serve.py (100) / MainThread (100): samples");
    let samples = profile["samples"].as_array().unwrap();
    let stacks: Vec<String> = samples
        .iter()
        .map(|stack| stack.as_array().unwrap().iter().map(|index| frame(&file, index)).collect::<Vec<_>>().join(";"))
        .collect();
    let matmul = "main;forward;matmul";
    assert_eq!(stacks, ["", "main;forward", matmul, matmul, "main;wait;(idle)", "", "main"]);
    let weights: Vec<u64> =
        profile["weights"].as_array().unwrap().iter().map(|weight| weight.as_u64().unwrap() / 1_000_000).collect();
    assert_eq!(weights, [10, 10, 10, 10, 10, 30, 10]);
    assert_eq!(profile["endValue"], 90_000_000);
}

#[test]
fn slices_are_events_that_open_and_close_in_turn() {
    let file = read(&timelines::open(&timelines::everything()));
    let events = |name: &str| -> String {
        let events = profile(&file, name)["events"].as_array().unwrap();
        let text = |event: &Value| {
            let at = event["at"].as_u64().unwrap() / 1_000_000;
            format!("{}{at}:{}", event["type"].as_str().unwrap(), frame(&file, &event["frame"]))
        };
        events.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        events("serve.py (100) / MainThread (100): scopes and calls"),
        "O0:request O10:decode O20:forward O30:matmul C40:matmul C60:forward C80:decode O85:answer C90:answer C90:request"
    );
    assert_eq!(
        events("serve.py (100) / loop (101): overlapping scopes 1"),
        "O20:task_b O22:inner_b C28:inner_b C30:task_b"
    );
    let forward = file["shared"]["frames"].as_array().unwrap().iter().find(|frame| frame["line"] == 12).unwrap();
    assert_eq!((&forward["name"], &forward["file"]), (&"forward".into(), &"model.py".into()));
}

#[test]
fn names_that_try_to_break_out_arrive_as_they_are() {
    let file = read(&timelines::hostile());
    let frames = file["shared"]["frames"].as_array().unwrap();
    let hostile = frames.iter().find(|frame| frame["line"] == 7).unwrap();
    assert_eq!((&hostile["name"], &hostile["file"]), (&timelines::HOSTILE.into(), &timelines::HOSTILE.into()));
    let profiles = file["profiles"].as_array().unwrap();
    assert!(profiles.iter().any(|profile| profile["name"].as_str().unwrap().contains(timelines::HOSTILE)));
    let indexes = profiles.iter().flat_map(|profile| profile["samples"].as_array().into_iter().flatten());
    let mut indexes = indexes.flat_map(|stack| stack.as_array().unwrap());
    assert!(indexes.all(|index| (index.as_u64().unwrap() as usize) < frames.len()));
}

#[test]
fn an_empty_recording_says_so() {
    let file = read(&timelines::nothing());
    let profiles = file["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 1);
    assert_eq!(profiles[0]["name"], "no sample and no slice was recorded in this trace");
    assert_eq!(profiles[0]["samples"], Value::Array(Vec::new()));
}
