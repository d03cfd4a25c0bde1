//! Opens traces of torch.profiler as its versions wrote them over the years: categories, units, odd processes and threads,
//! files with only one half of the story, folders of ranks.

use crate::support::{draw, gzip};
use timeline::fixture::TemporaryFolder;
use timeline::gpu::detail;
use timeline::{OpenError, SliceKind, State, Timeline, WorkKind};

fn open(bytes: impl AsRef<[u8]>) -> Result<Timeline, OpenError> {
    crate::support::Place(TemporaryFolder::new("kineto")).open(bytes.as_ref())
}

fn trace(events: &[&str]) -> String {
    format!(r#"{{"schemaVersion":1,"traceEvents":[{}]}}"#, events.join(","))
}

/// `kind name start+dur device/stream bytes <- launch call` of all work.
fn work(timeline: &Timeline) -> Vec<String> {
    let gpu = &timeline.gpu;
    let one = |index: usize| {
        let (piece, stream) = (gpu.work.get(index), gpu.stream_of(index));
        let launch = piece.launch.map_or("-", |slice| timeline.names.text(timeline.slices.get(slice).name));
        let name = timeline.names.text(piece.name);
        format!("{name} {}+{} {}/{} {} <- {launch}", piece.start, piece.dur, stream.device, stream.stream, piece.bytes)
    };
    (0..gpu.work.len()).map(one).collect()
}

const NEW: &str = r#"{"schemaVersion":1,
"deviceProperties":[{"id":0,"name":"NVIDIA H100","totalGlobalMem":85018279936,"computeMajor":9,"computeMinor":0,"numSms":132}],
"cuda_runtime_version":12040,"distributedInfo":{"backend":"nccl","rank":3,"world_size":8},
"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#6","pid":10,"tid":10,"ts":100.000,"dur":50.5,"args":{"External id":1}},
{"ph":"X","cat":"cpu_op","name":"aten::addmm","pid":10,"tid":10,"ts":101.5,"dur":20,"args":{"External id":2,"Input type":["float"],"Input Dims":[[2,3]]}},
{"ph":"X","cat":"python_function","name":"a.py(7): f","pid":10,"tid":10,"ts":101,"dur":30.125,"args":{"Python id":1}},
{"ph":"X","cat":"python_function","name":"threading.py(9): wait","pid":0,"tid":0,"ts":100,"dur":60,"args":{}},
{"ph":"X","cat":"overhead","name":"Buffer Flush","pid":-1,"tid":0,"ts":140,"dur":2},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":10,"tid":10,"ts":103,"dur":5,"args":{"cbid":211,"correlation":77}},
{"ph":"s","id":77,"pid":10,"tid":10,"ts":103,"cat":"ac2g","name":"ac2g"},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":110.25,"dur":7,"args":{"device":0,"context":1,"stream":7,"correlation":77,"registers per thread":32,"shared memory":16,"grid":[4,1,1],"block":[128,1,1]}},
{"ph":"f","id":77,"pid":0,"tid":7,"ts":110.25,"cat":"ac2g","name":"ac2g","bp":"e"},
{"ph":"X","cat":"cuda_runtime","name":"cudaMemcpyAsync","pid":10,"tid":10,"ts":120,"dur":2,"args":{"correlation":78}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH (Device -> Pageable)","pid":0,"tid":7,"ts":121,"dur":3,"args":{"device":0,"context":1,"stream":7,"correlation":78,"bytes":4096}},
{"ph":"X","cat":"kernel","name":"before","pid":0,"tid":7,"ts":99,"dur":1,"args":{"device":0,"context":1,"stream":7,"correlation":5}},
{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":10,"tid":10,"ts":104,"args":{"Total Reserved":2048,"Total Allocated":1024,"Bytes":512,"Device Id":0,"Device Type":1}},
{"ph":"M","name":"process_name","pid":10,"tid":0,"ts":0,"args":{"name":"python3"}},
{"ph":"M","name":"thread_name","pid":10,"tid":10,"ts":0,"args":{"name":"thread 10 (worker)"}},
{"ph":"M","name":"process_name","pid":4,"tid":0,"ts":0,"args":{"name":"GPU 4"}},
{"ph":"X","cat":"Trace","ts":90,"dur":80,"pid":"Spans","tid":"PyTorch Profiler","name":"PyTorch Profiler (0)","args":{}},
{"ph":"i","s":"g","name":"Iteration Start: PyTorch Profiler","pid":"Traces","tid":"Trace PyTorch Profiler","ts":90}
],"displayTimeUnit":"ms","baseTimeNanoseconds":1751410836000000000}"#;

