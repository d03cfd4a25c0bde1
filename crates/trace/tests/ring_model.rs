//! The ring under a model checker: every interleaving and every reordering that the memory model allows.
//!
//! Both ends are made before the threads start: loom remembers only the last access of a cell when it looks
//! for dependencies, so a first load inside the writer's thread would hide the reader's and end the search early.
//! Each model therefore also proves that it searched, and that it saw what it is about.

use loom::sync::atomic::{AtomicU64, fence};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trace::ring::{Reader, Word, Writer};

struct Cell(AtomicU64);

impl Word for Cell {
    fn load(&self, order: Ordering) -> u64 {
        self.0.load(order)
    }
    fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order)
    }
    fn fence(order: Ordering) {
        fence(order)
    }
}

type Ends = (Writer<'static, Cell>, Reader<'static, Cell>);

/// Leaks a few cells per execution: threads of the model outlive any borrow we could name.
fn ring(size: usize) -> Ends {
    let cell = || Cell(AtomicU64::new(0));
    let head: &'static Cell = Box::leak(Box::new(cell()));
    let slots: Vec<[Cell; 4]> = (0..size).map(|_| std::array::from_fn(|_| cell())).collect();
    let slots: &'static [[Cell; 4]] = Box::leak(slots.into_boxed_slice());
    (Writer::new(head, slots), Reader::new(head, slots, 0))
}

#[derive(Default)]
struct Seen {
    executions: AtomicUsize,
    /// Executions in which the reader got records while the writer was at work.
    overlapped: AtomicUsize,
    /// Executions in which the writer overwrote unread records.
    lost: AtomicUsize,
}

/// A reader drains while the writer works: every record it takes is whole and in order, and what it took
/// plus what it counted as lost is exactly what was written.
fn drained_while_written(size: usize, records: u64) -> Arc<Seen> {
    let seen = Arc::new(Seen::default());
    let note = seen.clone();
    loom::model(move || {
        note.executions.fetch_add(1, Ordering::Relaxed);
        let (mut writer, mut reader) = ring(size);
        let writing = loom::thread::spawn(move || (1..=records).for_each(|n| writer.push([n; 4])));
        let mut out = Vec::new();
        let mut lost = reader.drain(&mut out, 8);
        note.overlapped.fetch_add(usize::from(!out.is_empty()), Ordering::Relaxed);
        writing.join().unwrap();
        lost += reader.drain(&mut out, 8);
        note.lost.fetch_add(usize::from(lost > 0), Ordering::Relaxed);
        for record in &out {
            assert!(record.iter().all(|word| *word == record[0]), "torn: {record:?}");
        }
        assert!(out.windows(2).all(|pair| pair[0][0] < pair[1][0]), "out of order: {out:?}");
        assert_eq!(out.len() as u64 + lost, records);
    });
    seen
}

#[test]
fn no_record_is_torn_while_the_writer_laps_the_reader() {
    let seen = drained_while_written(2, 3);
    assert!(seen.executions.load(Ordering::Relaxed) > 1000);
    assert!(seen.overlapped.load(Ordering::Relaxed) > 0 && seen.lost.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_ring_with_room_loses_nothing() {
    let seen = drained_while_written(4, 3);
    assert!(seen.executions.load(Ordering::Relaxed) > 30);
    assert!(seen.overlapped.load(Ordering::Relaxed) > 0);
    assert_eq!(seen.lost.load(Ordering::Relaxed), 0);
}

/// A ring is handed from a thread that ends to one that starts: the second goes on where the first stopped.
#[test]
fn a_ring_changes_hands_without_a_gap() {
    let handed = Arc::new(AtomicUsize::new(0));
    let note = handed.clone();
    loom::model(move || {
        let cell = || Cell(AtomicU64::new(0));
        let head: &'static Cell = Box::leak(Box::new(cell()));
        let slots: &'static [[Cell; 4]] = Box::leak((0..4).map(|_| std::array::from_fn(|_| cell())).collect());
        let free: &'static Cell = Box::leak(Box::new(cell()));
        let first = loom::thread::spawn(move || {
            Writer::new(head, slots).push([1; 4]);
            free.store(1, Ordering::Release);
        });
        let mut written = 1;
        if free.load(Ordering::Acquire) == 1 {
            note.fetch_add(1, Ordering::Relaxed);
            Writer::new(head, slots).push([2; 4]);
            written = 2;
        }
        first.join().unwrap();
        let mut out = Vec::new();
        assert_eq!(Reader::new(head, slots, 0).drain(&mut out, 8), 0);
        assert_eq!(out, (1..=written).map(|n| [n; 4]).collect::<Vec<_>>());
    });
    assert!(handed.load(Ordering::Relaxed) > 0);
}

/// A writer whose small ring is full of records that are not on disk moves on to a larger one, and comes back when they are:
/// whatever the reader does meanwhile, nothing is torn, lost or out of order within a ring.
#[test]
fn a_writer_that_grows_loses_nothing() {
    let seen = Arc::new(Seen::default());
    let (note, stayed) = (seen.clone(), Arc::new(AtomicUsize::new(0)));
    let stays = stayed.clone();
    loom::model(move || {
        note.executions.fetch_add(1, Ordering::Relaxed);
        let durable: &'static Cell = Box::leak(Box::new(Cell(AtomicU64::new(0))));
        let ((mut small, mut reader), (mut large, mut later)) = (ring(2), ring(4));
        let stays = stays.clone();
        let writing = loom::thread::spawn(move || {
            for number in 1..=3 {
                let fits = small.has_room(1) || small.look(durable, 1);
                stays.fetch_add(usize::from(fits && number > 1), Ordering::Relaxed);
                if fits { small.push([number; 4]) } else { large.push([number; 4]) }
            }
        });
        let mut out = Vec::new();
        let mut lost = reader.drain(&mut out, 8);
        note.overlapped.fetch_add(usize::from(!out.is_empty()), Ordering::Relaxed);
        durable.store(reader.position(), Ordering::Release);
        writing.join().unwrap();
        lost += reader.drain(&mut out, 8);
        let mut rest = Vec::new();
        lost += later.drain(&mut rest, 8);
        for records in [&out, &rest] {
            assert!(records.iter().all(|record| record.iter().all(|word| *word == record[0])), "torn: {records:?}");
            assert!(records.windows(2).all(|pair| pair[0][0] < pair[1][0]), "out of order: {records:?}");
        }
        assert_eq!((out.len() + rest.len(), lost), (3, 0));
    });
    assert!(seen.executions.load(Ordering::Relaxed) > 30, "{:?}", seen.executions);
    assert!(seen.overlapped.load(Ordering::Relaxed) > 0 && stayed.load(Ordering::Relaxed) > 0);
}
