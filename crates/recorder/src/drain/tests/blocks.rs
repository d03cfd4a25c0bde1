//! The drain and the blocks of a framework's allocator: their rows, a record that lost its numbers, and what a recovery finds.

use super::device::again;
use super::*;
use trace::block::{Block, Totals};
use trace::codes::BlockOperation;

fn block(number: u64) -> Block {
    let totals = Some(Totals { allocated: 512 * (number + 1), reserved: 1 << 21 });
    let block = Block::new(BlockOperation::Alloc, 4096 * number, 512);
    Block { time: 1_000 + number, thread: 77, device: Some(1), totals, ..block }
}

impl Bench {
    fn push_block(&mut self, block: Block) {
        self.ring.push_all(&block.records());
    }
}

#[test]
fn a_block_becomes_its_row() {
    let mut bench = Bench::with("blocks", 1 << 20, Source::Monotonic);
    bench.push_block(block(3));
    bench.push_block(Block { device: None, totals: None, operation: BlockOperation::Free, bytes: 0, ..block(4) });
    // Its numbers were overwritten.
    bench.ring.push(block(5).records()[1]);
    bench.drain.turn();
    assert!(bench.drain.close());
    let rows = bench.rows(Table::Blocks);
    assert_eq!(rows.len(), 2, "{rows:#?}");
    assert!(has(&rows, &["operation: 1", "device: 1", "thread: 77", "bytes: 512", "allocated: 2048"]), "{rows:#?}");
    assert!(has(&rows, &["operation: 2", "device: -1", "address: 16384", "allocated: null"]), "{rows:#?}");
    let losses = bench.rows(Table::Losses);
    assert!(has(&losses, &["\"blocks\"", "incomplete-device-record", "count: 1"]), "{losses:#?}");
}

#[test]
fn a_recovery_reads_no_block_twice_and_forgets_none() {
    let mut bench = Bench::with("blocks-again", 8 << 20, Source::Monotonic);
    let count = |bench: &Bench| bench.rows(Table::Blocks).len();
    (0..100).for_each(|number| bench.push_block(block(number)));
    bench.drain.turn();
    assert!(bench.drain.close());
    again(&mut bench);
    assert_eq!(count(&bench), 100);
    (100..150).for_each(|number| bench.push_block(block(number)));
    bench.push(Kind::ApiCall, NameId(1), 3, 5, &[]);
    assert!(bench.drain.drain_all().is_ok());
    // Killed after the blocks were written and before the slices were.
    let last = bench.drain.store.files().of(Table::Slices).last().unwrap().name();
    fs::remove_file(bench.root.join("trace").join(last)).unwrap();
    (150..160).for_each(|number| bench.push_block(block(number)));
    again(&mut bench);
    assert_eq!((count(&bench), bench.rows(Table::Slices).len()), (160, 1));
}