#[test]
fn a_trace_of_today_is_read_whole() {
    for bytes in [NEW.as_bytes().to_vec(), gzip(NEW)] {
        let timeline = open(bytes).unwrap();
        let base = 1_751_410_836_000_000_000u64;
        let at = |nanos: u64| base + nanos;
        assert_eq!(
            draw(&timeline),
            [
                format!("step ProfilerStep {}+50500", at(100_000)),
                format!("call f {}+30125", at(101_000)),
                format!("c-call aten::addmm {}+20000", at(101_500)),
                format!("api cudaLaunchKernel {}+5000", at(103_000)),
                format!("api cudaMemcpyAsync {}+2000", at(120_000)),
                format!("call wait {}+60000", at(100_000)),
                format!("overhead Buffer Flush {}+2000", at(140_000)),
            ]
        );
        assert_eq!(
            work(&timeline),
            [
                format!("before {}+1000 0/7 0 <- -", at(99_000)),
                format!("gemm {}+7000 0/7 0 <- cudaLaunchKernel", at(110_250)),
                format!("Memcpy DtoH (Device -> Pageable) {}+3000 0/7 4096 <- cudaMemcpyAsync", at(121_000)),
            ]
        );
        assert_eq!(timeline.gpu.shape(1).unwrap().grid, [4, 1, 1]);
        let copy = timeline.gpu.work.get(2).copy();
        assert_eq!((copy.direction, copy.source, copy.target), (detail::D2H, detail::DEVICE, detail::PAGEABLE));
        assert_eq!((timeline.gpu.clock.linked, timeline.gpu.clock.unlinked), (2, 1));
        assert_eq!(timeline.processes.len(), 1);
        let (process, device) = (&timeline.processes[0], &timeline.gpu.devices[0]);
        assert_eq!((process.pid, &*process.program, process.rank), (10, "python3", Some(3)));
        assert_eq!(
            (&*device.name, device.multiprocessors, &*timeline.tracks[0].name),
            ("NVIDIA H100", Some(132), "worker")
        );
        assert_eq!(timeline.slices.args(2), Some(r#"{"Input type":["float"],"Input Dims":[[2,3]]}"#));
        assert_eq!(timeline.slices.args(0), Some(r#"{"marker":"ProfilerStep#6"}"#));
        let counters: Vec<_> = timeline.counters.iter().map(|c| (&*c.name, c.tid, c.value[0])).collect();
        assert_eq!(counters, [("torch_allocated_bytes", Some(0), 1024), ("torch_reserved_bytes", Some(0), 2048)]);
        assert_eq!(timeline.info.software["cuda_runtime_version"], "12.4");
        assert_eq!((timeline.info.state, timeline.notes.len()), (State::Complete, 0), "{:?}", timeline.notes_said());
    }
}

#[test]
fn names_of_other_years_and_other_makers_mean_the_same() {
    let old = trace(&[
        r#"{"ph":"X","cat":"Operator","name":"aten::add","pid":7,"tid":"7","ts":1623143089861351,"dur":11,"args":{"Input dims":[[2]]}}"#,
        r#"{"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":7,"tid":"7","ts":1623143089861352,"dur":5,"args":{"correlation":24}}"#,
        r#"{"ph":"X","cat":"Kernel","name":"add","pid":0,"tid":"stream 7","ts":1623143089861360,"dur":2,"args":{"device":1,"correlation":24}}"#,
        r#"{"ph":"s","id":24,"pid":7,"tid":"7","ts":1623143089861352,"cat":"async","name":"launch"}"#,
    ]);
    let timeline = open(&old).unwrap();
    assert_eq!(draw(&timeline)[0], "c-call aten::add 1623143089861351000+11000");
    assert_eq!(work(&timeline), ["add 1623143089861360000+2000 1/7 0 <- cudaLaunchKernel"]);
    let amd = trace(&[
        r#"{"ph":"X","cat":"cuda_runtime","name":"hipMemcpyWithStream","pid":251,"tid":251,"ts":1,"dur":5,"args":{"correlation":9}}"#,
        r#"{"ph":"X","cat":"gpu_memcpy","name":"Memcpy HtoD (Host -> Device)","pid":9,"tid":3,"ts":4,"dur":1,"args":{"device":9,"stream":3,"correlation":9,"kind":"HtoD","bytes":60}}"#,
    ]);
    let timeline = open(&amd).unwrap();
    assert_eq!(work(&timeline), ["Memcpy HtoD (Host -> Device) 4000+1000 9/3 60 <- hipMemcpyWithStream"]);
    assert_eq!(timeline.gpu.work.get(0).copy().direction, detail::H2D);
    let legacy = r#"[{"name":"aten::mul","ph":"X","ts":5.5,"dur":2,"tid":1,"pid":"CPU functions","args":{}},
        {"name":"mul","ph":"X","ts":9,"dur":2,"tid":0,"pid":"CUDA functions","args":{}}]"#;
    let timeline = open(legacy).unwrap();
    assert_eq!(
        (draw(&timeline), timeline.gpu.work.kind(0)),
        (vec!["c-call aten::mul 5500+2000".into()], WorkKind::Kernel)
    );
}

#[test]
fn times_are_exact_in_either_unit_and_what_cannot_be_is_said() {
    let op = |ts: &str, dur: &str| {
        format!(r#"{{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,"ts":{ts},"dur":{dur}}}"#)
    };
    for (ts, dur, expected) in [
        ("1790000000123456.789", "0.001", "c-call a 1790000000123456789+1"),
        ("\"1790000000123456.789\"", "\"1e-3\"", "c-call a 1790000000123456789+1"),
        ("1790000000123456789", "250", "c-call a 1790000000123456789+250"),
    ] {
        assert_eq!(draw(&open(trace(&[&op(ts, dur)])).unwrap()), [expected]);
    }
    let odd =
        [op("5", "1"), op("6", "-3"), op("7", "9223372036854775807"), op("-8", "1"), op("null", "1"), op("9", "NaN")];
    let timeline = open(trace(&odd.iter().map(String::as_str).collect::<Vec<_>>())).unwrap();
    assert_eq!(draw(&timeline), ["c-call a 5000+1000", "c-call a 6000+0", "c-call a 7000+0", "c-call a 9000+0"]);
    let said = timeline.notes_said().join(" ");
    assert!(
        said.contains("3 events with a negative or absurd duration")
            && said.contains("2 events with a missing or invalid timestamp"),
        "{said}"
    );
    let far = [op("1790000000000000", "1"), op("0", "1"), op("1790000000000002", "1")];
    let timeline = open(trace(&far.iter().map(String::as_str).collect::<Vec<_>>())).unwrap();
    assert_eq!((timeline.slices.len(), timeline.duration()), (2, 3000));
    assert!(
        timeline.notes_said()[0].starts_with("1 events more than a week from all others"),
        "{:?}",
        timeline.notes_said()
    );
}

#[test]
fn half_a_story_and_strange_letters_open_too() {
    let kernel = r#"{"ph":"X","cat":"kernel","name":"k","pid":2,"tid":7,"ts":1,"dur":2,"args":{"device":2,"stream":7,"correlation":3}}"#;
    let timeline = open(trace(&[kernel])).unwrap();
    assert_eq!((timeline.processes.len(), &*timeline.processes[0].program), (1, "not in the file"));
    assert_eq!(work(&timeline), ["k 1000+2000 2/7 0 <- -"]);
    let mut bytes = br#"{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a"#.to_vec();
    bytes.extend(b"\x01\n\xff");
    bytes.extend(br#"b","pid":1,"tid":1,"ts":1,"dur":1,"args":{"x":NaN}},{"ph":"X","cat":"cpu_op","name":"c","pid":1,"tid":1,"ts":3,"dur":1}]}"#);
    assert_eq!(draw(&open(bytes).unwrap()), ["c-call a  \u{fffd}b 1000+1000", "c-call c 3000+1000"]);
    let windows =
        r#"[{"ph":"X","cat":"python_function","name":"C:\models\a.py(7): f","pid":1,"tid":1,"ts":1,"dur":1}]"#;
    let timeline = open(windows).unwrap();
    let name = timeline.names.get(timeline.slices.get(0).name);
    assert_eq!((&*name.file, name.line), (r"C:\models\a.py", 7));
    let cut = &NEW[..NEW.find(r#"{"ph":"s""#).unwrap()];
    let timeline = open(cut).unwrap();
    assert_eq!((timeline.slices.len(), timeline.info.state), (6, State::Cut { events: Some(6) }));
    let note = timeline.notes.last().unwrap().said();
    assert!(
        note.starts_with("The file ends too early, at byte ") && note.contains("6 events before that were read"),
        "{note}"
    );
    assert_eq!(open(r#"{"traceEvents":[]}"#).unwrap().notes_said(), ["The file holds no events."]);
    let other =
        open(r#"{"traceEvents":[{"ph":"X","cat":"FEE","name":"f","ts":1,"dur":1,"pid":1,"tid":1}]}"#).unwrap_err();
    assert!(matches!(other, OpenError::Foreign { .. }) && other.to_string().contains("FEE"), "{other}");
}

#[test]
fn a_folder_of_ranks_is_one_timeline() {
    let folder = TemporaryFolder::new("ranks");
    let rank = |number: u32, start: u32| {
        format!(
            r#"{{"distributedInfo":{{"rank":{number}}},"traceEvents":[
            {{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":251,"tid":251,"ts":{start},"dur":1,"args":{{"correlation":1}}}},
            {{"ph":"X","cat":"kernel","name":"k{number}","pid":{number},"tid":7,"ts":{},"dur":1,"args":{{"device":{number},"stream":7,"correlation":1}}}}],
            "baseTimeNanoseconds":{}}}"#,
            start + 2,
            1_751_410_836_000_000_000u64 + u64::from(number)
        )
    };
    std::fs::write(folder.path().join("rank0.json"), rank(0, 10)).unwrap();
    std::fs::write(folder.path().join("rank1.json.gz"), gzip(rank(1, 20))).unwrap();
    std::fs::write(folder.path().join("rank1-again.json"), rank(1, 30)).unwrap();
    std::fs::write(folder.path().join("config.json"), r#"{"lr":0.1}"#).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "x").unwrap();
    let timeline = timeline::open(folder.path()).unwrap();
    crate::support::touch(&timeline);
    // The same process number, the same correlation: each file is a process of its own.
    let ranks: Vec<_> = timeline.processes.iter().map(|process| (process.pid, process.rank)).collect();
    assert_eq!(ranks, [(251, Some(0)), (251, Some(1)), (251, Some(1))]);
    assert_eq!(timeline.processes[1].program, "rank 1");
    assert_eq!((timeline.gpu.clock.linked, timeline.gpu.clock.unlinked), (3, 0));
    assert_eq!(timeline.start, 1_751_410_836_000_010_000);
    let own = |index: usize| {
        let launch = timeline.gpu.work.launch(index).unwrap();
        let track = timeline.tracks.iter().find(|track| track.slices.contains(&launch)).unwrap();
        track.process == timeline.gpu.stream_of(index).process
    };
    assert!((0..3).all(own));
    let said = timeline.notes_said().join(" ");
    assert!(said.contains("config.json is left out") && said.contains("2 files say that they are of rank 1"), "{said}");
    assert!(timeline.tracks.iter().all(|track| timeline.slices.kind(track.slices.start) == SliceKind::ApiCall));
}

#[test]
fn a_folder_without_any_trace_is_refused() {
    let folder = TemporaryFolder::new("no-ranks");
    std::fs::write(folder.path().join("a.json"), r#"{"lr":0.1}"#).unwrap();
    let error = timeline::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("a.json") && error.contains("no traceEvents"), "{error}");
}
