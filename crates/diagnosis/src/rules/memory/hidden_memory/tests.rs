//! Hidden memory by its shapes: a drift, a jump, a spike, a level, growth by no call, contexts, other processes; and what is none of it.

use super::*;
use crate::finding::{Finding, Severity};
use crate::testing::{abstains, found, silent};

const MIB: u64 = 1 << 20;
/// A program whose steps take 64 MiB of PyTorch's allocator, in a segment of its own.
const STEPS: &str =
    "device 0 NVIDIA_H200 memory 80G\n track main\n alloc 0us 104857600 at 1073741824\n segment alloc 0us 100M at 1G\n
    block alloc 1us 32M at 1G main>load@model.py:3\n repeat 32 every 30ms\n step request 0..29ms\n
    block alloc 5ms 64M at 1060M main>forward@model.py:7\n block free 6ms 64M at 1060M\n";

/// Each step takes so much of the driver, under a function of the program.
fn leaking(mib: u64) -> String {
    format!(
        "{STEPS} call native_step@memory.py:151 1ms..3ms\n api cudaMalloc 1ms..2ms\n alloc 2ms {} at 7 each\n end\n",
        mib * MIB
    )
}

fn readings(name: &str, mib: impl Fn(u64) -> u64) -> String {
    (0..32).map(|step| format!("counter {name} {}us={}\n", step * 30_000 + 25_000, mib(step) * MIB)).collect()
}

/// What the driver counts, of the device and of the process.
fn counted(mib: impl Fn(u64) -> u64) -> String {
    readings("host gpu_memory_used_bytes", |step| mib(step) + 300) + &readings("process gpu_process_memory_bytes", mib)
}

fn said(found: &[Finding]) -> String {
    found.iter().flat_map(|one| &one.evidence).map(|one| one.text.as_str()).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_leak_outside_pytorch_is_found_with_its_size_rate_and_line() {
    let found = found(&HiddenMemory, &leaking(32));
    assert_eq!(
        found[0].title,
        "GPU 0 memory grows by 32.0 MiB a step outside PyTorch: 1.00 GiB by cudaMalloc in native_step (memory.py:151)"
    );
    assert_eq!((found.len(), found[0].severity), (1, Severity::High));
    assert_eq!((found[0].place.line, found[0].place.api.as_deref()), (Some(151), Some("cudaMalloc")));
    assert!(said(&found).contains("the driver's own count was not: "), "{}", said(&found));
    assert!(found[0].certainty.seen > 0.8, "{:?}", found[0].certainty);
}

#[test]
fn freed_few_or_early_allocations_are_no_drift() {
    silent(&HiddenMemory, &leaking(32).replace(" end\n", " free 4ms 0 at 7 each\n end\n"));
    silent(&HiddenMemory, &format!("{STEPS} end"));
    let early = "repeat 8 every 30ms\n api cudaMalloc 1ms..2ms\n alloc 2ms 10485760 at 7 each\n end";
    silent(&HiddenMemory, &format!("{STEPS} end\n {early}"));
}

/// With `--memory-events none` PyTorch's segments are among the calls: what drifts is said, with the doubt, and nothing else.
#[test]
fn without_blocks_a_drift_is_said_with_its_doubt() {
    let without = |text: &str| {
        let lines = text.lines().filter(|line| !line.contains("block ") && !line.contains("segment "));
        lines.collect::<Vec<_>>().join("\n") + "\n op aten::mm 0..1us"
    };
    let found = found(&HiddenMemory, &without(&leaking(32)));
    assert!(
        found[0].title.starts_with("GPU 0 memory grows by 32.0 MiB a step: 1.00 GiB by cudaMalloc"),
        "{}",
        found[0].title
    );
    assert!(said(&found).contains("--memory-events none") && found[0].certainty.seen < 0.5, "{}", said(&found));
    let jump = format!("{STEPS} end\n api cudaMalloc 100ms..101ms\n alloc 101ms {} at 7", 600 * MIB);
    silent(&HiddenMemory, &without(&jump));
}

#[test]
fn one_jump_is_told_from_a_level_of_the_start() {
    let taken = |at: &str, mib: u64| {
        format!("{STEPS} end\n scope warm_graphs 0..300ms\n api cudaMalloc 0..{at}\n alloc {at} {} at 7", mib * MIB)
    };
    let jump = found(&HiddenMemory, &taken("101ms", 600));
    assert_eq!(
        jump[0].title,
        "GPU 0: 600 MiB outside PyTorch taken in one step after the first: cudaMalloc in warm_graphs"
    );
    let level = found(&HiddenMemory, &taken("1ms", 600));
    assert_eq!(
        level[0].title,
        "GPU 0: 600 MiB of the 700 MiB that the process takes is outside PyTorch: cudaMalloc in warm_graphs"
    );
    assert_eq!((jump[0].severity, level[0].severity), (Severity::Low, Severity::Info));
    silent(&HiddenMemory, &taken("101ms", 200));
    silent(&HiddenMemory, &taken("1ms", 200));
}

#[test]
fn what_comes_and_goes_is_a_spike() {
    let spike = format!(
        "{STEPS} end\n repeat 3 every 50ms\n api cudaMallocAsync 101ms..102ms\n alloc 102ms {} at 7 pool\n free 104ms 0 at 7\n end",
        600 * MIB
    );
    let found = found(&HiddenMemory, &spike);
    assert_eq!(found[0].title, "GPU 0: 600 MiB outside PyTorch comes and goes in 3 steps: cudaMallocAsync");
    silent(&HiddenMemory, &spike.replace(&(600 * MIB).to_string(), &(100 * MIB).to_string()));
}

#[test]
fn growth_by_no_recorded_call_is_found_by_the_drivers_count() {
    let drift = found(&HiddenMemory, &format!("{STEPS} end\n {}", counted(|step| 600 + 20 * step)));
    assert_eq!(drift[0].title, "GPU 0 memory grows by 20.0 MiB a step by no recorded call: 620 MiB");
    let jump = found(&HiddenMemory, &format!("{STEPS} end\n {}", counted(|step| if step < 20 { 600 } else { 900 })));
    assert_eq!(jump[0].title, "GPU 0: 300 MiB taken after the first step by no recorded call");
    silent(&HiddenMemory, &format!("{STEPS} end\n {}", counted(|step| if step < 20 { 600 } else { 640 })));
}

#[test]
fn a_large_context_and_other_processes_are_facts() {
    let large = found(&HiddenMemory, &format!("{STEPS} end\n {}", counted(|_| 2400)));
    assert_eq!(large[0].title, "GPU 0: the CUDA context and libraries take 2.25 GiB before any allocation");
    let device =
        readings("host gpu_memory_used_bytes", |_| 3600) + &readings("process gpu_process_memory_bytes", |_| 600);
    let theirs = found(&HiddenMemory, &format!("{STEPS} end\n {device}"));
    assert_eq!(theirs[0].title, "GPU 0: 2.93 GiB of 3.52 GiB in use is held by other processes");
}

#[test]
fn abstains_without_calls_and_is_silent_without_a_gpu() {
    silent(&HiddenMemory, "track main\n step request 0..40ms");
    abstains(&HiddenMemory, "track main\n step request 0..40ms\n stream 7\n kernel gemm 1ms..2ms", "not recorded");
}
