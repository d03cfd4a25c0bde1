//! Live bytes out of calls of the driver: the orders in which they may come, and those that cannot be.

use super::{DriverMemory, LiveBytes, MemoryPlace, Unmatched, driver_memory};
use crate::Timeline;

const MIB: u64 = 1 << 20;

fn of(text: &str) -> DriverMemory {
    driver_memory(&Timeline::from_text(&format!("device 0 GPU\n{text}")).unwrap().gpu.allocations)
}

/// Direct and imported bytes at the end, and what did not fit.
fn end(text: &str) -> (u64, u64, Unmatched) {
    let memory = of(text);
    let last = memory.places.first().and_then(|place| place.points.last()).copied().unwrap_or_default();
    (last.direct, last.imported, memory.unmatched)
}

fn none() -> Unmatched {
    Unmatched::default()
}

#[test]
fn allocations_live_until_they_are_freed() {
    let memory = of("alloc 1us 100 at 16\n alloc 2us 50 at 32 pool\n free 3us 0 at 16\n failed 4us 9000 error 2");
    let place = &memory.places[0];
    let point = |time, direct, pooled| LiveBytes { time, direct, pooled, imported: 0, framework: 0 };
    assert_eq!(place.points, [point(1_000, 100, 0), point(2_000, 100, 50), point(3_000, 0, 50)]);
    assert_eq!((place.place, place.peak().unwrap().own(), place.at(2_500).own()), (MemoryPlace::Device(0), 150, 150));
    assert_eq!((place.at(999).own(), place.failed.len(), place.failed[0].bytes), (0, 1, 9000));
    assert_eq!((place.failed[0].error, memory.unmatched), (2, none()));
}

#[test]
fn created_memory_lives_until_it_is_unmapped_and_released() {
    let created = "create 1us 4096 handle 7\n map 2us 4096 at 65536 handle 7\n";
    assert_eq!(end(created), (4096, 0, none()));
    assert_eq!(end(&format!("{created} release 3us 0 handle 7")), (4096, 0, none()), "it is still mapped");
    assert_eq!(end(&format!("{created} unmap 3us 4096 at 65536")), (4096, 0, none()), "the handle is still there");
    assert_eq!(end(&format!("{created} release 3us 0 handle 7\n unmap 4us 4096 at 65536")), (0, 0, none()));
    assert_eq!(end(&format!("{created} unmap 3us 4096 at 65536\n release 4us 0 handle 7")), (0, 0, none()));
}

#[test]
fn one_range_unmaps_all_that_is_mapped_in_it() {
    let two = "create 1us 4096 handle 7\n create 1us 4096 handle 8\n map 2us 4096 at 4096 handle 7\n\
               map 3us 4096 at 8192 handle 8\n release 4us 0 handle 7\n release 4us 0 handle 8\n";
    assert_eq!(end(&format!("{two} unmap 5us 8192 at 4096")), (0, 0, none()));
    assert_eq!(end(&format!("{two} unmap 5us 4096 at 8192")), (4096, 0, none()));
    let partial = Unmatched { partial_unmaps: 1, ..none() };
    assert_eq!(end(&format!("{two} unmap 5us 6000 at 4096")), (0, 0, partial));
}

#[test]
fn sleep_and_wake_a_hundred_times_leaves_what_there_was() {
    let mut text = String::from("create 0us 2097152 handle 1\n map 1us 2097152 at 4194304 handle 1\n");
    for round in 0..100u64 {
        let at = 10 + round * 10;
        text += &format!("unmap {at}us 2097152 at 4194304\n release {}us 0 handle {}\n", at + 1, round + 1);
        text += &format!("create {}us 2097152 handle {}\n", at + 5, round + 2);
        text += &format!("map {}us 2097152 at 4194304 handle {}\n", at + 6, round + 2);
    }
    let memory = of(&text);
    let points = &memory.places[0].points;
    assert_eq!((points.last().unwrap().direct, memory.unmatched), (2 * MIB, none()));
    assert_eq!(memory.places[0].peak().unwrap().direct, 2 * MIB);
    assert_eq!(points.iter().filter(|point| point.direct == 0).count(), 100, "asleep, nothing is there");
}

