//! What allocators held, on recordings of a few blocks: peaks, what was there before, who holds what and for what, holes.

use super::*;

fn measured(text: &str) -> AllocatorMemory {
    let timeline = Timeline::from_text(text).unwrap();
    measure(&timeline, &Frames::new(&timeline), &Steps::find(&timeline, None)).remove(0)
}

const MIB: u64 = 1 << 20;

#[test]
fn the_peak_is_the_moment_at_which_most_is_held() {
    let text = "block alloc 1us 4M at 1 main>f@a.py:1\n block alloc 2us 8M at 2 main>g@a.py:2\n block free 3us 4M at 1\n block alloc 4us 2M at 3";
    let memory = measured(text);
    assert_eq!((memory.history.peak, memory.history.peak_at, memory.history.last), (12 * MIB, Some(1), 10 * MIB));
    let holders: Vec<_> = memory.peak.by_place.iter().map(|holder| (holder.place.line, holder.bytes)).collect();
    assert_eq!(holders, [(Some(2), 8 * MIB), (Some(1), 4 * MIB)]);
    assert_eq!(memory.in_use(), 10 * MIB);
}

/// Blocks that are freed or held without having been allocated were there before.
#[test]
fn what_was_there_before_the_first_event_counts() {
    let text = "block free 1us 6M at 1\n block alloc 2us 4M at 8M\n reserved 20M at 8M\n holds 4M active\n holds 3M active main>w@m.py:9\n holds 13M free";
    let memory = measured(text);
    assert_eq!((memory.history.first, memory.history.peak, memory.history.peak_at), (9 * MIB, 9 * MIB, None));
    assert_eq!((memory.history.last, memory.history.reserved_peak), (7 * MIB, Some(20 * MIB)));
}

/// A file that was cut has a state of after events that are missing.
#[test]
fn a_state_of_later_says_nothing_of_before() {
    let text = "block alloc 1us 4M at 8M\n reserved 20M at 8M\n holds 4M active\n holds 3M active\n holds 13M free";
    let mut timeline = Timeline::from_text(text).unwrap();
    timeline.memory.cut = true;
    let memory = measure(&timeline, &Frames::new(&timeline), &Steps::find(&timeline, None)).remove(0);
    assert_eq!((memory.history.first, memory.history.peak, memory.history.reserved_peak), (0, 4 * MIB, None));
    assert_eq!((memory.in_use(), memory.map.unwrap().reserved), (7 * MIB, 20 * MIB));
}

#[test]
fn an_address_that_is_handed_out_twice_lacks_a_free() {
    let memory = measured("block alloc 1us 4M at 1\n block alloc 2us 2M at 1\n block free 3us 2M at 1");
    assert_eq!((memory.missing_frees, memory.history.peak, memory.history.last), (1, 4 * MIB, 0));
}

#[test]
fn blocks_are_told_apart_by_their_lives() {
    let text = "
        block alloc 1us 10M at 1 main>load@m.py:1
        track main
        repeat 6 every 1ms
        step request 10us..900us
        block alloc 20us 4M at 2 main>forward@m.py:2
        block alloc 21us 1M at 3 main>at::cuda::getCUDABlasWorkspace@m.py:3
        block alloc 30us 2M at 9 each main>keep@m.py:4
        block free 40us 4M at 2
        block free 41us 1M at 3
        end";
    let memory = measured(text);
    let uses: Vec<_> = memory.peak.by_category.iter().map(|(category, bytes, _)| (*category, bytes / MIB)).collect();
    let expected =
        [(Category::Cache, 12), (Category::Weights, 10), (Category::Activations, 4), (Category::Workspace, 1)];
    assert_eq!((uses.as_slice(), memory.steps), (&expected[..], 6));
}

#[test]
fn holes_are_told_from_what_can_be_given_back() {
    let text = "
        reserved 20M at 100M
        holds 2M active main>keep@m.py:4
        holds 8M free
        holds 2M waits
        holds 8M free
        reserved 40M at 200M pool 3
        holds 40M free";
    let map = measured(text).map.unwrap();
    assert_eq!((map.reserved, map.active, map.awaiting, map.free), (60 * MIB, 2 * MIB, 2 * MIB, 56 * MIB));
    assert_eq!((map.pinned, map.releasable, map.largest_free, map.free_blocks), (16 * MIB, 40 * MIB, 40 * MIB, 3));
    assert_eq!((map.own_pools, map.rounding), (40 * MIB, Some(0)));
    assert_eq!((map.pinning[0].bytes, map.fragmentation() < 0.3), (8 * MIB, true));
}

#[test]
fn growth_that_comes_in_one_phase_is_not_steady() {
    let steady = "repeat 36 every 1ms\n block alloc 1us 1M at 1 each main>keep@m.py:4\n end";
    let phase = "repeat 36 every 1ms\n block alloc 1us 1M at 2\n block free 2us 1M at 2\n end\n repeat 36 every 1us\n block alloc 40ms 1M at 1 each main>keep@m.py:4\n end";
    let steadiness = |text| measured(text).growth.iter().find(|one| one.stack.0 != 0).unwrap().steady();
    assert!(steadiness(steady) > 0.3 && steadiness(phase) == 0.0);
}
