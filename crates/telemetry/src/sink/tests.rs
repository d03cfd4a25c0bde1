//! What goes into a sink comes out of it, whatever happened to its writer, its disk and its files.

use super::*;
use crate::event::{Counters, Event, EventType, Source};
use std::path::PathBuf;
use std::sync::Arc;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("inferscope-sink-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn events(count: u64) -> Vec<Event> {
    let source = |device_id| {
        Arc::new(Source { collector: "test".into(), pid: 7, host: "h".into(), device_id, ..Source::default() })
    };
    let sources = [source(0), source(-1)];
    (0..count)
        .map(|number| Event {
            time_ns: 1_700_000_000_000_000_000 + number * 100_000_000,
            kind: if number % 100 == 7 { EventType::Warning } else { EventType::Sample },
            source: Arc::clone(&sources[number as usize % 2]),
            counters: Counters {
                allocated: Some(number * 4096 % (1 << 33)),
                reserved: Some(1 << 34),
                change: Some(-(number as i64)),
                used: (number % 3 != 0).then_some(u64::MAX - number),
                total: Some(u64::MAX),
                ..Counters::default()
            },
            context: (number % 100 == 7).then(|| "above 80 %".into()),
            metadata: (number % 50 == 0).then(|| format!("{{\"n\":{}}}", number / 500).into()),
        })
        .collect()
}

fn all(folder: &Folder) -> (Vec<Event>, Vec<Damage>) {
    let mut found = Vec::new();
    let damage = read_folder(&folder.0, &mut |event| found.push(event)).unwrap();
    (found, damage)
}

#[test]
fn events_come_back_in_few_bytes() {
    let (folder, written) = (Folder::new("back"), events(20_000));
    let mut sink = Sink::create(&folder.0, "a/b session", Limits::default()).unwrap();
    written.iter().for_each(|event| sink.append(event));
    let bytes = sink.used() as f64 / written.len() as f64;
    assert!(bytes <= 40.0, "{bytes} bytes an event");
    // While it is being written.
    assert_eq!(all(&folder), (written.clone(), vec![]));
    drop(sink);
    assert_eq!(all(&folder), (written, vec![]));
}

#[test]
fn files_roll_over_and_the_oldest_go() {
    let folder = Folder::new("roll");
    let limits = Limits { file_bytes: 256 << 10, files: 3, total_bytes: 1 << 20 };
    let mut sink = Sink::create(&folder.0, "s", limits).unwrap();
    let written = events(100_000);
    written.iter().for_each(|event| sink.append(event));
    let (found, damage) = all(&folder);
    assert!(files(&folder.0).unwrap().len() <= 3 && damage.is_empty());
    assert!(found.len() > 10_000 && found.len() < written.len());
    assert_eq!(found, written[written.len() - found.len()..], "the newest are whole");
    assert_eq!((sink.lost, sink.written), (0, 100_000));
}

#[test]
fn two_sinks_of_one_folder_do_not_meet() {
    let folder = Folder::new("two");
    let mut one = Sink::create(&folder.0, "s", Limits::default()).unwrap();
    let mut two = Sink::create(&folder.0, "s", Limits::default()).unwrap();
    let written = events(10);
    written.iter().for_each(|event| one.append(event));
    written.iter().for_each(|event| two.append(event));
    assert_eq!(all(&folder).0.len(), 20);
}

#[test]
fn a_folder_that_is_gone_is_counted_and_tried_again() {
    let folder = Folder::new("gone");
    let limits = Limits { file_bytes: 256 << 10, ..Limits::default() };
    let mut sink = Sink::create(&folder.0, "s", limits).unwrap();
    std::fs::remove_dir_all(&folder.0).unwrap();
    let written = events(40_000);
    written.iter().for_each(|event| sink.append(event));
    assert!(sink.lost > 0 && sink.why_lost.is_some());
    std::fs::create_dir_all(&folder.0).unwrap();
    let lost = sink.lost;
    sink.append(&written[0]);
    assert_eq!(sink.lost, lost);
    assert_eq!(all(&folder).0, written[..1]);
}

/// As rotation of logs by copying does, or somebody who wants room.
#[test]
fn a_file_that_is_cut_or_removed_costs_its_events_and_nobodys_life() {
    let folder = Folder::new("cut");
    let mut sink = Sink::create(&folder.0, "s", Limits::default()).unwrap();
    let written = events(40);
    written[..10].iter().for_each(|event| sink.append(event));
    std::fs::File::create(sink.path().unwrap()).unwrap();
    sink.looked = None;
    written[10..30].iter().for_each(|event| sink.append(event));
    assert_eq!((sink.lost, sink.written), (10, 20));
    assert!(sink.why_lost.as_ref().is_some_and(|why| why.ends_with("was truncated by another program")));
    assert_eq!(all(&folder).0, written[10..30]);
    std::fs::remove_file(sink.path().unwrap()).unwrap();
    sink.looked = None;
    written[30..].iter().for_each(|event| sink.append(event));
    assert_eq!((sink.lost, sink.written), (30, 10));
    assert!(sink.why_lost.as_ref().is_some_and(|why| why.ends_with("was removed by another program")));
    let cut = sink.path().unwrap().to_owned();
    std::fs::File::create(&cut).unwrap();
    drop(sink);
    assert_eq!(std::fs::metadata(cut).unwrap().len(), 0);
}

#[test]
fn more_texts_than_are_remembered_come_back_and_take_no_memory() {
    let folder = Folder::new("texts");
    let mut sink = Sink::create(&folder.0, "s", Limits::default()).unwrap();
    let mut written = events(20_000);
    for (number, event) in written.iter_mut().enumerate() {
        // One that stays, beside one that is new in every event.
        (event.context, event.metadata) = (Some("phase".into()), Some(format!("{{\"n\":{number}}}").into()));
        sink.append(event);
    }
    let (found, damage) = all(&folder);
    assert!(found == written && damage.is_empty());
    // A file of definitions and nothing else.
    let definitions = b"\x41\x01x".repeat(1_000_000);
    let length = (16 + definitions.len() as u64).to_le_bytes();
    let bytes = [&b"ISTELEM\x01"[..], &length, &definitions].concat();
    let mut decoder = encode::Decoder::default();
    assert_eq!(decoder.event(&bytes[16..]), None);
    assert!(decoder.texts() < 5_000);
}

/// Every cut and every changed byte of a file gives events, or says where it is damaged; nothing else.
#[test]
fn damaged_files_are_read_up_to_there() {
    let folder = Folder::new("damage");
    let mut sink = Sink::create(&folder.0, "s", Limits::default()).unwrap();
    let written = events(60);
    written.iter().for_each(|event| sink.append(event));
    let path = sink.path().unwrap().to_owned();
    drop(sink);
    let whole = std::fs::read(&path).unwrap();
    let read = |bytes: &[u8]| {
        let mut found = Vec::new();
        let damage = read::events_of(bytes, &mut |event| found.push(event));
        (found, damage)
    };
    for cut in 0..whole.len() {
        let (found, damage) = read(&whole[..cut]);
        assert!(written.starts_with(&found) && damage.is_some(), "cut at {cut}");
    }
    for at in 0..whole.len() {
        for bit in [1_u8, 0x80] {
            let mut changed = whole.clone();
            changed[at] ^= bit;
            assert!(read(&changed).0.len() <= whole.len());
        }
    }
    assert!(read(&[MAGIC_AND_A_HUGE_END, [0x41; 16]].concat()).1.is_some());
}

const MAGIC_AND_A_HUGE_END: [u8; 16] = *b"ISTELEM\x01\xff\xff\xff\xff\xff\xff\xff\xff";
