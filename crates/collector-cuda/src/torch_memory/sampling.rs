//! Of which blocks the stack is read: of large ones, of requests that failed, where the allocator had to grow, and of small ones so that every
//! byte is met with the same probability.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use trace::block::{Block, LARGE_BLOCK};
use trace::clock::now;
use trace::codes::{BlockOperation, StackReason};

/// Where nobody has told yet how much is reserved.
const UNKNOWN: u64 = u64::MAX;
/// More devices than a process can use.
const MOST_DEVICES: usize = 64;

/// What an allocator had reserved when it was last heard of, by device.
pub struct Reserved([AtomicU64; MOST_DEVICES]);

impl Reserved {
    pub const fn unknown() -> Reserved {
        Reserved([const { AtomicU64::new(UNKNOWN) }; MOST_DEVICES])
    }

    /// The program has not used a device yet.
    pub fn begin(&self) {
        self.0.iter().for_each(|one| one.store(0, Ordering::Relaxed));
    }

    /// Whether it has grown to this. Called under the lock of the device's allocator.
    #[inline(always)]
    pub fn grew(&self, device: u8, to: u64) -> bool {
        let Some(one) = self.0.get(usize::from(device)) else { return false };
        let before = one.load(Ordering::Relaxed);
        if before != to {
            one.store(to, Ordering::Relaxed);
        }
        before != UNKNOWN && to > before
    }
}

thread_local! {
    static SAMPLER: Cell<Sampler> = const { Cell::new(Sampler { random: 0, mean: 0, left: 0 }) };
}

/// Why the stack of this block is to be read, if it is. `mean`: bytes between two of small blocks; 0: none is read.
#[inline(always)]
pub fn reason(block: &Block, grew: bool, mean: u64) -> Option<StackReason> {
    if mean == 0 {
        return None;
    }
    match block.operation {
        BlockOperation::Free => None,
        BlockOperation::OutOfMemory => Some(StackReason::Large),
        BlockOperation::Alloc if block.bytes >= LARGE_BLOCK => Some(StackReason::Large),
        BlockOperation::Alloc if grew => Some(StackReason::Growth),
        BlockOperation::Alloc => SAMPLER
            .with(|cell| {
                let mut sampler = cell.get();
                let is_met = sampler.meets(block.bytes, mean);
                cell.set(sampler);
                is_met
            })
            .then_some(StackReason::Sampled),
    }
}

/// Counts bytes down to the next that is drawn. How far apart those are is exponential, so that each byte is as likely as any other, whatever the
/// sizes of blocks and their order are: a block of `b` bytes is met with the probability 1 - exp(-b / mean).
#[derive(Clone, Copy)]
struct Sampler {
    /// 0: of a thread that has drawn none yet.
    random: u64,
    mean: u64,
    left: u64,
}

impl Sampler {
    #[inline(always)]
    fn meets(&mut self, bytes: u64, mean: u64) -> bool {
        if self.mean == mean && bytes < self.left {
            self.left -= bytes;
            return false;
        }
        self.draw(bytes, mean)
    }

    #[cold]
    #[inline(never)]
    fn draw(&mut self, bytes: u64, mean: u64) -> bool {
        if self.random == 0 {
            // Of each thread its own.
            self.random = now() ^ (std::ptr::from_ref(self) as u64).rotate_left(32);
        }
        if self.mean != mean {
            self.mean = mean;
            self.left = self.distance();
            return self.meets(bytes, mean);
        }
        self.left = self.distance();
        true
    }

