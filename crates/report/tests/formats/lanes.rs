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
    lanes(&parse(&format!("process 100 a 3.12\n{slices}")))
}

#[test]
fn synchronous_code_needs_one() {
    assert_eq!(
        lanes_of("scope 0 100 0..9 b #2 ^1\nscope 0 100 0..9 a #1\nscope 0 100 9..9 c #3 ^2\ncall 0 100 9..9 f"),
        1
    );
    assert_eq!(
        lanes_of("scope 0 100 0..5 a #1\nscope 0 100 5..9 b #2\nscope 0 100 9..9 c #3\nscope 0 100 9..9 d #4"),
        1
    );
}

#[test]
fn a_scope_is_never_under_one_that_is_not_around_it() {
    // Inside by time, but of another task.
    assert_eq!(lanes_of("scope 0 100 0..9 a #1\nscope 0 100 2..5 b #2"), 2);
    // Two children of one parent at once.
    assert_eq!(lanes_of("scope 0 100 0..9 a #1\nscope 0 100 1..5 b #2 ^1\nscope 0 100 2..4 c #3 ^1"), 2);
    // A parent that is not in the trace, or on another thread.
    assert_eq!(lanes_of("scope 0 100 0..9 a #1\nscope 0 100 2..5 b #3 ^77"), 2);
    // A child that outlives its parent.
    assert_eq!(lanes_of("scope 0 100 0..5 a #1\nscope 0 100 2..9 b #2 ^1"), 2);
}

#[test]
fn calls_that_overlap_as_no_calls_can_still_nest() {
    assert_eq!(lanes_of("call 0 100 0..5 f\ncall 0 100 2..9 g\ncall 0 100 4..6 h\ncall 0 100 10..11 i"), 2);
    let mut many = String::new();
    (0..40).for_each(|index| writeln!(many, "call 0 100 {index}..{} f", 1000 + index).unwrap());
    assert_eq!(lanes_of(&many), 40);
}

#[test]
fn a_lane_is_used_again_when_it_is_free() {
    let mut many = String::new();
    for round in 0..50 {
        for task in 0..10 {
            let start = round * 100 + task;
            writeln!(many, "scope 0 100 {start}..{} task #{}", start + 50, round * 10 + task + 1).unwrap();
        }
    }
    assert_eq!(lanes_of(&many), 10);
}

#[test]
fn many_tasks_at_once_take_as_many_and_no_endless_time() {
    let mut many = String::new();
    (0..20_000).for_each(|task| writeln!(many, "scope 0 100 {task}..{} task #{}", 30_000 + task, task + 1).unwrap());
    assert_eq!(lanes_of(&many), 20_000);
}
