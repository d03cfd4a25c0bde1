//! Replays the allocator events of memory snapshots under their own and under other settings, and prints what would have been reserved:
//! `cargo run -p inferscope-replay --example allocator_check -- snapshot.pickle ...`

use replay::allocator::{Settings, Simulator};
use std::path::Path;
use timeline::memory::AllocatorIndex;

fn main() {
    for path in std::env::args().skip(1) {
        let timeline = match timeline::open(Path::new(&path)) {
            Ok(timeline) => timeline,
            Err(error) => {
                println!("{error}");
                continue;
            }
        };
        for allocator in (0..timeline.memory.allocators.len() as u32).map(AllocatorIndex) {
            let simulator = match Simulator::new(&timeline.memory, allocator) {
                Ok(simulator) => simulator,
                Err(why) => {
                    println!("{path}: {why:?}");
                    continue;
                }
            };
            let own = simulator.recorded.clone();
            let changed = [
                ("unchanged", own.clone()),
                ("expandable segments", Settings { expandable: true, ..own.clone() }),
                ("max_split 128 MB", Settings { max_split: Some(128 << 20), ..own.clone() }),
                ("rounding by 8", Settings { divisions: [(1, 8)].into(), ..own.clone() }),
                ("emptied before growing", Settings { empty_before_growing: true, ..own }),
            ];
            println!("{path}: recorded peak {}", simulator.recorded_peak);
            for (name, settings) in changed {
                let out = simulator.run(&settings);
                let percent = out.peak as f64 * 100.0 / simulator.recorded_peak as f64;
                let same = out.same_place as f64 * 100.0 / out.blocks.max(1) as f64;
                print!("  {name:24} peak {:>12} ({percent:.2} %), {} segments taken", out.peak, out.segment_allocs);
                println!(", {same:.1} % of {} blocks where they were recorded", out.blocks);
            }
        }
    }
}