    /// Rounded up: whole bytes reach it if and only if they reach what it was.
    fn distance(&mut self) -> u64 {
        // SplitMix64. The upper bits become a number above 0, and at most 1.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let uniform = ((bits >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (-uniform.ln() * self.mean as f64).ceil().max(1.0) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEAN: u64 = 512 << 10;

    fn block(operation: BlockOperation, bytes: u64) -> Block {
        Block::new(operation, 0x1000, bytes)
    }

    #[test]
    fn large_blocks_failures_and_growth_always_have_a_stack() {
        let alloc = |bytes| block(BlockOperation::Alloc, bytes);
        assert_eq!(reason(&alloc(LARGE_BLOCK), true, MEAN), Some(StackReason::Large));
        assert_eq!(reason(&block(BlockOperation::OutOfMemory, 1), false, MEAN), Some(StackReason::Large));
        assert_eq!(reason(&alloc(LARGE_BLOCK - 1), true, MEAN), Some(StackReason::Growth));
        assert_eq!(reason(&block(BlockOperation::Free, LARGE_BLOCK), true, MEAN), None);
        for operation in BlockOperation::ALL {
            assert_eq!(reason(&block(*operation, LARGE_BLOCK), true, 0), None, "none is asked for");
        }
    }

    #[test]
    fn growth_is_seen_from_the_second_report_on_or_from_nothing() {
        let late = Reserved::unknown();
        let seen: Vec<bool> = [2, 2, 4, 1, 2].iter().map(|to| late.grew(0, *to)).collect();
        assert_eq!(seen, [false, false, true, false, true]);
        assert!(!late.grew(1, 5), "of another device nothing is known");
        assert!(!late.grew(255, 5) && !late.grew(255, 6), "there is no such device");
        late.begin();
        assert!(late.grew(1, 5));
    }

    /// With a fixed seed: the same numbers every time.
    #[test]
    fn a_block_is_met_with_the_probability_of_its_bytes() {
        for bytes in [512, 4096, 100_000, 700_000] {
            let mut sampler = Sampler { random: 99, mean: 0, left: 0 };
            let (count, expected) = (200_000, 1.0 - (-(bytes as f64) / MEAN as f64).exp());
            let met = (0..count).filter(|_| sampler.meets(bytes, MEAN)).count();
            let (mean, spread) = (expected * f64::from(count), (expected * (1.0 - expected) * f64::from(count)).sqrt());
            assert!((met as f64 - mean).abs() < 4.0 * spread, "{bytes}: {met}, not {mean} ± {spread}");
        }
    }

    /// Blocks of many sizes in an order that repeats, as a program has them: what is met stands for each size's bytes.
    #[test]
    fn the_order_of_sizes_makes_no_difference() {
        let sizes = [512u64, 65_536, 512, 1024, 300_000, 2048];
        let mut sampler = Sampler { random: 7, mean: 0, left: 0 };
        let mut bytes = std::collections::BTreeMap::new();
        let rounds = 100_000;
        for size in (0..rounds).flat_map(|_| sizes) {
            let weight = size as f64 / (1.0 - (-(size as f64) / MEAN as f64).exp());
            let met = sampler.meets(size, MEAN);
            *bytes.entry(size).or_insert(0.0) += if met { weight } else { 0.0 };
        }
        for (size, sum) in bytes {
            let blocks = (sizes.iter().filter(|one| **one == size).count() * rounds) as f64;
            let p = 1.0 - (-(size as f64) / MEAN as f64).exp();
            let (exact, spread) = (blocks * size as f64, (blocks * (1.0 - p) / p).sqrt() * size as f64);
            assert!((sum - exact).abs() < 4.0 * spread, "{size}: {sum}, not {exact} ± {spread}");
        }
    }

    #[test]
    fn each_thread_draws_its_own_and_another_mean_begins_anew() {
        let draws = || {
            std::thread::spawn(|| {
                let block = block(BlockOperation::Alloc, 1000);
                (0..2000).filter(|_| reason(&block, false, 1 << 16).is_some()).count();
                SAMPLER.with(Cell::get).random
            })
            .join()
            .unwrap()
        };
        assert_ne!(draws(), draws());
        let mut sampler = Sampler { random: 1, mean: u64::MAX, left: u64::MAX };
        assert!((0..100_000).any(|_| sampler.meets(1000, MEAN)), "not what was left of the other");
        assert!(!Sampler { random: 1, mean: 0, left: 0 }.meets(0, 1), "no bytes are never met");
        let first = (1..1000).filter(|seed| Sampler { random: *seed, mean: 0, left: 0 }.meets(1, MEAN)).count();
        assert!(first < 5, "a thread's first block is like any other: {first} of 999 were met");
    }
}
