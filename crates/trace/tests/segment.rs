//! Segments as whole files: rings that change hands, budgets that end, and files that were damaged.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use trace::event::{Event, NameId};
use trace::names::{NameCursor, NameWriter};
use trace::ring::Reader;
use trace::segment::{Identity, Limit, OpenCall, OpenCalls, RankPlace, Segment, SegmentReader};
use trace::status::{Collector, State};

fn folder(test: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("inferscope-segment-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    path
}

fn create(test: &str, budget: usize) -> (&'static Segment, PathBuf) {
    let folder = folder(test);
    let place = RankPlace { rank: Some(0), local_rank: None, world_size: Some(8) };
    let who =
        Identity { pid: 7, parent: 1, start_ticks: 9, program: "serve.py".into(), python: "3.12.1".into(), place };
    (Segment::create(&folder, budget, &who).unwrap(), folder)
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
    (0..10).for_each(|n| ring.push(event(n, 42).to_words()));
    let reader = SegmentReader::open(segment.path()).unwrap();
    assert_eq!(reader.identity().program, "serve.py");
    let place = RankPlace { rank: Some(0), local_rank: None, world_size: Some(8) };
    assert_eq!(reader.identity().place, place);
    assert_eq!(reader.status(Collector::Calls).state(), State::Failed);
    assert_eq!(reader.status(Collector::Calls).message(), "another profiler holds the hook");
    let mut read = Vec::new();
    NameCursor::default().read(reader.names(), |id, text| read.push((id, text)));
    assert_eq!(read, [(NameId(1), "tokenise".to_owned())]);
    assert_eq!(all_records(&reader).0, (0..10).map(|n| event(n, 42)).collect::<Vec<_>>());
    assert_eq!(reader.shortage(), None);

    assert!(segment.wanted());
    reader.set_wanted(false);
    assert!(!segment.wanted());
    assert_eq!(reader.claim(100, |_| true), Ok(()));
    assert_eq!(reader.claim(200, |_| true), Err(100));
    assert_eq!(reader.claim(200, |_| false), Ok(()));
    std::fs::remove_dir_all(folder).unwrap();
}

/// A recorder that has everything on disk at once.
fn all_durable(reader: &SegmentReader) {
    for ring in (0..reader.rings()).filter_map(|number| reader.ring(number)) {
        ring.set_durable(ring.head.load(Ordering::Acquire));
    }
}

#[test]
fn threads_by_the_thousand_share_a_few_rings() {
    let (segment, folder) = create("thousands", 8 << 20);
    for wave in 0..100 {
        let threads: Vec<_> = (0..50)
            .map(|n| {
                std::thread::spawn(move || {
                    let mut ring = segment.claim(wave * 50 + n).unwrap();
                    (0..3).for_each(|i| ring.push(event(i, wave * 50 + n).to_words()));
                    ring.release();
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    let reader = SegmentReader::open(segment.path()).unwrap();
    let (events, lost) = all_records(&reader);
    // Nobody has written any of it to disk, so rings are filled one after the other. In turn, eleven threads would share a
    // ring; side by side, a ring that has room may lie between two full ones and not be found.
    assert_eq!((events.len(), lost), (15_000, 0));
    assert!(reader.rings() <= 5_000 / 4, "{} rings", reader.rings());
    let rings = reader.rings();
    for wave in 0..100 {
        all_durable(&reader);
        let mut ring = segment.claim(wave).unwrap();
        (0..3).for_each(|i| ring.push(event(i, wave).to_words()));
        ring.release();
    }
    assert_eq!(reader.rings(), rings, "rings that are on disk are taken over");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn five_thousand_threads_fit_into_the_default_budget() {
    let (segment, folder) = create("many", 100 << 20);
    let mut rings: Vec<_> = (0..5000).map(|thread| segment.claim(thread).unwrap()).collect();
    for (thread, ring) in rings.iter_mut().enumerate() {
        (0..20).for_each(|number| ring.push(event(number, thread as u32).to_words()));
    }
    let reader = SegmentReader::open(segment.path()).unwrap();
    let (events, lost) = all_records(&reader);
    assert_eq!((events.len(), lost, reader.rings()), (100_000, 0, 5000));
    // Each of them may write more than its first ring holds.
    rings.iter_mut().for_each(|ring| (0..100).for_each(|number| ring.push(event(number, 1).to_words())));
    assert_eq!((all_records(&reader).0.len(), all_records(&reader).1), (600_000, 0));
    let present = std::os::unix::fs::MetadataExt::blocks(&std::fs::metadata(segment.path()).unwrap()) * 512;
    assert!(present < 64 << 20, "{present} bytes are present");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_ring_grows_while_nothing_is_on_disk_and_leaves_room_for_others() {
    let (segment, folder) = create("growth", 4 << 20);
    let mut ring = segment.claim(1).unwrap();
    let first = ring.records();
    (0..1_000_000).for_each(|number| ring.push(event(number, 1).to_words()));
    let reader = SegmentReader::open(segment.path()).unwrap();
    let (events, lost) = all_records(&reader);
    assert!(first == 64 && ring.records() >= 1 << 14, "grew to {}", ring.records());
    assert_eq!(events.len() as u64 + lost, 1_000_000);
    assert!(lost > 0 && reader.take_pressed() && !reader.take_pressed());
    // However much one thread writes, others find room for what they begin with.
    let mut others: Vec<_> = (0..200).map(|thread| segment.claim(thread + 2).unwrap()).collect();
    others.iter_mut().for_each(|ring| (0..20).for_each(|number| ring.push(event(number, 2).to_words())));
    assert_eq!(all_records(&reader).1, lost);
    // Once everything is on disk nothing is overwritten any more.
    all_durable(&reader);
    let (records, rings) = (ring.records(), reader.rings());
    (0..records - 1).for_each(|number| ring.push(event(number, 1).to_words()));
    assert_eq!((ring.records(), reader.rings()), (records, rings));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_ring_that_is_on_disk_can_be_taken_from_its_thread() {
    let (segment, folder) = create("taken", 1 << 20);
    let mut ring = segment.claim(1).unwrap();
    ring.push(event(1, 1).to_words());
    assert!(!ring.is_durable());
    let reader = SegmentReader::open(segment.path()).unwrap();
    all_durable(&reader);
    assert!(ring.is_durable());
    let mut taken = ring.take().for_thread(2);
    taken.push(event(2, 2).to_words());
    assert_eq!((ring.records(), ring.is_durable(), reader.ring(0).unwrap().thread), (0, false, 2));
    ring.push(event(3, 1).to_words());
    assert_eq!((ring.records(), reader.rings(), reader.ring(1).unwrap().thread), (64, 2, 1));
    assert_eq!(all_records(&reader).0, [event(1, 1), event(2, 2), event(3, 1)]);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_spent_budget_gives_no_ring_and_a_freed_one_is_found_again() {
    let (segment, folder) = create("budget", 1 << 20);
    let mut rings: Vec<_> = std::iter::from_fn(|| segment.claim(1)).collect();
    assert!(rings.len() > 100 && segment.claim(2).is_none() && segment.claim_any(2).is_none());
    rings.pop().unwrap().release();
    assert!(segment.claim(2).is_some());
    let mut full = rings.pop().unwrap();
    (0..64).for_each(|number| full.push(event(number, 1).to_words()));
    full.release();
    // Its records are not on disk: only who has no choice overwrites them.
    assert!(segment.claim(3).is_none() && segment.claim_any(3).is_some());
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn open_calls_are_of_one_thread_and_shown_once() {
    let (segment, folder) = create("calls", 1 << 20);
    let open = |calls: &OpenCalls, names: &[u64]| {
        for (cell, name) in calls.cells.iter().zip(names) {
            cell[0].store(*name, Ordering::Relaxed);
            cell[1].store(*name * 10, Ordering::Relaxed);
        }
        calls.depth.store(names.len() as u64, Ordering::Release);
    };
    let (first, second) = (segment.claim_calls(7).unwrap(), segment.claim_calls(8).unwrap());
    open(&first, &[1, 2]);
    open(&second, &[3]);
    let reader = SegmentReader::open(segment.path()).unwrap();
    let call = |thread, name: u32| OpenCall { thread, name: NameId(name), start: u64::from(name) * 10 };
    assert_eq!(reader.open_calls(), [call(8, 3), call(7, 1), call(7, 2)]);
    segment.release_calls(first);
    assert_eq!(reader.open_calls(), [call(8, 3)]);
    open(&segment.claim_calls(9).unwrap(), &[4]);
    assert_eq!(reader.open_calls(), [call(8, 3), call(9, 4)]);
    // When little is left blocks are smaller, and then there are none; nothing panics.
    let blocks = std::iter::from_fn(|| segment.claim_calls(1)).map(|calls| calls.cells.len()).collect::<Vec<_>>();
    assert!(blocks.len() > 50 && blocks[0] == 1024 && blocks[blocks.len() - 1] == 32, "{blocks:?}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_segment_is_smaller_where_files_may_not_be_large() {
    let folder = folder("limits");
    // SAFETY: the child makes a segment under a limit of its own and leaves without running anything of the parent's.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let limit = libc::rlimit { rlim_cur: 3 << 20, rlim_max: 3 << 20 };
        // SAFETY: plain system calls, in a process that only does this.
        unsafe {
            libc::setrlimit(libc::RLIMIT_FSIZE, &limit);
            let who = Identity { pid: 1, ..Identity::default() };
            libc::_exit(i32::from(Segment::create(&folder, 100 << 20, &who).is_err()));
        }
    }
    let mut status = 0;
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    let reader = SegmentReader::open(&folder.join("1-0.segment")).unwrap();
    let (asked, bytes, limit) = reader.shortage().unwrap();
    assert_eq!((asked, limit), (100 << 20, Limit::FileSize));
    assert!((1 << 20..=3 << 20).contains(&bytes), "{bytes}");
    std::fs::remove_dir_all(folder).unwrap();
}

/// As an earlier version left it: 1024 lines of directory, and 1024 open calls in front of each ring.
#[test]
fn segments_of_version_1_are_read() {
    let (names_at, ring_at) = (8192 + 1024 * 128, 8192 + 1024 * 128 + 4096);
    let mut bytes = vec![0u8; ring_at + 1024 * 16 + 256 * 32];
    let mut put =
        |at: usize, value: u64, size: usize| bytes[at..at + size].copy_from_slice(&value.to_ne_bytes()[..size]);
    put(0, u64::from_ne_bytes(*b"INFSCOPE"), 8);
    // Version, bytes of a record, pid, clock (CLOCK_MONOTONIC), rings, bytes of names and how many are used.
    let source = trace::Source::Monotonic as u64;
    [(8, 1), (12, 32), (16, 77), (32, source), (44, 1)].into_iter().for_each(|(at, value)| put(at, value, 4));
    [(48, 4096), (56, 16)].into_iter().for_each(|(at, value)| put(at, value, 8));
    [(names_at, 1), (names_at + 8, u64::from(b'f'))].into_iter().for_each(|(at, value)| put(at, value, 8));
    // The line of the ring: thread, place, records, head, open calls.
    put(8192 + 4, 42, 4);
    [(8, ring_at as u64), (16, 256), (24, 2), (32, 1)].into_iter().for_each(|(at, value)| put(8192 + at, value, 8));
    [(0, 1), (8, 99)].into_iter().for_each(|(at, value)| put(ring_at + at, value, 8));
    for number in 0..2 {
        for (word, value) in event(number, 42).to_words().into_iter().enumerate() {
            put(ring_at + 1024 * 16 + number as usize * 32 + word * 8, value, 8);
        }
    }
    let reader = SegmentReader::load(&bytes).unwrap();
    assert_eq!((reader.identity().pid, reader.shortage()), (77, None));
    assert_eq!(all_records(&reader), (vec![event(0, 42), event(1, 42)], 0));
    assert_eq!(reader.open_calls(), [OpenCall { thread: 42, name: NameId(1), start: 99 }]);
    let mut names = Vec::new();
    NameCursor::default().read(reader.names(), |_, text| names.push(text));
    assert_eq!(names, ["f"]);
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
        (0..600).for_each(|n| ring.push(event(n, thread).to_words()));
        segment.claim_calls(thread).unwrap().depth.store(3, Ordering::Release);
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
            drop((reader.open_calls(), reader.heads().count(), reader.shortage()));
            let _ = (reader.identity(), reader.start_anchor(), reader.status(Collector::Scopes).message());
        }
    }
    assert!(opened > 100 && records > 10_000, "the damage must leave some readable: {opened}, {records}");
    std::fs::remove_dir_all(folder).unwrap();
}
