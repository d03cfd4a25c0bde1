//! Memory of a device by what it is for: sums, what is told apart where the driver lists processes and where it does not, and what is not attributed.

use super::*;
use timeline::memory::MemoryEventKind;

const MIB: u64 = 1 << 20;

/// A program that has 500 MiB of a context, takes a segment of 100 MiB for its allocator, and 200 MiB beside it.
const PROGRAM: &str = "device 0 GPU memory 80G\n track main\n repeat 8 every 100ms\n step request 310ms..390ms\n end\n
    alloc 200ms 104857600 at 1073741824\n block alloc 201ms 60M at 1G\n alloc 202ms 209715200 at 3221225472\n";

fn reading(name: &str, at: &str, mib: u64) -> String {
    format!("counter {name} {at}={}\n", mib * MIB)
}

/// What the driver counts of the device, and of the process, at these times.
fn sampled(device: &[(&str, u64)], process: &[(&str, u64)]) -> String {
    let device = device.iter().map(|(at, mib)| reading("host gpu_memory_used_bytes", at, *mib));
    device.chain(process.iter().map(|(at, mib)| reading("process gpu_process_memory_bytes", at, *mib))).collect()
}

fn of(text: &str) -> Vec<DeviceAttribution> {
    let mut timeline = Timeline::from_text(text).unwrap();
    let totals: Vec<(u64, u64)> = totals(&timeline);
    for (event, (allocated, reserved)) in timeline.memory.events.iter_mut().zip(totals) {
        (event.allocated, event.reserved) = (Some(allocated), Some(reserved));
    }
    measure(&timeline, &Steps::find(&timeline, None))
}

/// As the allocator would say it: what blocks add up to, and 100 MiB reserved.
fn totals(timeline: &Timeline) -> Vec<(u64, u64)> {
    let mut held = 0u64;
    let each = timeline.memory.events.iter().map(|event| {
        match event.kind {
            MemoryEventKind::Alloc => held += event.bytes,
            MemoryEventKind::FreeCompleted => held -= event.bytes,
            _ => {}
        }
        (held, 100 * MIB)
    });
    each.collect()
}

fn found(text: &str) -> Attribution {
    let all = of(text);
    assert_eq!(all.len(), 1, "{all:?}");
    all.into_iter().next().unwrap().found.unwrap()
}

fn refused(text: &str) -> NotAttributed {
    of(text).into_iter().next().unwrap().found.unwrap_err()
}

fn ends(found: &Attribution) -> Vec<(&'static str, u64)> {
    found.parts.iter().map(|part| (part.kind.name(), part.end() / MIB)).collect()
}

fn sums(found: &Attribution) {
    for (at, used) in found.used.iter().enumerate() {
        let sum: u64 = found.parts.iter().map(|part| part.bytes[at]).sum();
        assert_eq!(sum, *used, "at sample {at}");
    }
}

#[test]
fn parts_of_a_listed_process_add_up_to_the_device() {
    let text = PROGRAM.to_owned()
        + &sampled(&[("100ms", 1000), ("300ms", 1800), ("900ms", 1850)], &[("300ms", 800), ("900ms", 850)]);
    let one = found(&text);
    sums(&one);
    assert_eq!((one.level, one.times.len(), one.unsettled), (Level::Process, 2, 0));
    let expected =
        [("other_processes", 1000), ("context", 500), ("driver", 200), ("torch_cached", 40), ("torch_in_use", 60)];
    assert_eq!(ends(&one), [&expected[..], &[("hidden", 50)]].concat());
    assert!(one.off == 0.0 && one.parts[1].process.is_some());
}

#[test]
fn what_the_driver_lists_of_others_is_told_from_what_it_does_not_list() {
    let text = PROGRAM.to_owned()
        + &sampled(&[("300ms", 1800)], &[("300ms", 800)])
        + &reading("host gpu_other_processes_memory_bytes", "300ms", 700);
    let one = found(&text);
    sums(&one);
    assert_eq!(ends(&one)[..2], [("other_processes", 700), ("unlisted", 300)]);
}

