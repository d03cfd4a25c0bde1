//! What made the slow steps slow, and the picture of the median step: planted reasons are named with their place, and the lanes of
//! the picture account for the whole step.

use analysis::SlowSteps;
use analysis::host::breakdown::PartKind;
use analysis::slow_steps::{Counted, Side};
use analysis::waterfall::{Lane, LaneKind};
use diagnosis::wording::slow_steps::sentence;
use diagnosis::{Diagnosis, Options, diagnose};
use std::path::Path;
use timeline::Timeline;

fn diagnosed(text: &str) -> Diagnosis {
    let timeline = Timeline::from_text(text).unwrap_or_else(|error| panic!("{error}"));
    diagnose(&timeline, &Options::default())
}

/// With its sentence.
fn slow(text: &str) -> (SlowSteps, String) {
    let Diagnosis { steps, slow_steps, .. } = diagnosed(text);
    let slow = slow_steps.expect("there are steps");
    let sentence = sentence(&steps, &slow);
    (slow, sentence)
}

/// 60 steps of 8 ms every 30 ms; two of them (numbers 20 and 40) take 20 ms and have something of their own.
fn with_tail(usual: &str, tail: &str) -> String {
    let mut text = "rate 1000\ntrack main\n".to_owned();
    for number in 0..60u64 {
        let (length, own) = if number == 20 || number == 40 { (20, tail) } else { (8, usual) };
        let moved = |line: &str| moved(line, 30 * number);
        text += &moved(&format!("step request 0ms..{length}ms"));
        text += &own.lines().map(moved).collect::<String>();
    }
    text
}

/// Adds to the milliseconds of a line.
fn moved(line: &str, by: u64) -> String {
    let word = |word: &str| {
        let times: Option<Vec<u64>> = word.split("..").map(|time| time.strip_suffix("ms")?.parse().ok()).collect();
        match times {
            Some(times) if word.contains("..") => {
                times.iter().map(|time| format!("{}ms", time + by)).collect::<Vec<_>>().join("..")
            }
            _ => word.to_owned(),
        }
    };
    line.split_whitespace().map(word).collect::<Vec<_>>().join(" ") + "\n"
}

#[test]
fn garbage_collection_in_the_slow_steps_is_named_with_its_line() {
    let usual = "samples 0ms..8ms every 1ms active gil main>serve@serve.py:30";
    let tail = "samples 0ms..8ms every 1ms active gil main>serve@serve.py:30
        gc collect 8ms..20ms
        samples 8ms..20ms every 1ms active gil main>build@serve.py:41";
    let (slow, said) = slow(&with_tail(usual, tail));
    assert_eq!(
        said,
        "Slow steps (2 of 60, +12.0 ms on 8.00 ms) spent 12.0 ms more in garbage collection at serve.py:41."
    );
    let first = &slow.differences[0];
    assert_eq!((first.side, first.slow_ns, first.usual_ns), (Side::Thread(PartKind::Gc), 12_000_000, 0));
    assert_eq!((slow.all_slow, slow.usual, slow.slow.len()), (2, 30, 2));
}

#[test]
fn a_function_that_takes_longer_is_named_and_a_wait_too() {
    let usual = "samples 0ms..8ms every 1ms active gil main>serve@serve.py:30";
    let (_, said) = slow(&with_tail(usual, "samples 0ms..20ms every 1ms active gil main>render@page.py:7"));
    assert!(said.contains("spent 20.0 ms more in render at page.py:7"), "{said}");
    let tail = "samples 0ms..8ms every 1ms active gil main>serve@serve.py:30
        samples 8ms..20ms every 1ms main>serve@serve.py:30>acquire@threading.py:3";
    let (_, said) = slow(&with_tail(usual, tail));
    assert!(said.contains("spent 12.0 ms more waiting at"), "{said}");
}

#[test]
fn a_kernel_that_takes_longer_is_named_where_the_thread_only_waits() {
    let work = |end: u64| {
        format!(
            "api cudaLaunchKernel 1ms..2ms\nstream 7\nkernel gemm 2ms..{end}ms\napi cudaStreamSynchronize 2ms..{end}ms"
        )
    };
    let (slow, said) = slow(&with_tail(&work(8), &work(20)));
    assert!(said.contains("spent 12.0 ms more in kernel gemm"), "{said}");
    // As many kernels as usual: that is no difference.
    assert_eq!(slow.counts, []);
    let (more, _) = self::slow(&with_tail(
        &work(8),
        &format!("{}\napi cudaLaunchKernel 12ms..13ms\nkernel gemm 13ms..20ms", work(12)),
    ));
    assert_eq!(
        more.counts.iter().map(|one| (one.what, one.slow, one.usual)).collect::<Vec<_>>(),
        [(Counted::Kernels, 2.0, 1.0)]
    );
}

