//! Hostile files of other tools: damaged JSON, gzip, SQLite and pickles, nesting without end, and archives that become much larger than
//! they are.

use crate::place::Place;
use flate2::Compression;
use flate2::write::GzEncoder;
use fuzz::Random;
use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::sync::Mutex;
use timeline::fixture::pickle::Py;

/// An event of torch.profiler.
const EVENT: &str =
    r#"{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":7,"tid":7,"ts":5,"dur":3,"args":{"a":[1,{"b":2}]}}"#;

fn torch(events: usize) -> Vec<u8> {
    let events = vec![EVENT; events].join(",\n");
    format!(r#"{{"schemaVersion":1,"traceEvents":[{events}]}}"#).into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(bytes).unwrap();
    packed.finish().unwrap()
}

fn sqlite(place: &Place) -> Vec<u8> {
    let path = place.at("out/made.sqlite");
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
             INSERT INTO StringIds VALUES (1, 'range');
             CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, text TEXT, globalTid INTEGER,
                                       bomb TEXT GENERATED ALWAYS AS (hex(zeroblob(400000000))));
             INSERT INTO NVTX_EVENTS VALUES (5, 9, 'step', 7), (10, 19, 'step', 7);
             CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS
                 WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start FROM n;",
        )
        .unwrap();
    drop(database);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    bytes
}

/// As PyTorch's allocator writes it.
fn snapshot() -> Vec<u8> {
    let event = |action: &str, at: u64| {
        let event = Py::dict([("action", action.into()), ("addr", at.into()), ("size", (at << 9).into())]);
        event.with("time_us", at).with("frames", Py::List(vec![]))
    };
    let events = (1..60).map(|at| event(if at % 3 == 0 { "free_requested" } else { "alloc" }, at)).collect();
    Py::dict([("segments", Py::List(vec![])), ("device_traces", vec![Py::List(events)].into())]).pickle(4)
}

fn telemetry(events: usize) -> Vec<u8> {
    let event = |number: usize| {
        format!(
            r#"{{"schema_version":2,"timestamp_ns":{number},"event_type":"sample","collector":"x","sampling_interval_ms":100,"pid":42,"host":"n","device_id":0,"allocator_allocated_bytes":10,"allocator_reserved_bytes":20,"allocator_active_bytes":null,"allocator_inactive_bytes":null,"allocator_change_bytes":0,"device_used_bytes":30,"device_free_bytes":70,"device_total_bytes":100,"context":null,"metadata":{{}}}}"#
        )
    };
    let events: Vec<String> = (0..events).map(event).collect();
    format!("{{\"events\":\n[{}]}}", events.join(",\n")).into_bytes()
}

/// What an archive of one kilobyte says when it becomes larger than it may.
pub const TOO_LARGE: &str = "--max-unpacked-mb";

/// What it is, and its bytes before any damage; made once, for packing takes longer than reading.
fn kind(place: &Place, number: usize) -> (&'static str, Vec<u8>) {
    static MADE: Mutex<BTreeMap<usize, (&'static str, Vec<u8>)>> = Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap();
    made.entry(number).or_insert_with(|| make(place, number)).clone()
}

fn make(place: &Place, number: usize) -> (&'static str, Vec<u8>) {
    let bomb = 4 << 20;
    match number {
        0 => ("a packed JSON of spaces", gzip(&[torch(3), vec![b' '; bomb]].concat())),
        1 => ("a packed list without end", gzip(&[b"{\"traceEvents\":[".to_vec(), vec![b'['; bomb]].concat())),
        2 => ("a packed trace of many events", gzip(&torch(bomb / EVENT.len()))),
        3 => ("nested lists", vec![b'['; 200_000]),
        4 => ("nested objects", [b"{\"traceEvents\":[{\"args\":".to_vec(), b"{\"a\":".repeat(100_000)].concat()),
        5 => ("SQLite that computes", sqlite(place)),
        6 => ("damaged SQLite", sqlite(place)),
        7 => ("damaged gzip", gzip(&torch(50))),
        8 => ("a name of a megabyte", [b"{\"traceEvents\":[{\"name\":\"".to_vec(), vec![b'x'; 1 << 20]].concat()),
        9 => ("two archives in one", [gzip(&torch(3)), gzip(&torch(3))].concat()),
        12 => (
            "a pickle with code",
            b"\x80\x02}q\x00X\x08\x00\x00\x00segmentscposix\nsystem\nX\x02\x00\x00\x00ls\x85Rs.".to_vec(),
        ),
        13 => ("a pickle of nested lists", [b"\x80\x02".to_vec(), vec![b']'; bomb]].concat()),
        14 => ("a damaged memory snapshot", snapshot()),
        15 => ("damaged telemetry", telemetry(30)),
        16 => ("telemetry of one endless event", [b"[{\"metadata\":[".to_vec(), b"0,".repeat(bomb)].concat()),
        _ => ("damaged JSON", torch(50)),
    }
}

/// Of [`make`].
const KINDS: usize = 17;

/// A file in the place of the trace. Says what it is.
pub fn file(place: &Place, random: &mut Random, number: usize) -> &'static str {
    let (said, mut bytes) = kind(place, number % KINDS);
    match number % KINDS {
        6 | 7 | 14 => random.bytes(&mut bytes),
        10 | 11 | 15 => random.json(&mut bytes),
        _ => {}
    }
    let trace = place.trace();
    if number % (2 * KINDS) < KINDS {
        std::fs::write(trace, bytes).unwrap();
    } else {
        // A folder of ranks, with a link and a pipe among them.
        std::fs::create_dir(&trace).unwrap();
        std::fs::write(trace.join(if bytes.starts_with(&[0x1f]) { "rank0.json.gz" } else { "rank0.json" }), bytes)
            .unwrap();
        symlink(place.at("victim/precious"), trace.join("rank1.json")).unwrap();
        symlink("/dev/zero", trace.join("rank2.json")).unwrap();
    }
    said
}
