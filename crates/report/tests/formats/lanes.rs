//! Hard cases of laying slices out, seen through the Perfetto and speedscope exports: whatever overlaps, every lane nests.

use super::parse;
use prost::Message;
use report::exports::perfetto::{self, messages::*};
use std::collections::HashMap;
use std::fmt::Write;
use timeline::Timeline;

/// Checks that every track is balanced and in order of time; gives the number of tracks with slices.
fn lanes(timeline: &Timeline) -> usize {
    let mut bytes = Vec::new();
    perfetto::write(timeline, &mut bytes).unwrap();
    let mut tracks: HashMap<u64, (i64, u64)> = HashMap::new();
    for packet in Trace::decode(&*bytes).unwrap().packet {
        let (Some(event), Some(time)) = (packet.track_event, packet.timestamp) else { continue };
        let step = match event.r#type() {
            EventType::SliceBegin => 1,
            EventType::SliceEnd => -1,
            _ => continue,
        };
        let (depth, last) = tracks.entry(event.track_uuid.unwrap()).or_default();
        *depth += step;
        assert!(*depth >= 0 && time >= *last);
        *last = time;
    }
    assert!(tracks.values().all(|(depth, _)| *depth == 0));
    let mut json = Vec::new();
    report::exports::speedscope::write(timeline, &mut json).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&json).unwrap();
    for profile in file["profiles"].as_array().unwrap().iter().filter(|profile| profile["type"] == "evented") {
        let mut open = Vec::new();
        let mut last = 0;
        for event in profile["events"].as_array().unwrap() {
            let at = event["at"].as_u64().unwrap();
            assert!(at >= last && at <= profile["endValue"].as_u64().unwrap());
            last = at;
            if event["type"] == "O" {
                open.push(event["frame"].clone());
            } else {
                assert_eq!(open.pop().as_ref(), Some(&event["frame"]));
            }
        }
        assert_eq!(open.len(), 0);
    }
    tracks.len()
}

fn lanes_of(slices: &str) -> usize {
    lanes(&parse(&format!("track main\n{slices}")))
}

#[test]
fn synchronous_code_needs_one() {
    assert_eq!(
        lanes_of("scope b 0..9us id 2 parent 1\nscope a 0..9us id 1\nscope c 9us..9us id 3 parent 2\ncall f 9us..9us"),
        1
    );
    assert_eq!(lanes_of("scope a 0..5us id 1\nscope b 5us..9us id 2\nscope c 9us..9us id 3\nscope d 9us..9us id 4"), 1);
}

#[test]
fn a_scope_is_never_under_one_that_is_not_around_it() {
    // Inside by time, but of another task.
    assert_eq!(lanes_of("scope a 0..9us id 1\nscope b 2us..5us id 2"), 2);
    // Two children of one parent at once.
    assert_eq!(lanes_of("scope a 0..9us id 1\nscope b 1us..5us id 2 parent 1\nscope c 2us..4us id 3 parent 1"), 2);
    // A parent that is not in the trace, or on another thread.
    assert_eq!(lanes_of("scope a 0..9us id 1\nscope b 2us..5us id 3 parent 77"), 2);
    // A child that outlives its parent.
    assert_eq!(lanes_of("scope a 0..5us id 1\nscope b 2us..9us id 2 parent 1"), 2);
}

#[test]
fn calls_that_overlap_as_no_calls_can_still_nest() {
    assert_eq!(lanes_of("call f 0..5us\ncall g 2us..9us\ncall h 4us..6us\ncall i 10us..11us"), 2);
    let mut many = String::new();
    (0..40).for_each(|index| writeln!(many, "call f {index}us..{}us", 1000 + index).unwrap());
    assert_eq!(lanes_of(&many), 40);
}

#[test]
fn a_lane_is_used_again_when_it_is_free() {
    let mut many = String::new();
    for round in 0..50 {
        for task in 0..10 {
            let start = round * 100 + task;
            writeln!(many, "scope task {start}us..{}us id {}", start + 50, round * 10 + task + 1).unwrap();
        }
    }
    assert_eq!(lanes_of(&many), 10);
}

#[test]
fn many_tasks_at_once_take_as_many_and_no_endless_time() {
    let mut many = String::new();
    (0..20_000).for_each(|task| writeln!(many, "scope task {task}us..{}us id {}", 30_000 + task, task + 1).unwrap());
    assert_eq!(lanes_of(&many), 20_000);
}