#[test]
fn without_processes_the_device_tells_what_came_with_the_program() {
    let text = PROGRAM.to_owned() + &sampled(&[("100ms", 1000), ("300ms", 1800), ("900ms", 1850)], &[]);
    let one = found(&text);
    sums(&one);
    assert_eq!(one.level, Level::Device);
    assert_eq!(ends(&one)[..2], [("before_the_program", 1000), ("context", 500)]);
    assert_eq!(ends(&one).last(), Some(&("hidden", 50)));
}

#[test]
fn a_process_of_another_namespace_with_the_same_number_is_not_taken_for_ours() {
    let text = PROGRAM.to_owned() + &sampled(&[("100ms", 1000), ("300ms", 1800)], &[("300ms", 90), ("900ms", 91)]);
    let one = found(&text);
    sums(&one);
    assert_eq!(one.level, Level::Device, "90 MiB cannot hold the 300 that its calls took");
}

#[test]
fn a_sample_while_memory_is_taken_is_left_out() {
    let text = PROGRAM.to_owned() + &sampled(&[("195ms", 1300), ("300ms", 1800)], &[("195ms", 500), ("300ms", 800)]);
    let one = found(&(text + "alloc 100ms 1024 at 16"));
    assert_eq!((one.times.len(), one.unsettled), (1, 1));
}

#[test]
fn a_leak_beside_the_allocator_is_the_drivers() {
    let leak: String = (0..8).map(leak_at).collect();
    let text =
        PROGRAM.to_owned() + &leak + &sampled(&[("300ms", 1800), ("1200ms", 1880)], &[("300ms", 800), ("1200ms", 880)]);
    let one = found(&text);
    sums(&one);
    let driver = one.parts.iter().find(|part| part.kind == PartKind::Driver).unwrap();
    assert_eq!((driver.end() / MIB, driver.peak / MIB), (280, 280));
    assert!(!one.parts.iter().any(|part| part.kind == PartKind::Hidden), "{:?}", ends(&one));
}

fn leak_at(round: u64) -> String {
    format!("alloc {}ms 10485760 at {}\n", 350 + round * 100, (16 << 30) + round * (64 << 20))
}

#[test]
fn more_than_the_driver_counts_is_not_attributed() {
    let text = PROGRAM.to_owned() + &sampled(&[("300ms", 250), ("900ms", 250)], &[("300ms", 250), ("900ms", 250)]);
    let text = text + "step later 950ms..3000ms\n";
    assert!(matches!(refused(&text), NotAttributed::MoreThanCounted(_)), "{:?}", refused(&text));
}

#[test]
fn what_the_allocator_says_must_fit_its_calls() {
    let text = PROGRAM.replace("104857600 at 1073741824", "209715200 at 1073741824")
        + &sampled(&[("300ms", 1800)], &[("300ms", 800)]);
    let NotAttributed::AllocatorApart(part) = refused(&text) else { panic!("{:?}", refused(&text)) };
    assert_eq!((part * 100.0).round(), 6.0);
}

#[test]
fn samples_while_the_program_ends_are_left_out() {
    let text = PROGRAM.to_owned()
        + &sampled(
            &[("300ms", 1800), ("900ms", 1800), ("1100ms", 1020)],
            &[("300ms", 800), ("900ms", 800), ("1100ms", 20)],
        );
    let one = found(&text);
    assert_eq!((one.times.len(), one.unsettled), (2, 1));
}

#[test]
fn without_samples_or_a_gpu_nothing_is_attributed() {
    assert_eq!(refused(PROGRAM), NotAttributed::NotSampled);
    assert!(of("track main\n step request 0..40ms").is_empty());
    let managed = timeline_with_managed();
    let found = &measure(&managed, &Steps::find(&managed, None))[0].found;
    assert_eq!(found.as_ref().unwrap_err(), &NotAttributed::UnifiedMemory);
}

fn timeline_with_managed() -> Timeline {
    let text = PROGRAM.to_owned() + "alloc 203ms 4096 at 64\n" + &sampled(&[("300ms", 1800)], &[("300ms", 800)]);
    let mut timeline = Timeline::from_text(&text).unwrap();
    timeline.gpu.allocations.last_mut().unwrap().memory = 5;
    timeline
}
