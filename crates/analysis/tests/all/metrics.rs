//! Metrics of small timelines, worked out by hand.

use analysis::metrics::absent::{Missing, Why};
use analysis::{Metrics, measure};
use timeline::Timeline;

fn open(text: &str) -> (Timeline, Metrics) {
    let timeline = Timeline::from_text(text).unwrap();
    let metrics = measure(&timeline);
    (timeline, metrics)
}

#[test]
fn own_time_leaves_out_inner_calls_and_recursion_counts_once() {
    let (timeline, metrics) = open(
        "track main
        call main@a.py:1 0..100us
        call fib@a.py:5 10us..90us
        call fib@a.py:5 20us..80us
        ccall len@builtins:0 30us..40us
        ccall len@builtins:0 40us..50us
        track other
        call main@a.py:1 0..50us",
    );
    let calls = metrics.calls.unwrap();
    let rows: Vec<_> = calls
        .functions
        .iter()
        .map(|f| (timeline.names.text(f.name), f.count, f.total / 1000, f.own / 1000, f.c_function))
        .collect();
    assert_eq!(rows, [("main", 2, 150, 70, false), ("fib", 2, 80, 60, false), ("len", 2, 20, 20, true)]);
    assert_eq!(calls.count, 6);
}

#[test]
fn a_call_that_outlives_its_caller_makes_no_negative_time() {
    let (_, metrics) = open("track main\ncall f@a.py:1 0..10us\ncall g@a.py:2 5us..50us");
    let calls = metrics.calls.unwrap();
    let own: Vec<_> = calls.functions.iter().map(|f| f.own / 1000).collect();
    assert_eq!(own, [45, 5]);
}

#[test]
fn samples_count_running_threads_and_a_recursive_function_once() {
    let (timeline, metrics) = open(
        "rate 100
        track main
        sample 10us active gil main@a.py:1>f@a.py:5>f@a.py:5
        sample 20us active main@a.py:1>f@a.py:5
        sample 30us active main@a.py:2
        track other
        sample 30us main@a.py:9>wait@t.py:1",
    );
    let samples = metrics.samples.unwrap();
    assert_eq!((samples.taken, samples.active, samples.idle, samples.gil), (4, 3, 1, 1));
    assert_eq!(samples.interval_ns, Some(10_000_000));
    let functions: Vec<_> = samples.functions.iter().map(|f| (timeline.names.text(f.name), f.own, f.total)).collect();
    assert_eq!(functions, [("f", 2, 2), ("main", 1, 3)]);
    let lines: Vec<_> = samples.lines.iter().map(|l| (timeline.names.text(l.name), l.line, l.own, l.total)).collect();
    assert_eq!(lines, [("f", 5, 2, 2), ("main", 2, 1, 1), ("main", 1, 0, 2)]);
}

#[test]
fn curves_spread_growth_over_time_and_add_processes_up() {
    let (timeline, metrics) = open(
        "process a python 3.12
        counter process cpu_ns 0=0 1ms=2ms
        counter process rss_bytes 0=100 500us=300 1ms=200
        process b python 3.12
        track worker
        counter cpu_ns 0=0 1ms=500us
        counter process rss_bytes 600us=50 1ms=10",
    );
    let cpu = metrics.cpu.unwrap();
    assert!((cpu.mean - 2.5).abs() < 1e-9, "{}", cpu.mean);
    assert!((cpu.peak.value - 2.5).abs() < 0.02, "{}", cpu.peak.value);
    let memory = metrics.memory.unwrap();
    assert_eq!((memory.peak.value, memory.peak.at), (350.0, 600_000));
    assert_eq!(memory.buckets[0], Some(100.0));
    assert_eq!(metrics.processes[0].peak_rss, Some(300));
    assert_eq!((metrics.processes[0].cpu_ns, metrics.processes[1].cpu_ns), (Some(2_000_000), Some(500_000)));
    assert_eq!(timeline.duration(), 1_000_000);
}

#[test]
fn what_was_not_recorded_is_said_with_its_reason() {
    let (_, metrics) = open("rate 100\n calls on\n track main\n mark hello 5us");
    let absent: Vec<_> = metrics.absent.iter().map(|absent| absent.what).collect();
    assert_eq!(absent, [Missing::Samples, Missing::Calls, Missing::CpuTime, Missing::Memory]);
    assert_eq!(metrics.absent[1].why, Why::NoneSeen);
    assert!(metrics.samples.is_none() && metrics.cpu.is_none() && metrics.memory.is_none());
}

#[test]
fn nothing_at_all_has_no_numbers() {
    let (_, metrics) = open("process a python 3.12");
    assert_eq!((metrics.duration, metrics.slices, metrics.absent.len()), (0, 0, 5));
}