#[test]
fn a_handle_that_was_retained_is_released_as_often() {
    let twice = "create 1us 64 handle 7\n map 2us 64 at 4096 handle 7\n retain 3us 0 at 4096 handle 7\n\
                 retain 4us 0 at 4100 handle 7\n unmap 5us 64 at 4096\n release 6us 0 handle 7\n release 7us 0 handle 7\n";
    assert_eq!(end(twice), (64, 0, none()));
    assert_eq!(end(&format!("{twice} release 8us 0 handle 7")), (0, 0, none()));
    let once_more = Unmatched { releases: 1, ..none() };
    assert_eq!(end(&format!("{twice} release 8us 0 handle 7\n release 9us 0 handle 7")), (0, 0, once_more));
    // Under another number, it is the same memory.
    let other = "create 1us 64 handle 7\n map 2us 64 at 4096 handle 7\n retain 3us 0 at 4096 handle 9\n\
                 release 4us 0 handle 7\n unmap 5us 64 at 4096\n";
    assert_eq!(end(other), (64, 0, none()));
    assert_eq!(end(&format!("{other} release 6us 0 handle 9")), (0, 0, none()));
    assert_eq!(end("retain 1us 0 at 4096 handle 9"), (0, 0, Unmatched { retains: 1, ..none() }));
}

#[test]
fn a_handle_released_before_its_map_counts_until_it_is_unmapped() {
    let odd = "create 1us 64 handle 7\n release 2us 0 handle 7\n map 3us 64 at 4096 handle 7\n";
    let unmatched = Unmatched { maps: 1, ..none() };
    assert_eq!(end(odd), (64, 0, unmatched));
    assert_eq!(end(&format!("{odd} unmap 4us 64 at 4096")), (0, 0, unmatched));
}

#[test]
fn an_import_counts_once_and_apart() {
    let mapped_twice = "import 1us 0 handle 7\n map 2us 64 at 4096 handle 7\n map 3us 64 at 8192 handle 7\n";
    assert_eq!(end(mapped_twice), (0, 64, none()));
    let gone = "release 4us 0 handle 7\n unmap 5us 64 at 4096\n unmap 6us 64 at 8192";
    assert_eq!(end(&format!("{mapped_twice} {gone}")), (0, 0, none()));
}

#[test]
fn an_address_that_is_reused_at_once_is_one_block_after_the_other() {
    // The thread that freed it wrote its record later than the one that got it.
    let reused = "alloc 1us 100 at 16\n alloc 50us 200 at 16\n free 50.5us 0 at 16\n";
    assert_eq!(end(reused), (200, 0, none()));
    assert_eq!(end(&format!("{reused} free 90us 0 at 16")), (0, 0, none()));
    // In the same nanosecond.
    assert_eq!(end("alloc 1us 100 at 16\n free 50us 0 at 16\n alloc 50us 200 at 16"), (200, 0, none()));
    // Long after: the free of the first was lost.
    let lost = Unmatched { replaced: 1, ..none() };
    assert_eq!(end("alloc 1us 100 at 16\n alloc 50us 200 at 16\n free 90us 0 at 16"), (0, 0, lost));
}

#[test]
fn what_was_never_seen_allocated_is_counted() {
    let text = "free 1us 0 at 16\n release 2us 0 handle 3\n unmap 3us 64 at 4096\n unmap 4us 0 at 0";
    assert_eq!(end(text), (0, 0, Unmatched { frees: 1, releases: 1, unmaps: 2, ..none() }));
    assert_eq!(end(text).2.total(), 4);
}

#[test]
fn sizes_beyond_all_memory_neither_wrap_nor_panic() {
    let most = u64::MAX;
    let text = format!("alloc 1us {most} at 1\n alloc 2us {most} at 2\n free 3us 0 at 1\n free 4us 0 at 2\n");
    assert_eq!(end(&text), (0, 0, none()));
    let memory = of(&format!("create 1us {most} handle 1\n map 2us {most} at {most} handle 1\n unmap 3us {most} at 9"));
    assert_eq!(memory.places[0].peak().unwrap().own(), most);
}

#[test]
fn processes_and_places_have_books_of_their_own() {
    let memory = of("alloc 1us 100 at 16\n process other\n device 1 GPU\n free 2us 0 at 16\n alloc 3us 7 at 16");
    assert_eq!(memory.unmatched.frees, 1, "the address is of another process");
    assert_eq!(memory.places.len(), 2);
}
