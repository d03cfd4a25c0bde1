//! The drain against a segment that this very process writes: every kind of record, text and names, what is durable, and
//! what is said to be lost.

mod blocks;
mod device;
mod kept;

use super::*;
use crate::Settings;
use crate::dictionary::Dictionary;
use crate::found_devices::Found;
use crate::notes::Notes;
use crate::processes::Processes;
use crate::store::scan;
use std::fs;
use std::sync::Arc;
use trace::Segment;
use trace::clock::Source;
use trace::event::{Event, Kind, TextRole, text_records};
use trace::segment::{Identity, OwnedRing, SegmentReader};
use trace::{NameId, status};

struct Bench {
    root: PathBuf,
    drain: Drain,
    segment: &'static Segment,
    ring: OwnedRing,
}

impl Bench {
    fn new(name: &str) -> Bench {
        Bench::with(name, 1 << 20, Source::detect())
    }

    /// With a segment of that many bytes, and its clock.
    fn with(name: &str, bytes: usize, source: Source) -> Bench {
        let root = std::env::temp_dir().join(format!("inferscope-drain-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let (trace, segments) = (root.join("trace"), root.join("segments"));
        [&trace, &segments].into_iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
        let pid = std::process::id();
        let start_ticks = crate::proc::stat(pid).unwrap().start_ticks;
        let who = Identity {
            pid,
            parent: 1,
            start_ticks,
            program: "bench".into(),
            python: "3.12.1".into(),
            ..Identity::default()
        };
        let segment = Segment::create_with(&segments, bytes, &who, source).unwrap();
        let shared = Shared {
            dictionary: Arc::new(Dictionary::new(0)),
            processes: Processes::default(),
            notes: Notes::default(),
            devices: Found::default(),
        };
        let manifest = Manifest::new("bench".into(), &Settings::default(), Source::detect());
        let store = Store::open(&trace).unwrap();
        let clock = Clock::start(Source::detect());
        let drain = Drain::new(store, manifest, segments, clock, crate::messages::channel().1, shared);
        Bench { root, drain, ring: segment.claim(77).unwrap(), segment }
    }

    fn push(&mut self, kind: Kind, name: NameId, extra: u32, value: u64, texts: &[(TextRole, &str)]) {
        let mut records: Vec<_> = texts.iter().flat_map(|(role, text)| text_records(*role, text)).collect();
        let (time, flags) = (trace::clock::now(), records.len() as u16);
        records.push(Event { time, value, thread: 77, name, kind: kind as u16, flags, extra }.to_words());
        self.ring.push_all(&records);
    }

    fn durable(&self) -> u64 {
        let reader = SegmentReader::open(self.segment.path()).unwrap();
        (0..reader.rings()).map(|number| reader.ring(number).unwrap().durable()).sum()
    }

    fn rows(&self, table: Table) -> Vec<String> {
        use parquet::file::reader::{FileReader, SerializedFileReader};
        let files = self.drain.store.files().of(table);
        let readers = files.iter().map(|file| SerializedFileReader::new(file.reopen().unwrap()).unwrap());
        let rows = readers.flat_map(|reader| reader.get_row_iter(None).unwrap().collect::<Vec<_>>());
        rows.map(|row| row.unwrap().to_string()).collect()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn has(rows: &[String], parts: &[&str]) -> bool {
    rows.iter().any(|row| parts.iter().all(|part| row.contains(part)))
}

#[test]
fn every_kind_of_record_becomes_its_row() {
    let mut bench = Bench::new("kinds");
    let mut names = trace::names::NameWriter::new(|bytes| bench.segment.names(bytes)).unwrap();
    let [scope, call] = ["tokenise", "run\u{1f}/app/run.py\u{1f}12"].map(|name| names.intern(name));
    bench.push(Kind::StepBegin, scope, 1, 0, &[]);
    bench.push(Kind::ScopeBegin, scope, 2, 1, &[(TextRole::Args, "{\"model\":\"gpt2\"}")]);
    bench.push(Kind::Call, call, 0, 5, &[]);
    bench.push(Kind::CCall, call, 0, 5, &[]);
    bench.push(Kind::Gc, call, 2, 5, &[]);
    let found = trace::gc_pause::Found { collected: 70, uncollectable: 1 };
    let pause = trace::gc_pause::GcPause { generation: 1, found: Some(found) };
    bench.push(Kind::Gc, call, pause.pack(), 5, &[]);
    bench.push(Kind::Mark, NameId::INLINE, 0, 2, &[(TextRole::Name, "cache miss é"), (TextRole::Args, "{\"key\":3}")]);
    bench.push(Kind::ScopeEnd, scope, 2, 0, &[]);
    bench.drain.turn();
    assert!(bench.drain.close());
    let (rows, names) = (bench.rows(Table::Slices), bench.rows(Table::Names));
    assert_eq!(rows.len(), 7, "{rows:#?}");
    assert!(has(&rows, &["kind: 1", "id: 2", "parent: 1", "args: \"{\"model\":\"gpt2\"}\""]), "{rows:#?}");
    // The step is open: on disk as such.
    assert!(has(&rows, &["kind: 2", "dur_ns: null", "id: 1", "parent: null"]), "{rows:#?}");
    assert!(has(&rows, &["kind: 3", "dur_ns: 0", "parent: 2", "{\"key\":3}"]), "{rows:#?}");
    assert!(has(&rows, &["kind: 4", "thread: 77", "id: null"]) && has(&rows, &["kind: 5"]), "{rows:#?}");
    assert!(has(&rows, &["kind: 6", "{\"generation\":2}"]), "{rows:#?}");
    let counted = "{\"generation\":1,\"collected\":70,\"uncollectable\":1}";
    assert!(has(&rows, &["kind: 6", counted]), "{rows:#?}");
    assert!(has(&names, &["\"run\"", "file: \"/app/run.py\"", "line: 12"]), "{names:#?}");
    assert!(has(&names, &["cache miss é", "file: null"]), "{names:#?}");
    let manifest = Manifest::read(&bench.root.join("trace")).unwrap();
    assert_eq!((manifest.processes[0].program.as_str(), manifest.processes[0].python.as_str()), ("bench", "3.12.1"));
}

#[test]
fn text_whose_owner_has_not_come_is_not_durable() {
    let mut bench = Bench::new("text");
    bench.push(Kind::Mark, NameId(9), 0, 0, &[]);
    let texts: Vec<_> = text_records(TextRole::Args, &"x".repeat(60)).collect();
    texts.iter().for_each(|words| bench.ring.push(*words));
    bench.drain.turn();
    assert!(bench.drain.close());
    assert_eq!((texts.len(), bench.durable()), (3, 1));
    assert_eq!(scan(&bench.drain.store.files()).covered.slices.get(&bench.drain.attached[0].segment, 0), 1);
    bench.ring.push(
        Event { time: 1, value: 0, thread: 1, name: NameId(9), kind: Kind::Mark as u16, flags: 3, extra: 0 }.to_words(),
    );
    bench.drain.turn();
    assert!(bench.drain.close());
    assert_eq!(bench.durable(), 5);
    assert!(has(&bench.rows(Table::Slices), &[&"x".repeat(60)]));
    // A name that the segment does not have.
    assert!(has(&bench.rows(Table::Names), &["(unknown)"]));
}

#[test]
fn nothing_is_durable_that_could_not_be_written() {
    let mut bench = Bench::new("failing");
    let trace = bench.root.join("trace");
    fs::remove_dir_all(&trace).unwrap();
    fs::write(&trace, "").unwrap();
    (0..100).for_each(|_| bench.push(Kind::Mark, NameId(0), 0, 0, &[]));
    bench.drain.turn();
    assert!(!bench.drain.close());
    assert_eq!(bench.durable(), 0);
    assert_eq!(bench.drain.shared.notes.all().len(), 1);
    fs::remove_file(&trace).unwrap();
    assert!(bench.drain.close());
    assert_eq!((bench.durable(), bench.rows(Table::Slices).len()), (100, 100));
}

#[test]
fn what_was_overwritten_is_counted_exactly() {
    let mut bench = Bench::new("overwritten");
    let size = SegmentReader::open(bench.segment.path()).unwrap().ring(0).unwrap().slots.len();
    let call = Event { time: 1, value: 1, thread: 77, name: NameId(0), kind: Kind::Call as u16, flags: 0, extra: 0 };
    // As if there were no larger ring.
    (0..size + 1000).for_each(|_| bench.ring.writer.push(call.to_words()));
    bench.segment.status(status::Collector::Calls).dropped.store(5, Ordering::Relaxed);
    bench.drain.turn();
    assert!(bench.drain.close());
    // The oldest slot is never trusted: it may be half rewritten.
    assert_eq!(bench.rows(Table::Slices).len(), size - 1);
    let losses = bench.rows(Table::Losses);
    assert!(has(&losses, &["overwritten", "count: 1001"]), "{losses:#?}");
    assert!(has(&losses, &["\"calls\"", "no-room", "count: 5"]), "{losses:#?}");
    // Counted once.
    bench.drain.turn();
    assert!(bench.drain.close());
    assert_eq!(bench.rows(Table::Losses).len(), 2);
}

#[test]
fn a_file_that_is_no_segment_is_noted_and_left() {
    let mut bench = Bench::new("bad");
    let bad = bench.root.join("segments/1-1.segment");
    fs::write(&bad, vec![1; 1 << 20]).unwrap();
    bench.push(Kind::Mark, NameId(0), 0, 0, &[]);
    bench.drain.turn();
    assert!(bench.drain.close());
    assert_eq!(bench.rows(Table::Slices).len(), 1);
    let notes = bench.drain.shared.notes.said();
    assert!(notes.len() == 1 && notes[0].contains("1-1") && bad.exists(), "{notes:?}");
}
