//! The exports of a timeline with devices read back: categories and arguments that other tools know, arrows that lead from a
//! call to its work, and every piece of work once.

use super::timelines;
use prost::Message;
use report::exports::perfetto::messages::{EventType, Trace, TrackEvent};
use serde_json::{Value, json};
use std::collections::HashMap;
use timeline::{Timeline, WorkKind};

fn chrome(timeline: &Timeline) -> Vec<Value> {
    let mut bytes = Vec::new();
    report::exports::chrome::write(timeline, &mut bytes).unwrap();
    let root: Value = serde_json::from_slice(&bytes).unwrap();
    root["traceEvents"].as_array().unwrap().clone()
}

fn of<'a>(events: &'a [Value], category: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["cat"] == category).collect()
}

#[test]
fn chrome_has_the_categories_and_arguments_that_others_know() {
    let events = chrome(&timelines::small());
    let counts = ["kernel", "gpu_memcpy", "gpu_memset", "cuda_sync", "cuda_runtime", "cuda_driver", "nvtx", "layer"];
    assert_eq!(counts.map(|category| of(&events, category).len()), [17, 8, 4, 4, 24, 4, 4, 8]);
    let kernels = of(&events, "kernel");
    let softmax = kernels.iter().find(|event| event["name"] == "softmax<T>").unwrap();
    let args = &softmax["args"];
    let expected = json!({"device": 0, "context": 1, "stream": 7, "correlation": 3, "grid": [64, 1, 1],
        "block": [128, 1, 1], "registers per thread": 0, "shared memory": 0});
    assert_eq!(args, &expected);
    let node = kernels.iter().find(|event| event["name"] == "node_b").unwrap();
    assert_eq!((&node["args"]["graph id"], &node["args"]["graph node id"]), (&json!(3), &json!(2)));
    let copy = of(&events, "gpu_memcpy")[0];
    assert_eq!((&copy["args"]["bytes"], &copy["args"]["memory bandwidth (GB/s)"]), (&json!(2_000_000), &json!(10.0)));
    let launch = of(&events, "cuda_driver")[0];
    assert_eq!((&launch["name"], &launch["args"]["correlation"]), (&json!("cuLaunchKernelEx"), &json!(3)));
}

#[test]
fn chrome_arrows_lead_from_a_call_to_its_work() {
    let events = chrome(&timelines::small());
    let mut begins: HashMap<u64, &Value> = HashMap::new();
    let arrows = of(&events, "ac2g");
    for arrow in arrows.iter().filter(|arrow| arrow["ph"] == "s") {
        assert!(begins.insert(arrow["id"].as_u64().unwrap(), arrow).is_none(), "one begin for each: {arrow}");
    }
    let ends: Vec<_> = arrows.iter().filter(|arrow| arrow["ph"] == "f").collect();
    // Everything but the piece from before the window, which points nowhere.
    assert_eq!((begins.len(), ends.len()), (32, 32));
    for end in ends {
        let begin = begins[&end["id"].as_u64().unwrap()];
        assert!(begin["ts"].as_f64() <= end["ts"].as_f64());
        let at = |arrow: &Value, event: &Value| ["pid", "tid", "ts"].iter().all(|field| arrow[field] == event[field]);
        let call = events.iter().find(|event| event["ph"] == "X" && at(begin, event)).unwrap();
        let work = events.iter().find(|event| event["ph"] == "X" && at(end, event)).unwrap();
        assert_eq!(call["args"]["correlation"], work["args"]["correlation"], "{call} {work}");
    }
}

#[test]
fn perfetto_has_a_track_a_stream_and_flows_from_the_calls() {
    let timeline = timelines::small();
    let mut bytes = Vec::new();
    report::exports::perfetto::write(&timeline, &mut bytes).unwrap();
    let packets = Trace::decode(&*bytes).unwrap().packet;
    let tracks: HashMap<u64, _> =
        packets.iter().filter_map(|packet| packet.track_descriptor.clone()).map(|t| (t.uuid.unwrap(), t)).collect();
    let label = |uuid: u64| {
        let track = &tracks[&uuid];
        let parent = track.parent_uuid.and_then(|parent| tracks[&parent].name.clone()).unwrap_or_default();
        format!("{parent} > {}", track.name.clone().unwrap_or_default())
    };
    let events: Vec<(u64, &TrackEvent)> =
        packets.iter().filter_map(|p| Some((p.timestamp?, p.track_event.as_ref()?))).collect();
    let mut depth: HashMap<u64, i32> = HashMap::new();
    let mut on: HashMap<String, usize> = HashMap::new();
    for (_, event) in &events {
        let depth = depth.entry(event.track_uuid.unwrap()).or_default();
        match event.r#type() {
            EventType::SliceBegin => {
                *depth += 1;
                *on.entry(label(event.track_uuid.unwrap())).or_default() += 1;
            }
            EventType::SliceEnd => *depth -= 1,
            _ => {}
        }
        assert!(*depth >= 0);
    }
    assert!(depth.values().all(|depth| *depth == 0));
    assert_eq!((on["GPU 0 · NVIDIA H200 > stream 7"], on["GPU 0 · NVIDIA H200 > stream 13"]), (25, 8));
    let starts: HashMap<u64, u64> =
        events.iter().flat_map(|(time, event)| event.flow_ids.iter().map(|flow| (*flow, *time))).collect();
    let ends: Vec<(u64, u64)> =
        events.iter().flat_map(|(time, event)| event.terminating_flow_ids.iter().map(|flow| (*flow, *time))).collect();
    // 32 launches, and four waits with what they waited for.
    assert_eq!((starts.len(), ends.len()), (36, 36));
    assert!(ends.iter().all(|(flow, time)| starts[flow] <= *time));
    let counters = tracks.values().filter(|track| track.counter.is_some());
    assert!(counters.filter_map(|track| track.name.as_deref()).any(|name| name == "GPU 0: gpu_utilisation_percent"));
}

