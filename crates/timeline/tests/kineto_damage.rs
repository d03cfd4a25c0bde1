//! Damages a trace of torch.profiler: cut at every byte, changed by a few thousand pseudo-random edits, and built to cost more
//! than it is. No panic, no hang, and one bad byte does not cost the file.

use crate::support::{Place, Random, gzip, within_kilobytes};
use timeline::fixture::TemporaryFolder;

const FILE: &str = r#"{"schemaVersion":1,
"deviceProperties":[{"id":0,"name":"GPU","totalGlobalMem":1,"computeMajor":9,"computeMinor":0,"numSms":132}],
"distributedInfo":{"backend":"nccl","rank":1,"world_size":2},
"traceEvents":[
{"ph":"X","cat":"user_annotation","name":"ProfilerStep#6","pid":10,"tid":10,"ts":100.000,"dur":50.5,"args":{"External id":1}},
{"ph":"X","cat":"cpu_op","name":"aten::copy_","pid":10,"tid":10,"ts":101.5,"dur":20,"args":{"Input type":["float"],"Input Dims":[[2,3]],"Concrete Inputs":["","False"]}},
{"ph":"X","cat":"python_function","name":"a.py(7): f\u00e9","pid":10,"tid":10,"ts":101,"dur":30.125,"args":{"Python id":1}},
{"ph":"X","cat":"python_function","name":"nn.Module: Linear_0","pid":0,"tid":0,"ts":100,"dur":60,"args":{}},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":10,"tid":10,"ts":103,"dur":5,"args":{"correlation":77}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":"stream 7","ts":110.25,"dur":7,"args":{"device":0,"context":1,"stream":7,"correlation":77,"registers per thread":32,"grid":[4,1,1],"block":[128,1,1]}},
{"ph":"X","cat":"cuda_sync","name":"Stream Sync","pid":0,"tid":7,"ts":112,"dur":4,"args":{"cuda_sync_kind":"Stream Sync","stream":7,"correlation":79,"device":0,"context":1}},
{"ph":"X","cat":"gpu_memcpy","name":"Memcpy DtoH (Device -> Pageable)","pid":0,"tid":7,"ts":121,"dur":3,"args":{"device":0,"stream":7,"correlation":78,"bytes":4096}},
{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":10,"tid":10,"ts":104,"args":{"Total Reserved":2048,"Total Allocated":1024,"Device Id":0,"Device Type":1}},
{"ph":"C","name":"load","pid":10,"ts":105,"args":{"value":3}},
{"ph":"M","name":"thread_name","pid":10,"tid":10,"ts":0,"args":{"name":"thread 10 (worker)"}}
],"displayTimeUnit":"ms","baseTimeNanoseconds":1751410836000000000}
"#;

#[test]
fn a_file_cut_at_any_byte_opens_up_to_there() {
    let place = Place(TemporaryFolder::new("cut"));
    let list = FILE.find("\"traceEvents\":[").unwrap() + 15;
    for length in 0..FILE.trim_end().len() {
        match place.open(&FILE.as_bytes()[..length]) {
            Ok(timeline) => {
                assert!(length >= list, "{length}");
                let note = timeline.notes.last().unwrap().said();
                assert!(note.starts_with(&format!("The file ends too early, at byte {length}: ")), "{length}: {note}");
            }
            Err(error) => assert!(length < list && error.to_string().contains("not a trace"), "{length}: {error}"),
        }
    }
    let whole = place.open(FILE.as_bytes()).unwrap();
    assert_eq!((whole.slices.len(), whole.gpu.work.len(), whole.notes.len()), (5, 3, 0), "{:?}", whole.notes_said());
}

#[test]
fn changed_bytes_never_panic_or_hang() {
    const CASES: usize = 6000;
    let place = Place(TemporaryFolder::new("fuzz"));
    let packed = gzip(FILE);
    let mut random = Random(0x5eed_1234_5678_9abd);
    let mut opened = 0;
    for case in 0..CASES {
        let mut bytes = if case % 8 == 0 { packed.clone() } else { FILE.as_bytes().to_vec() };
        random.damage(&mut bytes);
        if case % 16 == 1 {
            bytes.truncate(random.below(bytes.len()));
        }
        opened += usize::from(place.open(&bytes).is_ok());
    }
    assert!(opened > CASES / 2, "{opened} of {CASES} opened: one bad byte must not cost the file");
}

#[test]
fn what_is_large_by_design_is_not_believed() {
    within_kilobytes(300_000, "kineto_damage::what_is_large_by_design_is_not_believed", || {
        let place = Place(TemporaryFolder::new("large"));
        let event = r#"{"ph":"X","cat":"cpu_op","name":"f","pid":1,"tid":1,"ts":1,"dur":1,"args":{"Input Dims":"#;
        let deep = "[".repeat(1 << 20);
        for text in [
            format!(r#"{{"traceEvents":[{event}{deep}{}}}}}]}}"#, "]".repeat(1 << 20)),
            format!(r#"{{"traceEvents":[{event}"{}"}}}}]}}"#, "x".repeat(1 << 24)),
            format!(r#"{{"deviceProperties":{deep}"#),
            format!(r#"{{"deviceProperties":{deep}{},"traceEvents":[]}}"#, "]".repeat(1 << 20)),
        ] {
            _ = place.open(text.as_bytes());
        }
        let streams: Vec<String> = (0..20_000)
        .map(|at| format!(r#"{{"ph":"X","cat":"kernel","name":"k{at}","pid":{at},"tid":{at},"ts":{at},"dur":1,"args":{{"correlation":1}}}}"#))
        .collect();
        let timeline = place.open(format!(r#"{{"traceEvents":[{}]}}"#, streams.join(",")).as_bytes()).unwrap();
        assert!(timeline.gpu.streams.len() <= 2048 && !timeline.notes.is_empty());
    });
}
