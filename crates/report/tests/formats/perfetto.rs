//! The Perfetto export read back: slices nest and are closed on every track, in order of time, and nothing stands under
//! a scope that is not around it. That the official protos read the same is tested in tests/exports.

use super::timelines;
use prost::Message;
use report::exports::perfetto::{self, messages::*};
use std::collections::HashMap;
use timeline::Timeline;

/// A trace read back: packets, tracks by number, names by number.
struct Read {
    packets: Vec<TracePacket>,
    tracks: HashMap<u64, TrackDescriptor>,
    names: HashMap<u64, String>,
}

fn read(timeline: &Timeline) -> Read {
    let mut bytes = Vec::new();
    perfetto::write(timeline, &mut bytes).unwrap();
    let packets = Trace::decode(&*bytes).unwrap().packet;
    let descriptors = packets.iter().filter_map(|packet| packet.track_descriptor.clone());
    let tracks: HashMap<u64, TrackDescriptor> = descriptors.map(|track| (track.uuid.unwrap(), track)).collect();
    let interned = packets.iter().filter_map(|packet| packet.interned_data.as_ref());
    let names = interned.flat_map(|data| &data.event_names).map(|name| (name.iid.unwrap(), name.name.clone().unwrap()));
    Read { names: names.collect(), tracks, packets }
}

impl Read {
    fn label(&self, uuid: u64) -> String {
        let track = &self.tracks[&uuid];
        let thread = track.thread.as_ref().map(|thread| format!("{}/{}", thread.pid.unwrap(), thread.tid.unwrap()));
        let process = track.process.as_ref().map(|process| format!("{}", process.pid.unwrap()));
        let parent = track.parent_uuid.map(|parent| format!("{} > ", self.label(parent))).unwrap_or_default();
        thread.or(process).unwrap_or_else(|| parent + track.name.as_deref().unwrap_or("?"))
    }

    fn name(&self, event: &TrackEvent) -> String {
        event.name.clone().unwrap_or_else(|| self.names[&event.name_iid.unwrap()].clone())
    }

    /// Every track but counters as text; panics where a slice is not closed, not open, or time runs back.
    fn draw(&self) -> HashMap<String, String> {
        let mut open: HashMap<u64, (usize, u64, String)> = HashMap::new();
        for packet in &self.packets {
            let (Some(event), Some(time)) = (&packet.track_event, packet.timestamp) else { continue };
            assert_eq!(packet.sequence_flags.unwrap() & SEQ_NEEDS_INCREMENTAL_STATE, SEQ_NEEDS_INCREMENTAL_STATE);
            let uuid = event.track_uuid.unwrap();
            let (depth, last, text) = open.entry(uuid).or_default();
            assert!(time >= *last, "{}: {time} after {last}", self.label(uuid));
            *last = time;
            let at = time.saturating_sub(timeline::fixture::text::START_NS as u64) / 1_000_000;
            match event.r#type() {
                EventType::SliceBegin => {
                    *text += &format!("{}{} {at}..\n", "  ".repeat(*depth), self.name(event));
                    *depth += 1;
                }
                EventType::SliceEnd => {
                    *depth = depth.checked_sub(1).expect("an end without a begin");
                    *text += &format!("{}..{at}\n", "  ".repeat(*depth));
                }
                EventType::Instant => *text += &format!("{}{} {at}\n", "  ".repeat(*depth), self.name(event)),
                EventType::Counter => {}
                EventType::Unspecified => panic!("an event of no type"),
            }
        }
        let mut drawn: HashMap<String, String> = HashMap::new();
        let mut tracks: Vec<(u64, (usize, u64, String))> = open.into_iter().collect();
        tracks.sort_unstable_by_key(|(uuid, _)| *uuid);
        for (uuid, (depth, _, text)) in tracks {
            assert_eq!(depth, 0, "{} is not closed", self.label(uuid));
            *drawn.entry(self.label(uuid)).or_default() += &text;
        }
        drawn
    }

    fn begin(&self, name: &str) -> &TrackEvent {
        let mut events = self.packets.iter().filter_map(|packet| packet.track_event.as_ref());
        events.find(|event| event.name_iid.is_some() && self.name(event) == name).unwrap()
    }
}

