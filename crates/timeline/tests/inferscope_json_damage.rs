//! Damages InferScope JSON: cut at every byte, changed by a few thousand pseudo-random edits from a fixed seed, and built to
//! cost more than it is. No panic, no hang, and memory stays near the size of what is kept.

use crate::support::{Place, Random, gzip, within_kilobytes};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use timeline::fixture::TemporaryFolder;

const FILE: &str = r#"{"format_version":"1.0",
"trace_metadata":{"timestamp_created":"2026-09-21T14:13:20Z","duration_ms":0.100,"hostname":"host","command":"python a.py"},
"system_info":{"cpu_count":4,"cpu_model":"cpu","numa_nodes":1,"ram_gb":8.00,"gpu_count":null},
"events":[
{"id":1,"type":"scope_enter","name":"request","timestamp_start_us":10.000,"timestamp_end_us":10.000,"duration_us":0.000,"metadata":{"process_id":100,"thread_id":100,"scope":1,"kind":"step","parent_scope":null,"args":{"i":1}}},
{"id":2,"type":"cpu_call","name":"f\u00e9\n","timestamp_start_us":20.000,"timestamp_end_us":60.000,"duration_us":40.000,"metadata":{"process_id":100,"thread_id":100,"cpu_id":null,"call_depth":0,"parent_scope":1,"kind":"c-call","file":"a.py","line":12}},
{"id":3,"type":"instant","name":"main","timestamp_start_us":25.000,"timestamp_us":25.000,"metadata":{"category":"sample","process_id":100,"thread_id":100,"active":true,"gil":true,"stack":2}},
{"id":4,"type":"scope_exit","name":"request","timestamp_start_us":90.000,"timestamp_end_us":90.000,"metadata":{"process_id":100,"thread_id":100,"scope":1}},
{"id":5,"type":"instant","name":"rss_bytes","timestamp_start_us":10.000,"timestamp_us":10.000,"metadata":{"category":"counter","process_id":100,"thread_id":null,"value":4096}}
],
"stacks":[{"id":1,"parent_id":null,"function":"main","file":"a.py","line":3},{"id":2,"parent_id":1,"function":"f","file":"a.py","line":14}],
"processes":[{"process_id":100,"parent_process_id":1,"program":"a.py","python_version":"3.12.1"}],
"threads":[{"process_id":100,"thread_id":100,"name":"MainThread"}],
"losses":[{"collector":"calls","what":"overwritten","count":3}],
"notes":["one"]}
"#;

#[test]
fn the_file_itself_is_whole() {
    let timeline = Place(TemporaryFolder::new("whole")).open(FILE.as_bytes()).unwrap();
    assert_eq!((timeline.slices.len(), timeline.samples.len(), timeline.counters.len()), (2, 1, 1));
    assert_eq!((timeline.start, timeline.end, timeline.notes.len()), (0, 100_000, 1));
}

#[test]
fn a_file_cut_at_any_byte_opens_up_to_there() {
    let place = Place(TemporaryFolder::new("cut"));
    let list = FILE.find("\"events\":[").unwrap() + 10;
    let whole = FILE.trim_end().len();
    for length in 0..whole {
        match place.open(&FILE.as_bytes()[..length]) {
            Ok(timeline) => {
                assert!(length >= list);
                let event = |line: &str| line.starts_with("{\"id\":") && line.contains("\"type\":");
                let whole = |line: &str| serde_json::from_str::<serde_json::Value>(line.trim_end_matches(',')).is_ok();
                let events = FILE[list..length].lines().filter(|line| event(line) && whole(line)).count();
                let note = timeline.notes.last().unwrap().said();
                assert!(note.starts_with(&format!("The file ends too early, at byte {length}: ")), "{length}: {note}");
                assert!(
                    note.contains(&format!("{events} events")) || FILE[..length].ends_with("}}"),
                    "{length}: {note}"
                );
            }
            Err(error) => assert!(length < list && error.to_string().contains("not a trace"), "{length}: {error}"),
        }
    }
    let packed = gzip(FILE.as_bytes());
    // The last eight bytes are a checksum: without them the text is still whole.
    for length in 0..packed.len() - 8 {
        if let Ok(timeline) = place.open(&packed[..length]) {
            let said = timeline.notes_said().iter().any(|note| note.contains("of what it unpacks to"));
            assert!(
                said || timeline.notes_said() == ["one"] && length + 16 > packed.len(),
                "{length}: {:?}",
                timeline.notes_said()
            );
        }
    }
}

#[test]
fn changed_bytes_never_panic_or_hang() {
    const CASES: usize = 6000;
    let place = Place(TemporaryFolder::new("fuzz"));
    let packed = gzip(FILE.as_bytes());
    let mut random = Random(0x5eed_1234_5678_9abc);
    let mut opened = 0;
    for case in 0..CASES {
        let mut bytes = if case % 8 == 0 { packed.clone() } else { FILE.as_bytes().to_vec() };
        random.damage(&mut bytes);
        opened += usize::from(place.open(&bytes).is_ok());
    }
    assert!(opened > CASES / 2, "{opened} of {CASES} opened: one bad byte must not cost the file");
}

#[test]
fn what_is_large_by_design_is_not_believed() {
    within_kilobytes(200_000, "inferscope_json_damage::what_is_large_by_design_is_not_believed", || {
        let place = Place(TemporaryFolder::new("large"));
        let deep = "[".repeat(1 << 20);
        let event = r#"{"type":"cpu_call","name":"f","timestamp_start_us":1,"duration_us":1,"metadata":{"args":"#;
        for text in [
            deep.clone(),
            format!("[{deep}"),
            format!(r#"{{"events":[{event}{deep}{}}}}}]}}"#, "]".repeat(1 << 20)),
            format!(r#"{{"events":[{event}{{"a":"{}"}}}}}}]}}"#, "x".repeat(1 << 20)),
            format!(r#"{{"x":{}"#, r#"{"a":"#.repeat(1 << 18)),
            format!("[{event}1}}}},{}", ",".repeat(1 << 20)),
        ] {
            _ = place.open(text.as_bytes());
        }
        // 400 MB of one string that packs into 2 MB: skipped, not held.
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(br#"{"format_version":"1.0","events":[{"type":"instant","name":""#).unwrap();
        (0..400).for_each(|_| encoder.write_all(&vec![b'x'; 1 << 20]).unwrap());
        encoder.write_all(br#""},{"type":"instant","name":"m","timestamp_us":1}]}"#).unwrap();
        let timeline = place.open(&encoder.finish().unwrap()).unwrap();
        assert_eq!((timeline.slices.len(), timeline.notes.len()), (1, 1), "{:?}", timeline.notes_said());
    });
}