/// Two waits for the same kernel, which began before the one and after the other; a wait for nothing has no flow.
#[test]
fn perfetto_joins_a_wait_to_what_it_waited_for() {
    let timeline = Timeline::from_text(
        "track main
         api cudaStreamSynchronize 0..1us corr 1
         api cudaLaunchKernel 2us..3us corr 2
         api cudaStreamSynchronize 4us..50us corr 3
         api cudaStreamSynchronize 60us..61us corr 4
         stream 7
         sync stream 0..1us corr 1
         kernel gemm 10us..46us corr 2
         sync stream 4us..50us corr 3
         sync stream 60us..61us corr 4",
    )
    .unwrap();
    let mut bytes = Vec::new();
    report::exports::perfetto::write(&timeline, &mut bytes).unwrap();
    let packets = Trace::decode(&*bytes).unwrap().packet;
    let events: Vec<(u64, TrackEvent)> =
        packets.into_iter().filter_map(|packet| Some((packet.timestamp?, packet.track_event?))).collect();
    let at = |flow: u64, of: fn(&TrackEvent) -> &Vec<u64>| {
        let event = events.iter().find(|(_, event)| of(event).contains(&flow));
        event.map(|(time, event)| (time - timeline.start, event.category_iid))
    };
    let flows: std::collections::BTreeSet<u64> = events.iter().flat_map(|(_, event)| event.flow_ids.clone()).collect();
    let waits: Vec<_> = flows.into_iter().filter(|flow| *flow >= 1 << 48).collect();
    let ends = waits.iter().map(|flow| (at(*flow, |e| &e.flow_ids), at(*flow, |e| &e.terminating_flow_ids)));
    let (call, kernel) = (Some(7), Some(111));
    let expected = [(Some((4_000, call)), Some((10_000, kernel))), (Some((10_000, kernel)), Some((60_000, call)))];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
}

#[test]
fn json_has_kernels_copies_and_memory() {
    let timeline = timelines::small();
    let mut bytes = Vec::new();
    report::exports::json::write(&timeline, &mut bytes).unwrap();
    let root: Value = serde_json::from_slice(&bytes).unwrap();
    let events = root["events"].as_array().unwrap();
    let of = |sort: &str| events.iter().filter(|event| event["type"] == sort).collect::<Vec<_>>();
    let counts = ["gpu_kernel", "h2d_copy", "d2h_copy", "memory_event"].map(|sort| of(sort).len());
    assert_eq!(counts, [17, 4, 4, 6]);
    let copy = &of("h2d_copy")[0]["metadata"];
    assert_eq!(
        (&copy["kind"], &copy["throughput_gbps"], &copy["bytes"]),
        (&json!("pageable"), &json!(10.0), &json!(2_000_000))
    );
    let kernel = of("gpu_kernel").into_iter().find(|event| event["name"] == "softmax<T>").unwrap();
    assert_eq!((&kernel["metadata"]["grid_dim"], &kernel["duration_us"]), (&json!([64, 1, 1]), &json!(200.0)));
    assert_eq!(kernel["metadata"]["occupancy"], Value::Null);
    let operations: Vec<_> = of("memory_event").iter().map(|event| event["metadata"]["operation"].clone()).collect();
    assert_eq!(operations, ["memset", "memset", "memset", "memset", "malloc", "free"]);
    let about = (&root["trace_metadata"]["gpu_model"], &root["trace_metadata"]["cuda_version"]);
    assert_eq!((about, &root["system_info"]["gpu_count"]), ((&json!("NVIDIA H200"), &json!("13.0")), &json!(1)));
    let ids: std::collections::HashSet<_> = events.iter().map(|event| event["id"].as_u64()).collect();
    assert_eq!(ids.len(), events.len());
}

#[test]
fn a_recording_with_devices_opens_again_from_its_json() {
    let timeline = timelines::small();
    let folder = timeline::fixture::TemporaryFolder::new("gpu-json");
    std::fs::create_dir_all(folder.path()).unwrap();
    let path = folder.path().join("trace.json");
    report::exports::json::write(&timeline, &mut std::fs::File::create(&path).unwrap()).unwrap();
    let again = timeline::open(&path).unwrap();
    for kind in [WorkKind::Kernel, WorkKind::Memcpy] {
        let of = |timeline: &Timeline| {
            let work = &timeline.gpu.work;
            let all = (0..work.len()).filter(|index| work.kind(*index) == kind);
            all.map(|index| (work.start[index] - timeline.start, work.dur[index], work.more(index).bytes))
                .collect::<Vec<_>>()
        };
        assert_eq!(of(&timeline), of(&again), "{:?}", again.notes);
    }
    assert_eq!(again.gpu.allocations.len(), 2);
}