#[test]
fn slices_nest_and_scopes_of_tasks_get_tracks_of_their_own() {
    let drawn = read(&timelines::open(&timelines::everything())).draw();
    let main = "request 0..\n  decode 10..\n    cache_miss 12\n    forward 20..\n      matmul 30..\n      ..40\n    ..60\n  \
                ..80\n  answer 85..\n  ..90\n..90\n";
    assert_eq!(drawn["100/100"], main);
    assert_eq!(drawn["100/101"], "task_a 10..\n..50\ntask_d 52..\n..60\n");
    let beside = "task_b 20..\n  inner_b 22..\n  ..28\n..30\ntask_c 25..\n..70\n";
    assert_eq!(drawn["100/101 > overlapping scopes"], beside);
}

#[test]
fn samples_become_slices_that_say_they_are_sampled_and_end_where_samples_are_missing() {
    let drawn = read(&timelines::open(&timelines::everything())).draw();
    assert_eq!(
        drawn["100/100 > sampled stacks (at 100 Hz)"],
        "main 10..\n  forward 10..\n    matmul 20..\n    ..40\n  ..40\n  wait 40..\n  ..50\n..50\nmain 80..\n..90\n"
    );
    assert_eq!(
        drawn["100/100 > sampled state (at 100 Hz)"],
        "running with the GIL 10..\n..30\nrunning without the GIL 30..\n..40\nwaiting 40..\n..50\nrunning with the GIL 80..\n..90\n"
    );
}

#[test]
fn times_are_on_the_monotonic_clock_and_the_time_of_day_is_known() {
    let timeline = timelines::open(&timelines::everything());
    let read = read(&timeline);
    let first = &read.packets[0];
    let snapshot = first.clock_snapshot.as_ref().unwrap();
    assert_eq!(snapshot.primary_trace_clock, Some(CLOCK_MONOTONIC));
    let clocks: Vec<(u32, u64)> =
        snapshot.clocks.iter().map(|clock| (clock.clock_id.unwrap(), clock.timestamp.unwrap())).collect();
    assert_eq!(clocks, [(CLOCK_MONOTONIC, 5_000_000_000), (CLOCK_REALTIME, 1_790_000_000_000_000_000)]);
    assert_eq!(first.trace_packet_defaults.as_ref().unwrap().timestamp_clock_id, Some(CLOCK_MONOTONIC));
    assert_eq!(first.sequence_flags, Some(SEQ_INCREMENTAL_STATE_CLEARED | SEQ_NEEDS_INCREMENTAL_STATE));
    assert!(read.packets.iter().all(|packet| packet.trusted_packet_sequence_id == Some(1)));
    assert!(read.packets.iter().skip(1).all(|packet| packet.sequence_flags != first.sequence_flags));
}

#[test]
fn arguments_keep_their_types() {
    let read = read(&timelines::open(&timelines::everything()));
    let decode = read.begin("decode");
    let find = |name: &str| decode.debug_annotations.iter().find(|one| one.name.as_deref() == Some(name)).unwrap();
    assert_eq!(find("tokens").int_value, Some(3));
    assert_eq!(find("ratio").double_value, Some(0.5));
    let deep = &find("deep").dict_entries;
    assert_eq!(deep[0].name.as_deref(), Some("list"));
    assert_eq!(deep[0].array_values[0].int_value, Some(1));
    assert_eq!(deep[0].array_values[1].string_value.as_deref(), Some("null"));
    assert_eq!(deep[1].string_value.as_deref(), Some("{}"));
    let ids: Vec<Option<u64>> = decode.debug_annotations.iter().map(|one| one.uint_value).take(2).collect();
    assert_eq!(ids, [Some(2), Some(1)]);
    assert!(read.begin("answer").debug_annotations.iter().any(|one| one.bool_value == Some(true)));
    let location = read.packets.iter().filter_map(|packet| packet.interned_data.as_ref());
    let location = location.flat_map(|data| &data.source_locations).find(|one| one.line_number == Some(12)).unwrap();
    assert_eq!(location.file_name.as_deref(), Some("model.py"));
}

