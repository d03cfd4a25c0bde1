//! The ring under a model checker: every interleaving and every reordering that the memory model allows.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, fence};
use std::sync::atomic::Ordering;
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

struct Shared {
    head: Cell,
    slots: Vec<[Cell; 4]>,
}

fn shared(size: usize) -> Arc<Shared> {
    let cell = || Cell(AtomicU64::new(0));
    Arc::new(Shared { head: cell(), slots: (0..size).map(|_| std::array::from_fn(|_| cell())).collect() })
}

/// A reader drains while the writer laps it: every record it takes is whole and in order, and what it took
/// plus what it counted as lost is exactly what was written.
fn drained_while_written(size: usize, records: u64, drains: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let ring = shared(size);
        let writing = ring.clone();
        let writer = loom::thread::spawn(move || {
            let mut writer = Writer::new(&writing.head, &writing.slots);
            (1..=records).for_each(|n| writer.push([n, n, n, n]));
        });
        let mut reader = Reader::new(&ring.head, &ring.slots, 0);
        let (mut out, mut lost) = (Vec::new(), 0);
        for _ in 0..drains {
            lost += reader.drain(&mut out, 8);
        }
        writer.join().unwrap();
        lost += reader.drain(&mut out, 8);
        for record in &out {
            assert!(record.iter().all(|word| *word == record[0]), "torn: {record:?}");
        }
        assert!(out.windows(2).all(|pair| pair[0][0] < pair[1][0]), "out of order: {out:?}");
        assert_eq!(out.len() as u64 + lost, records);
    });
}

#[test]
fn no_record_is_torn_while_the_writer_laps_the_reader() {
    drained_while_written(2, 4, 1);
}

#[test]
fn two_drains_beside_the_writer_account_for_every_record() {
    drained_while_written(4, 5, 2);
}

/// A ring is handed from a thread that ends to one that starts, while a reader drains.
#[test]
fn a_ring_changes_hands_without_a_gap() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let ring = shared(4);
        let owned = Arc::new(AtomicU64::new(1));
        let (first_ring, first_owned) = (ring.clone(), owned.clone());
        let first = loom::thread::spawn(move || {
            let mut writer = Writer::new(&first_ring.head, &first_ring.slots);
            writer.push([1; 4]);
            first_owned.store(0, Ordering::Release);
        });
        let second_ring = ring.clone();
        let second = loom::thread::spawn(move || {
            if owned.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                Writer::new(&second_ring.head, &second_ring.slots).push([2; 4]);
                return 2;
            }
            1
        });
        let (mut reader, mut out) = (Reader::new(&ring.head, &ring.slots, 0), Vec::new());
        let mut lost = reader.drain(&mut out, 8);
        first.join().unwrap();
        let written = second.join().unwrap();
        lost += reader.drain(&mut out, 8);
        assert_eq!(out, (1..=written).map(|n| [n; 4]).collect::<Vec<_>>());
        assert_eq!(lost, 0);
    });
}
