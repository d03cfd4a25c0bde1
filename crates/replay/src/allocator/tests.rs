//! The simulator on small recordings whose peak is known: unchanged, it gives what was recorded; changed, what the rules of the allocator give.

use super::*;
use timeline::Timeline;

fn simulator(timeline: &Timeline) -> Simulator<'_> {
    Simulator::new(&timeline.memory, AllocatorIndex(0)).unwrap_or_else(|why| panic!("{why:?}"))
}

/// Two blocks share a segment of 20 MiB, a third of 12 MiB has its own.
const THREE: &str = "
    segment alloc 1us 20M at 1M
    block alloc 1us 4M at 1M
    block alloc 2us 8M at 5M
    segment alloc 3us 12M at 100M
    block alloc 3us 12M at 100M
    block free 4us 8M at 5M
    block alloc 5us 6M at 5M
    reserved 20M at 1M
    holds 4M active
    holds 6M active
    holds 10M free
    reserved 12M at 100M
    holds 12M active";

#[test]
fn unchanged_settings_give_the_recorded_peak() {
    let timeline = Timeline::from_text(THREE).unwrap();
    let simulator = simulator(&timeline);
    assert_eq!((simulator.recorded_peak, simulator.unchanged.peak), (32 << 20, 32 << 20));
    let out = simulator.unchanged;
    assert_eq!((out.segment_allocs, out.free, out.largest_free), (2, 10 << 20, 10 << 20));
    assert_eq!((out.blocks, out.same_place), (4, 4));
}

/// Blocks from before the recording lie where the state at the end says; what is free beside them is used.
#[test]
fn a_recording_that_began_late_starts_from_what_was_there() {
    let text = "
        block alloc 1us 8M at 5M
        block free 2us 4M at 1M
        block alloc 3us 2M at 1M
        reserved 20M at 1M
        holds 2M active
        holds 2M free
        holds 8M active
        holds 8M free";
    let timeline = Timeline::from_text(text).unwrap();
    let simulator = simulator(&timeline);
    assert_eq!((simulator.unchanged.peak, simulator.unchanged.segment_allocs), (20 << 20, 0));
    assert_eq!((simulator.unchanged.same_place, simulator.unchanged.blocks), (2, 2));
}

/// Sizes that grow a little each time fit no hole of the round before: with expandable segments the holes are one.
#[test]
fn growing_sizes_fragment_and_expandable_segments_do_not() {
    let mut text = String::new();
    for round in 0..8u64 {
        // Each is larger than 10 MiB, and so has a segment of its own.
        let (size, at) = (12 + 2 * round, 1000 * (round + 1));
        text += &format!("segment alloc {round}us {size}M at {at}M\n block alloc {round}us {size}M at {at}M\n");
        text += &format!("block free {round}us {size}M at {at}M\n");
    }
    for round in 0..8u64 {
        text += &format!(
            "reserved {size}M at {at}M\n holds {size}M free\n",
            size = 12 + 2 * round,
            at = 1000 * (round + 1)
        );
    }
    let timeline = Timeline::from_text(&text).unwrap();
    let simulator = simulator(&timeline);
    let all: u64 = (0..8).map(|round| (12 + 2 * round) << 20).sum();
    assert_eq!((simulator.unchanged.peak, simulator.unchanged.segment_allocs), (all, 8));
    let expandable = simulator.run(&Settings { expandable: true, ..Settings::default() });
    assert_eq!(expandable.peak, 40 << 20);
    let emptied = simulator.run(&Settings { empty_before_growing: true, ..Settings::default() });
    assert_eq!(emptied.peak, 26 << 20);
}

#[test]
fn blocks_too_large_to_be_split_are_kept_whole() {
    let text = "
        segment alloc 1us 200M at 1M
        block alloc 1us 200M at 1M
        block free 2us 200M at 1M
        block alloc 3us 4M at 1M
        reserved 200M at 1M
        holds 4M active
        holds 196M free";
    let timeline = Timeline::from_text(text).unwrap();
    let simulator = simulator(&timeline);
    assert_eq!(simulator.unchanged.peak, 200 << 20);
    let kept = simulator.run(&Settings { max_split: Some(100 << 20), ..Settings::default() });
    assert_eq!((kept.peak, kept.largest_free), (220 << 20, 200 << 20));
}

/// Holes of 9 MiB beside small blocks serve no request of 16 MiB; in one expandable segment they are one.
#[test]
fn a_request_that_failed_is_served_where_the_rules_say_so() {
    let (mut events, mut state) = (String::new(), String::new());
    for round in 0..4u64 {
        let at = 100 * (round + 1);
        events += &format!("segment alloc {round}us 20M at {at}M\n block alloc {round}us 9M at {at}M\n");
        events += &format!("block alloc {round}us 9M at {}M\n", at + 9);
        state += &format!("reserved 20M at {at}M\n holds 9M free\n holds 9M active\n holds 2M free\n");
    }
    for round in 0..4u64 {
        events += &format!("block free 9us 9M at {}M\n", 100 * (round + 1));
    }
    let timeline = Timeline::from_text(&format!("{events}{state}")).unwrap();
    let simulator = simulator(&timeline);
    let (own, expandable) = (Settings::default(), Settings { expandable: true, ..Settings::default() });
    let serves = |settings, bytes: u64, capacity: u64| simulator.serves(settings, bytes << 20, capacity << 20);
    assert!(serves(&own, 9, 80), "a hole is large enough");
    assert!(!serves(&own, 16, 80) && serves(&own, 16, 96), "the driver would have had to give more");
    assert!(!serves(&expandable, 16, 70), "what was recorded alone takes more");
    assert_eq!(serves(&expandable, 16, 100), serves(&own, 16, 100));
}

#[test]
fn streams_and_own_pools_do_not_share() {
    let text = "
        block alloc 1us 4M at 1M
        block alloc 2us 4M at 101M
        reserved 20M at 1M
        holds 4M active
        holds 16M free
        reserved 20M at 101M pool 7
        holds 4M active
        holds 16M free";
    let timeline = Timeline::from_text(text).unwrap();
    let simulator = simulator(&timeline);
    assert_eq!((simulator.unchanged.peak, simulator.unchanged.same_place), (40 << 20, 2));
}

#[test]
fn what_cannot_be_replayed_says_why() {
    let why = |text: &str| {
        let timeline = Timeline::from_text(text).unwrap();
        Simulator::new(&timeline.memory, AllocatorIndex(0)).err().unwrap()
    };
    assert_eq!(why("reserved 20M at 1M\n holds 20M free"), NotSimulated::NoEvents);
    let missed = "segment alloc 1us 500M at 1M\n block alloc 2us 1M at 1M\n reserved 500M at 1M\n holds 1M active";
    assert!(matches!(why(missed), NotSimulated::Missed(off) if off > 0.9), "{:?}", why(missed));
}

/// Numbers of no machine end in an answer or in a reason, never in a panic.
#[test]
fn absurd_sizes_are_survived() {
    let text = "
        block alloc 1us 17179869183G at 1
        block alloc 2us 17179869183G at 2
        block free 3us 1 at 17179869183G
        block alloc 4us 0 at 0
        reserved 17179869183G at 17179869183G
        holds 5 active";
    let timeline = Timeline::from_text(text).unwrap();
    let _ = Simulator::new(&timeline.memory, AllocatorIndex(0)).map(|simulator| simulator.run(&Settings::default()));
}
