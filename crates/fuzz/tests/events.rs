//! Traces of a few dozen events whose fields are all possible and whose whole may not be: lengths of zero, slices that cross,
//! numbers given out again, clocks that jump, launches after their work, steps in steps.

use crate::words::{CALLS, CATEGORIES, COPIES, HOST, KERNELS};
use fuzz::Random;
use timeline::fixture::pickle::Py;

/// As torch.profiler writes it.
pub fn kineto(random: &mut Random) -> Vec<u8> {
    let span = random.pick(&[20, 2_000, 2_000_000]);
    let events: Vec<String> = (0..random.below(80)).map(|_| kineto_event(random, span)).collect();
    let device =
        r#"{"id":0,"name":"NVIDIA H100 80GB HBM3","totalGlobalMem":85018279936,"computeMajor":9,"numSms":132}"#;
    let head = match random.below(4) {
        0 => String::new(),
        1 => format!(r#""deviceProperties":[{device}],"baseTimeNanoseconds":{},"#, random.number(1000)),
        2 => format!(
            r#""distributedInfo":{{"backend":"nccl","rank":{},"world_size":{}}},"#,
            random.number(3),
            random.number(3)
        ),
        _ => format!(
            r#""schemaVersion":{},"displayTimeUnit":"ns","deviceProperties":[{device},{device}],"#,
            random.number(3)
        ),
    };
    format!("{{{head}\"traceEvents\":[{}]}}", events.join(",\n")).into_bytes()
}

fn kineto_event(random: &mut Random, span: usize) -> String {
    let category = random.pick(&CATEGORIES);
    let name = match category {
        "kernel" | "Kernel" => random.pick(&KERNELS),
        "cuda_runtime" | "Runtime" | "cuda_driver" => random.pick(&CALLS),
        "gpu_memcpy" | "gpu_memset" => random.pick(&COPIES),
        "cuda_sync" => "Stream Sync",
        "cpu_instant_event" => "[memory]",
        _ => random.pick(&HOST),
    };
    let phase = random.pick(&["X", "X", "X", "X", "X", "X", "i", "s", "f", "M", "C", "B", "E"]);
    let (pid, tid) = (random.number(2), random.number(3));
    let mut args = Vec::new();
    for key in ["correlation", "stream", "device", "context", "bytes", "External id", "Python id", "Ev Idx", "graph id"]
    {
        if !random.one_in(3) {
            let value = random.number(if key == "bytes" { 1 << 20 } else { 6 });
            args.push(format!("\"{key}\":{value}"));
        }
    }
    if random.one_in(2) {
        let (a, b) = (random.number(4096), random.number(4096));
        args.push(format!(r#""Input Dims":[[{a},{b}],[{b},{a}],[]],"Input type":["float","c10::BFloat16",""]"#));
        let sides = [random.number(200), random.number(3), random.number(1024)];
        args.push(format!(
            r#""grid":[{},{},1],"block":[{},1,1],"registers per thread":255"#,
            sides[0], sides[1], sides[2]
        ));
    }
    let (ts, dur) = (random.number(span), random.number(span / 4 + 1));
    format!(
        r#"{{"ph":"{phase}","cat":"{category}","name":"{name}","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"id":{},"args":{{{}}}}}"#,
        random.below(6),
        args.join(",")
    )
}

/// As InferScope JSON 1.0 has it.
pub fn inferscope_json(random: &mut Random) -> Vec<u8> {
    const TYPES: [&str; 9] = [
        "cpu_call",
        "cpu_syscall",
        "gpu_kernel",
        "h2d_copy",
        "d2h_copy",
        "memory_event",
        "instant",
        "scope_enter",
        "scope_exit",
    ];
    let span = random.pick(&[20, 100_000]);
    let event = |random: &mut Random| {
        let kind = random.pick(&TYPES);
        let name = match kind {
            "gpu_kernel" => random.pick(&KERNELS),
            "cpu_syscall" => "read",
            _ => random.pick(&HOST),
        };
        let (start, length) = (random.below(span), random.below(span / 3 + 1));
        let end = if random.one_in(9) { random.number(span) } else { (start + length).to_string() };
        let metadata = format!(
            r#"{{"thread_id":{},"process_id":{},"scope":{},"parent_scope":{},"call_depth":{},"device_id":{},"stream_id":{},"bytes":{},"kind":"{}","operation":"{}","grid_dim":[{},1,1],"block_dim":[32,1,1],"occupancy":{}}}"#,
            random.number(3),
            random.number(2),
            random.number(5),
            random.number(5),
            random.number(9),
            random.number(2),
            random.number(3),
            random.number(1 << 20),
            random.pick(&["pageable", "pinned", "step", "call", "c-call"]),
            random.pick(&["malloc", "free", "numa_migration", "?"]),
            random.number(64),
            random.number(2),
        );
        format!(
            r#"{{"id":{},"type":"{kind}","name":"{name}","timestamp_start_us":{start},"timestamp_end_us":{end},"duration_us":{},"timestamp_us":{start},"metadata":{metadata}}}"#,
            random.below(60),
            random.number(span),
        )
    };
    let events: Vec<String> = (0..random.below(60)).map(|_| event(random)).collect();
    let events = events.join(",\n");
    match random.below(4) {
        0 => format!("[{events}]"),
        1 => format!(r#"{{"timeline":[{events}]}}"#),
        _ => {
            let (a, b) = (random.number(60), random.number(60));
            format!(
                r#"{{"format_version":"1.0","trace_metadata":{{"duration_ms":{a}}},"system_info":{{"cpu_count":{b}}},"events":[{events}],
                "relationships":{{"scopes":[{{"id":{a},"name":"s","parent_id":{b},"child_ids":[{a}],"event_range":[{b},{a}]}}]}}}}"#
            )
        }
    }
    .into_bytes()
}

/// As `torch.cuda.memory._dump_snapshot` writes it: blocks that overlap, frees of what is not there, segments of nothing.
pub fn snapshot(random: &mut Random) -> Py {
    const ACTIONS: [&str; 9] = [
        "alloc",
        "alloc",
        "free_requested",
        "free_completed",
        "segment_alloc",
        "segment_free",
        "segment_map",
        "segment_unmap",
        "oom",
    ];
    let number = |random: &mut Random, small: usize| match random.number(small).parse::<i128>() {
        Ok(number) => Py::Int(number),
        Err(_) => Py::Float(0.5),
    };
    let frames = |random: &mut Random| {
        let frame = |random: &mut Random| {
            let file = random.pick(&["model.py", "/usr/lib/python3.12/site-packages/torch/nn.py", "??"]);
            Py::dict([("name", random.pick(&HOST).into()), ("filename", file.into()), ("line", number(random, 90))])
        };
        Py::List((0..random.below(4)).map(|_| frame(random)).collect())
    };
    let event = |random: &mut Random| {
        let event = Py::dict([("action", random.pick(&ACTIONS).into()), ("frames", frames(random))]);
        let event = event.with("addr", number(random, 9)).with("size", number(random, 1 << 22));
        let event = event.with("device_free", number(random, 1 << 22)).with("stream", number(random, 2));
        if random.one_in(9) { event } else { event.with("time_us", number(random, 2000)) }
    };
    let block = |random: &mut Random| {
        let state = random.pick(&["active_allocated", "inactive", "active_awaiting_free", "?"]);
        let block = Py::dict([("size", number(random, 1 << 22)), ("state", state.into()), ("frames", frames(random))]);
        let block = block.with("requested_size", number(random, 1 << 22));
        if random.one_in(3) { block } else { block.with("address", number(random, 9)) }
    };
    let segment = |random: &mut Random| {
        let blocks = Py::List((0..random.below(5)).map(|_| block(random)).collect());
        let segment =
            Py::dict([("address", number(random, 9)), ("total_size", number(random, 1 << 24)), ("blocks", blocks)]);
        let pool = Py::Tuple(vec![number(random, 2), number(random, 2)]);
        let segment = segment.with("segment_type", random.pick(&["large", "small"])).with("segment_pool_id", pool);
        segment.with("device", number(random, 2)).with("is_expandable", Py::Bool(random.one_in(2)))
    };
    let segments = Py::List((0..random.below(6)).map(|_| segment(random)).collect());
    if random.one_in(8) {
        return segments;
    }
    let trace = |random: &mut Random| Py::List((0..random.below(60)).map(|_| event(random)).collect());
    let traces = Py::List((0..random.below(3)).map(|_| trace(random)).collect());
    let annotation = |random: &mut Random| {
        let stage = random.pick(&["START", "END"]);
        Py::dict([("stage", stage.into()), ("name", random.pick(&HOST).into()), ("time_us", number(random, 2000))])
    };
    let annotations = Py::List((0..random.below(9)).map(|_| annotation(random)).collect());
    let settings =
        Py::dict([("max_split_size", number(random, 1 << 28)), ("expandable_segments", Py::Bool(random.one_in(2)))]);
    let snapshot = Py::dict([("segments", segments), ("device_traces", traces), ("allocator_settings", settings)]);
    snapshot.with("external_annotations", annotations)
}
