//! Metrics of small timelines, worked out by hand.

use analysis::{Metrics, measure};
use timeline::Timeline;
use timeline::fixture::{Fixture, TemporaryFolder};

fn open(text: &str) -> (Timeline, Metrics) {
    let folder = TemporaryFolder::new("metrics");
    Fixture::parse(text).write(folder.path());
    let timeline = timeline::open(folder.path()).unwrap();
    let metrics = measure(&timeline);
    (timeline, metrics)
}

#[test]
fn own_time_leaves_out_inner_calls_and_recursion_counts_once() {
    let (timeline, metrics) = open(
        "process 100 a 3.12
        call 0 100 0..100 main@a.py:1
        call 0 100 10..90 fib@a.py:5
        call 0 100 20..80 fib@a.py:5
        ccall 0 100 30..40 len@builtins:0
        ccall 0 100 40..50 len@builtins:0
        call 0 101 0..50 main@a.py:1",
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
    let (_, metrics) = open("process 100 a 3.12\ncall 0 100 0..10 f@a.py:1\ncall 0 100 5..50 g@a.py:2");
    let calls = metrics.calls.unwrap();
    let own: Vec<_> = calls.functions.iter().map(|f| f.own / 1000).collect();
    assert_eq!(own, [45, 5]);
}

#[test]
fn samples_count_running_threads_and_a_recursive_function_once() {
    let (timeline, metrics) = open(
        "process 100 a 3.12
        sample 0 100 10 active,gil main@a.py:1;f@a.py:5;f@a.py:5
        sample 0 100 20 active main@a.py:1;f@a.py:5
        sample 0 100 30 active main@a.py:2
        sample 0 101 30 idle main@a.py:9;wait@t.py:1",
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
        "process 100 a 3.12
        process 200 b 3.12
        counter 0 0 0 cpu_ns 0
        counter 0 0 1000 cpu_ns 2000000
        counter 1 201 0 cpu_ns 0
        counter 1 201 1000 cpu_ns 500000
        counter 0 0 0 rss_bytes 100
        counter 0 0 500 rss_bytes 300
        counter 1 0 600 rss_bytes 50
        counter 1 0 1000 rss_bytes 10
        counter 0 0 1000 rss_bytes 200",
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
    let (_, metrics) = open("process 100 a 3.12\nmark 0 100 5 hello");
    let absent: Vec<_> = metrics.absent.iter().map(|absent| absent.what).collect();
    assert_eq!(absent, ["stack samples", "calls", "CPU time", "memory"]);
    assert_eq!(metrics.absent[1].why, "no calls seen");
    assert!(metrics.samples.is_none() && metrics.cpu.is_none() && metrics.memory.is_none());
}

#[test]
fn nothing_at_all_has_no_numbers() {
    let (_, metrics) = open("process 100 a 3.12");
    assert_eq!((metrics.duration, metrics.slices, metrics.absent.len()), (0, 0, 5));
}