#[test]
fn a_device_that_idles_in_the_slow_steps_has_the_call_named() {
    let work = |at: u64| {
        let copy = if at > 0 { "api cudaMalloc 1ms..13ms\n" } else { "" };
        format!(
            "{copy}api cudaLaunchKernel {}ms..{}ms\nstream 7\nkernel gemm {}ms..{}ms",
            at + 1,
            at + 2,
            at + 2,
            at + 8
        )
    };
    let (_, said) = slow(&with_tail(&work(0), &work(12)));
    assert!(said.contains("12.0 ms more with the GPU idle (allocator, cudaMalloc)"), "{said}");
}

#[test]
fn steps_that_are_alike_or_few_or_none_are_said_to_be() {
    let (alike, said) = slow("track main\nrepeat 60 every 30ms\nstep request 0..8ms\nend");
    assert!(said.starts_with("No slow steps: p99 8.00 ms"), "{said}");
    assert!(alike.slow.is_empty() && alike.differences.is_empty());
    let (_, said) = slow("track main\nrepeat 5 every 30ms\nstep request 0..8ms\nend");
    assert_eq!(said, "5 steps: too few to tell slow from typical ones.");
    assert!(diagnosed("track main\nscope once 0..8ms").slow_steps.is_none());
    assert!(diagnosed("track main\nscope once 0..8ms").waterfall.is_none());
}

fn covered(lane: &Lane) -> u64 {
    assert!(lane.stretches.windows(2).all(|pair| pair[0].end <= pair[1].start), "{:?}: in order", lane.kind);
    lane.stretches.iter().map(|one| one.end - one.start).sum()
}

/// On a real GPU: the thread's lane is the whole step; the device's lanes, idle included, are the whole step too.
#[test]
fn lanes_of_the_median_step_account_for_all_of_it() {
    for name in ["decode", "bert", "copies", "graphs"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name);
        let timeline = timeline::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let diagnosis = diagnose(&timeline, &Options::default());
        let picture = diagnosis.waterfall.expect("there are steps");
        assert_eq!(picture.end - picture.start, diagnosis.steps.p50(), "{name}");
        let lane = |kind: LaneKind| picture.lanes.iter().find(|lane| lane.kind == kind);
        assert_eq!(covered(lane(LaneKind::Host).unwrap()), diagnosis.steps.p50(), "{name}");
        let idle = lane(LaneKind::Idle).unwrap();
        assert_eq!(covered(idle), idle.totals.iter().map(|total| total.ns).sum::<u64>(), "{name}");
        // Kernels and copies may run side by side; together they are what idle time leaves.
        let mut busy: Vec<(u64, u64)> = [LaneKind::Kernels, LaneKind::Copies]
            .iter()
            .filter_map(|kind| lane(*kind))
            .flat_map(|lane| lane.stretches.iter().map(|one| (one.start, one.end)))
            .collect();
        busy.sort_unstable();
        let (mut at, mut sum) = (0, 0);
        for (start, end) in busy {
            sum += end.saturating_sub(start.max(at));
            at = at.max(end);
        }
        assert_eq!(sum + covered(idle), diagnosis.steps.p50(), "{name}");
    }
}

#[test]
fn steps_of_two_threads_that_overlap_have_a_picture_of_one_of_them() {
    let thread = |name: &str, first: u64, stream: u32| {
        let mut text = format!("track {name}\n");
        for number in 0..20u64 {
            let moved = |line: &str| moved(line, first + 20 * number);
            text += &moved("step request 0ms..20ms");
            text += &moved("api cudaLaunchKernel 1ms..2ms");
            text += &format!("stream {stream}\n");
            text += &moved("kernel k 2ms..5ms");
        }
        text
    };
    let diagnosis = diagnosed(&(thread("one", 0, 7) + &thread("two", 10, 8)));
    let picture = diagnosis.waterfall.expect("there are steps");
    let idle =
        picture.lanes.iter().find(|lane| lane.kind == LaneKind::Idle).expect("the device is idle most of the time");
    assert!(idle.stretches.iter().all(|one| picture.start <= one.start && one.end <= picture.end));
    assert_eq!(covered(idle), 14_000_000, "each thread's kernel takes three of twenty milliseconds");
}
