//! Segments as whole files: rings that change hands, budgets that end, and files that were damaged.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use trace::event::{Event, NameId};
use trace::names::{NameCursor, NameWriter};
use trace::ring::Reader;
use trace::segment::{Identity, Place, Segment, SegmentReader};
use trace::status::{Collector, State};

fn folder(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("inferscope-segment-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn create(test: &str, budget: usize) -> (&'static Segment, PathBuf) {
    let folder = folder(test);
    let place = Place { rank: Some(0), local_rank: None, world_size: Some(8) };
    let who =
        Identity { pid: 7, parent: 1, start_ticks: 9, program: "serve.py".into(), python: "3.12.1".into(), place };
    (Segment::create(&folder, budget, &who, false).unwrap(), folder)
}

fn event(number: u64, thread: u32) -> Event {
    Event { time: number, value: number, thread, name: NameId(1), kind: 6, flags: 0, extra: 0 }
}

fn all_records(reader: &SegmentReader) -> (Vec<Event>, u64) {
    let (mut events, mut lost) = (Vec::new(), 0);
    for number in 0..reader.rings() {
        if let Some(ring) = reader.ring(number) {
            let mut words = Vec::new();
            lost += Reader::new(ring.head, ring.slots, 0).drain(&mut words, usize::MAX);
            events.extend(words.into_iter().map(Event::from_words));
        }
    }
    (events, lost)
}

#[test]
fn what_one_side_writes_the_other_reads() {
    let (segment, folder) = create("both", 4 << 20);
    let mut names = NameWriter::new(|bytes| segment.names(bytes)).unwrap();
    assert_eq!(names.intern("tokenise"), NameId(1));
    segment.status(Collector::Calls).set(State::Failed, "another profiler holds the hook");
    let mut ring = segment.claim(42).unwrap();
    (0..10).for_each(|n| ring.writer.push(event(n, 42).to_words()));
    ring.open[0][0].store(1, Ordering::Relaxed);
    ring.open[0][1].store(77, Ordering::Relaxed);
    ring.depth.store(1, Ordering::Release);

    let reader = SegmentReader::open(segment.path()).unwrap();
    assert_eq!(reader.identity().program, "serve.py");
    let place = Place { rank: Some(0), local_rank: None, world_size: Some(8) };
    assert_eq!(reader.identity().place, place);
    assert_eq!(reader.status(Collector::Calls).state(), State::Failed);
    assert_eq!(reader.status(Collector::Calls).message(), "another profiler holds the hook");
    let mut read = Vec::new();
    NameCursor::default().read(reader.names(), |id, text| read.push((id, text)));
    assert_eq!(read, [(NameId(1), "tokenise".to_owned())]);
    assert_eq!(all_records(&reader).0, (0..10).map(|n| event(n, 42)).collect::<Vec<_>>());
    assert_eq!(reader.ring(0).unwrap().open_calls(), [(NameId(1), 77)]);

    assert!(segment.wanted());
    reader.set_wanted(false);
    assert!(!segment.wanted());
    assert_eq!(reader.claim(100, |_| true), Ok(()));
    assert_eq!(reader.claim(200, |_| true), Err(100));
    assert_eq!(reader.claim(200, |_| false), Ok(()));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn threads_by_the_thousand_share_a_few_rings() {
    let (segment, folder) = create("thousands", 8 << 20);
    for wave in 0..100 {
        let threads: Vec<_> = (0..50)
            .map(|n| {
                std::thread::spawn(move || {
                    let mut ring = segment.claim(wave * 50 + n).unwrap();
                    (0..3).for_each(|i| ring.writer.push(event(i, wave * 50 + n).to_words()));
                    ring.release();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    let reader = SegmentReader::open(segment.path()).unwrap();
    assert!(reader.rings() <= 50, "{} rings for 50 threads at a time", reader.rings());
    let (events, lost) = all_records(&reader);
    // A small ring may lap, but it counts.
    assert_eq!(events.len() as u64 + lost, 15_000);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_spent_budget_gives_no_ring_and_a_freed_one_is_found_again() {
    let (segment, folder) = create("budget", 1 << 20);
    let mut rings: Vec<_> = std::iter::from_fn(|| segment.claim(1)).collect();
    assert!(rings.len() > 2 && segment.claim(2).is_none());
    rings.pop().unwrap().release();
    assert!(segment.claim(2).is_some());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn over_a_hundred_threads_fit_into_the_default_budget() {
    for busy in [false, true] {
        let folder = folder(if busy { "busy" } else { "quiet" });
        let who = Identity { pid: 1, ..Identity::default() };
        let segment = Segment::create(&folder, 100 << 20, &who, busy).unwrap();
        assert!(std::iter::from_fn(|| segment.claim(1)).take(110).count() == 110);
        std::fs::remove_dir_all(folder).unwrap();
    }
}

/// A small generator with a fixed seed: the same damage on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }
}

#[test]
fn damaged_segments_never_panic_or_reach_outside() {
    let (segment, folder) = create("fuzz", 1 << 20);
    let mut names = NameWriter::new(|bytes| segment.names(bytes)).unwrap();
    for n in 0..50 {
        names.intern(&format!("function {n}"));
    }
    for thread in 0..3 {
        let mut ring = segment.claim(thread).unwrap();
        (0..600).for_each(|n| ring.writer.push(event(n, thread).to_words()));
    }
    let whole = std::fs::read(segment.path()).unwrap();
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let (mut opened, mut records) = (0, 0);
    for round in 0..1500 {
        let mut bytes = whole.clone();
        if round % 3 == 0 {
            bytes.truncate(random.next(whole.len()));
        }
        for _ in 0..1 + random.next(20) {
            // Mostly where it hurts: header, status page, the directory's first lines, the names' first page.
            let area = [4096, 8192, 8192 + 1024, whole.len()][random.next(4)].min(bytes.len());
            if area > 8 {
                let at = random.next(area - 8);
                let value = [0, u64::MAX, random.next(usize::MAX) as u64, 1 << random.next(64)][random.next(4)];
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        if let Ok(reader) = SegmentReader::load(&bytes) {
            opened += 1;
            let (events, _) = all_records(&reader);
            records += events.len();
            assert!(events.len() <= whole.len() / 32);
            NameCursor::default().read(reader.names(), |_, _| {});
            (0..reader.rings()).filter_map(|n| reader.ring(n)).for_each(|ring| drop(ring.open_calls()));
            let _ = (reader.identity(), reader.start_anchor(), reader.status(Collector::Scopes).message());
        }
    }
    assert!(opened > 100 && records > 10_000, "the damage must leave some readable: {opened}, {records}");
    std::fs::remove_dir_all(folder).unwrap();
}