#[test]
fn counters_stand_under_what_they_were_read_of_with_their_unit() {
    let read = read(&timelines::open(&timelines::everything()));
    let mut counters: Vec<String> = read
        .tracks
        .values()
        .filter_map(|track| Some((track, track.counter.as_ref()?)))
        .map(|(track, counter)| {
            let parent = track.parent_uuid.map_or("machine".into(), |parent| read.label(parent));
            let multiplier = counter.unit_multiplier.unwrap_or(1);
            format!("{parent} {} {:?} x{multiplier}", track.name.as_ref().unwrap(), counter.unit())
        })
        .collect();
    counters.sort();
    assert_eq!(
        counters,
        [
            "100 rss_bytes SizeBytes x1",
            "100 timeslices of thread 999 Count x1",
            "100/100 runqueue_wait_ns TimeNs x1",
            "machine psi_cpu_some_us TimeNs x1000",
        ]
    );
    let mut values: Vec<i64> =
        read.packets.iter().filter_map(|packet| packet.track_event.as_ref()?.counter_value).collect();
    values.sort_unstable();
    assert_eq!(values, [1, 3, 7, 4096, 8192]);
}

#[test]
fn names_that_try_to_break_out_arrive_as_they_are() {
    let read = read(&timelines::hostile());
    read.draw();
    let event = read.begin(timelines::HOSTILE);
    let argument = event.debug_annotations.iter().find(|one| one.name.as_deref() == Some(timelines::HOSTILE));
    assert_eq!(argument.unwrap().string_value.as_deref(), Some(timelines::HOSTILE));
    assert!(read.tracks.values().any(|track| {
        track.thread.as_ref().and_then(|thread| thread.thread_name.as_deref()) == Some(timelines::HOSTILE)
    }));
}

#[test]
fn two_processes_of_one_pid_stay_two() {
    let rows = "process 100 first 3.12\nprocess 100 second 3.12\ncall 0 100 1..2 f\ncall 1 100 1..2 g";
    let read = read(&timelines::open(&timeline::fixture::Fixture::parse(rows)));
    let drawn = read.draw();
    assert_eq!(drawn["100/100"], "f 0..\n..0\n");
    assert_eq!(drawn["second (100) > thread (100)"], "g 0..\n..0\n");
}

#[test]
fn an_empty_recording_says_so() {
    let drawn = read(&timelines::nothing()).draw();
    assert!(drawn["InferScope: about this recording"].contains("nothing was recorded"), "{drawn:?}");
    assert_eq!(drawn.len(), 1);
}

#[test]
fn losses_and_notes_are_in_it() {
    let drawn = read(&timelines::open(&timelines::everything())).draw();
    let about = &drawn["InferScope: about this recording"];
    for part in
        ["python serve.py", "good to 42 ns", "lost by calls: 3 records overwritten", "lost: records overwritten before"]
    {
        assert!(about.contains(part), "{part} in {about}");
    }
}

#[test]
fn work_of_devices_is_closed_and_in_order_on_every_stream() {
    let drawn = read(&timelines::gpu()).draw();
    let stream = &drawn["1000 > GPU 0 · NVIDIA H200 > stream 13"];
    assert_eq!(stream.matches("node_a").count(), 4, "{stream}");
    assert!(drawn["1000/1000"].contains("cudaLaunchKernel"));
}
