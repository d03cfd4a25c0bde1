//! What is said of devices, on small timelines: busy time, kernels, copies, calls, launches, ranges, steps, overhead.

use analysis::device::gpu::{Overhead, OverheadBy};
use analysis::{GpuMetrics, StepSource};
use diagnosis::wording;
use diagnosis::{BottleneckKind, Diagnosis, Options, diagnose};
use timeline::Timeline;

fn of(text: &str) -> (Timeline, Diagnosis) {
    let timeline = Timeline::from_text(text).unwrap();
    let diagnosis = diagnose(&timeline, &Options::default());
    (timeline, diagnosis)
}

fn gpu(text: &str) -> (Timeline, GpuMetrics) {
    let (timeline, diagnosis) = of(text);
    (timeline, diagnosis.gpu.expect("device work"))
}

/// Two streams that overlap, a copy half under a kernel, a wait that keeps nothing busy.
const RUN: &str = "
    device 0 NVIDIA_H200
    end 1ms
    track main
    step request 0..500us
    api cudaLaunchKernel 10us..14us
    stream 7
    kernel gemm 20us..120us grid 8 block 128
    api cudaLaunchKernel 20us..26us
    stream 8
    kernel gemm 100us..150us grid 8 block 128
    api cudaMemcpyAsync 30us..31us
    stream 9
    copy d2h 140us..160us 1000000 pinned
    api cudaLaunchKernel 40us..42us
    stream 7
    kernel norm 600us..610us grid 2 block 64
    api cudaStreamSynchronize 50us..400us
    sync stream 50us..400us";

fn how(overhead: &Overhead) -> String {
    wording::device::overhead(overhead.how)
}

#[test]
fn busy_is_a_union_inside_the_steps() {
    let (_, metrics) = gpu(RUN);
    let [device] = &metrics.devices[..] else { panic!("{:?}", metrics.devices) };
    assert_eq!((&*device.name, device.ordinal, device.kernels), ("NVIDIA H200", 0, 3));
    assert_eq!((device.window_ns, device.busy_ns, device.kernel_ns), (500_000, 140_000, 130_000));
    assert_eq!((device.copy_ns, device.exposed_copy_ns), (20_000, 10_000));
    assert_eq!((device.span_ns, device.leading_gap_ns, device.trailing_gap_ns), (590_000, 20_000, 390_000));
    assert_eq!(device.per_step_busy, [0.28]);
}

#[test]
fn without_steps_the_window_is_the_recording() {
    let (_, metrics) = gpu("end 1ms\n track main\n api cudaLaunchKernel 0..1us\n stream 7\n kernel k 100us..350us");
    assert_eq!((metrics.devices[0].window_ns, metrics.devices[0].busy_ns), (1_000_000, 250_000));
    assert!(metrics.devices[0].per_step_busy.is_empty() && metrics.steps.is_empty());
}

#[test]
fn kernels_copies_and_calls_by_name() {
    let (timeline, metrics) = gpu(RUN);
    let text = |name| timeline.names.text(name);
    let gemm = &metrics.kernels[0];
    assert_eq!(
        (text(gemm.name), gemm.count, gemm.total_ns, gemm.mean_ns, gemm.p95_ns),
        ("gemm", 2, 150_000, 75_000, 100_000)
    );
    assert!((gemm.share - 150.0 / 160.0).abs() < 1e-9);
    assert_eq!(gemm.shape.unwrap().grid, [8, 1, 1]);
    let copy = &metrics.copies[0];
    assert_eq!(
        (&*copy.label, copy.count, copy.bytes, copy.exposed_ns),
        ("device → host, pinned", 1, 1_000_000, 10_000)
    );
    assert!((copy.gb_per_s - 50.0).abs() < 1e-9);
    let apis: Vec<_> = metrics.apis.iter().map(|api| (text(api.name), api.count, api.total_ns)).collect();
    assert_eq!(
        apis,
        [("cudaStreamSynchronize", 1, 350_000), ("cudaLaunchKernel", 3, 12_000), ("cudaMemcpyAsync", 1, 1_000)]
    );
}

#[test]
fn launches_run_ahead_of_the_device() {
    let launch = gpu(RUN).1.launch.unwrap();
    assert_eq!((launch.latency_p50_ns, launch.latency_p95_ns, launch.call_p50_ns), (80_000, 560_000, 4_000));
    assert_eq!((launch.max_depth, launch.depth.peak.value), (4, 4.0));
    assert!(launch.depth.buckets.len() <= 241);
    let latency = launch.latency.unwrap();
    assert_eq!(
        (latency.buckets.len(), latency.peak.value, latency.peak.at),
        (launch.depth.buckets.len(), 560_000.0, 40_000)
    );
    // The bucket of each of the three launches, and no others.
    let held: Vec<_> = latency.held(0).collect();
    assert_eq!(held.iter().map(|point| point.1).collect::<Vec<_>>(), [10_000.0, 80_000.0, 560_000.0]);
    assert!(
        held.iter().zip([10_000, 20_000, 40_000]).all(|(point, at)| point.0 <= at && at < point.0 + latency.bucket_ns)
    );
    let (_, unlinked) = gpu("track main\n step r 0..1ms\n stream 7\n kernel k 0..1us corr 0");
    assert!(unlinked.launch.is_none() && unlinked.before_window == 0);
}

#[test]
fn a_graph_is_launched_when_the_first_of_its_nodes_starts_in_whatever_stream() {
    let (_, metrics) = gpu("track main
         repeat 40 every 2ms
         api cudaGraphLaunch 10us..20us
         stream 7
         kernel a 30us..900us graph 5 node 1
         kernel c 1010us..1100us graph 5 node 3
         stream 13
         kernel b 910us..1000us graph 5 node 2
         stream 3
         memset 25us..26us 4096
         end");
    let launch = metrics.launch.unwrap();
    assert_eq!((launch.latency_p50_ns, launch.latency_p95_ns), (15_000, 15_000));
}

#[test]
fn copies_alone_have_a_depth_but_no_launch_latency() {
    let (_, metrics) = gpu("track main\n api cudaMemcpyAsync 0..1us\n stream 7\n copy h2d 5us..9us 1000 pinned");
    let launch = metrics.launch.unwrap();
    assert!(launch.latency.is_none() && launch.max_depth == 1);
}

#[test]
fn the_line_that_launches_is_the_one_seen_at_the_launch() {
    let (timeline, metrics) = gpu("track main
         repeat 20 every 1ms
         api cudaLaunchKernel 100us..200us
         stream 7
         kernel gemm 210us..220us
         sample 150us active gil main:3>forward@model.py:40>linear@/usr/lib/python3.12/site-packages/torch/nn.py:7
         api cudaLaunchKernel 500us..510us
         kernel norm 520us..530us
         sample 450us active gil main:3>normalise@model.py:50
         sample 900us active gil main:3>sampling:90
         end");
    let places: Vec<_> = metrics
        .kernels
        .iter()
        .map(|row| (timeline.names.text(row.name), row.place.as_ref().map(analysis::phrase::place).unwrap_or_default()))
        .collect();
    assert_eq!(places, [("gemm", "forward (model.py:40)".to_owned()), ("norm", "normalise (model.py:50)".to_owned())]);
}

#[test]
fn ranges_and_steps_have_the_work_launched_inside_them_also_by_other_threads() {
    let (timeline, metrics) = gpu("track main
         step request 0..1ms
         nvtx forward 0..400us
         scope attention 100us..200us
         api cudaLaunchKernel 150us..151us corr 1
         api cudaLaunchKernel 300us..301us corr 2
         step request 2ms..3ms
         scope decode 2400us..2900us
         track worker
         api cudaLaunchKernel 2500us..2501us corr 3
         api cudaLaunchKernel 5ms..5001us corr 4
         stream 7
         kernel a 200us..300us corr 1
         kernel b 310us..330us corr 2
         kernel c 2600us..3500us corr 3
         kernel d 5500us..5600us corr 4");
    let steps: Vec<_> = metrics.steps.iter().map(|step| (step.step, step.kernels, step.last_end / 1000)).collect();
    assert_eq!(steps, [(0, 2, 330), (1, 1, 3500)], "a thread without a step works for the only one that is open");
    assert_eq!(
        ranges(&timeline, &metrics),
        [("request", 3, 1020), ("decode", 1, 900), ("forward", 2, 120), ("attention", 1, 100)]
    );
}

fn ranges<'a>(timeline: &'a Timeline, metrics: &GpuMetrics) -> Vec<(&'a str, u64, u64)> {
    metrics.ranges.iter().map(|row| (timeline.names.text(row.name), row.kernels, row.total_ns / 1000)).collect()
}

#[test]
fn work_of_a_thread_with_nothing_open_is_nobodys_where_two_threads_have_something_open() {
    let (timeline, metrics) = gpu("track main
         scope left 0..900us
         track second
         scope right 500us..900us
         track worker
         api cudaLaunchKernel 100us..101us corr 1
         api cudaLaunchKernel 600us..601us corr 2
         nvtx own 700us..800us
         api cudaLaunchKernel 710us..711us corr 3
         stream 7
         kernel a 200us..300us corr 1
         kernel b 610us..630us corr 2
         kernel c 720us..730us corr 3
         process other
         track main
         scope elsewhere 0..1ms");
    assert_eq!(ranges(&timeline, &metrics), [("left", 1, 100), ("own", 1, 10)]);
}

#[test]
fn steps_come_from_nvtx_where_nobody_marks_them() {
    let text = "track main\n repeat 10 every 1ms\n nvtx iteration 0..800us\n nvtx forward 100us..500us\n nvtx hit 50us..50us\n end";
    let (_, diagnosis) = of(text);
    assert_eq!(
        (diagnosis.steps.source, &*diagnosis.steps.name, diagnosis.steps.count()),
        (StepSource::Nvtx, "iteration", 10)
    );
    assert_eq!(diagnosis.breakdown.phases[0].name, "forward");
    let (_, marked) = of(&format!("{text}\n step request 20ms..21ms"));
    assert_eq!(marked.steps.source, StepSource::Step);
    let timeline = Timeline::from_text(text).unwrap();
    let asked = diagnose(&timeline, &Options { step: Some("forward".into()), ..Options::default() });
    assert_eq!((asked.steps.source, asked.steps.count()), (StepSource::Nvtx, 10));
}

/// The thread spins in the wait, so every sample says that it runs.
const BOUND: &str = "
    clock residual 1us
    track main
    repeat 40 every 50ms
      step request 0..40ms
      api cudaLaunchKernel 6ms..7ms
      stream 7
      kernel gemm 8ms..38ms
      api cudaStreamSynchronize 8ms..38ms
      sync stream 8ms..38ms
      samples 1ms..8ms every 1ms active gil main>tokenise:5
      samples 8ms..40ms every 1ms active main>generate:12
    end";

#[test]
fn a_wait_for_the_device_is_in_the_breakdown_and_in_the_answer() {
    let (_, diagnosis) = of(BOUND);
    let waits = diagnosis.breakdown.functions().into_iter().find(|part| part.kind == analysis::PartKind::Gpu).unwrap();
    assert_eq!((&*waits.label, waits.line, waits.ns), ("generate", 12, 30_000_000));
    assert!(diagnosis.answer[0].contains("75 % of it waits for the GPU"), "{:?}", diagnosis.answer);
    // The cause is that the device waits for the host's first launch, so the word is not that the device is the limit.
    assert!(diagnosis.bottleneck.primary_cause.contains("before first kernel"), "{:?}", diagnosis.bottleneck);
    assert_eq!(diagnosis.bottleneck.kind, BottleneckKind::Cpu);
    let (_, without) = of(&BOUND.lines().filter(|line| !line.contains("samples")).collect::<Vec<_>>().join("\n"));
    assert!(without.answer[0].contains("75 % of it waits for the GPU"), "{:?}", without.answer);
    assert_eq!(without.bottleneck.kind, BottleneckKind::Gpu);
    // The device sets the pace: what it does is the answer, not the call that waits for it.
    assert_eq!(without.answer[1], "One kernel takes 75 % of the step: gemm.");
    assert!(without.findings.iter().any(|finding| finding.title.contains("in cudaStreamSynchronize")));
}

#[test]
fn no_change_of_the_host_gains_more_than_the_time_in_which_the_device_is_idle() {
    let (_, diagnosis) = of(&BOUND.replace("kernel gemm 8ms..38ms", "kernel gemm 1ms..37ms"));
    let hot = diagnosis.findings.iter().find(|finding| finding.code == "hot-line").unwrap();
    let gain = hot.gain.unwrap();
    assert!((gain.high - 10.0).abs() < 1e-6 && gain.mid <= gain.high, "{gain:?}");
    assert!(hot.evidence.iter().any(|one| one.text.starts_with("GPU busy 90 %")), "{:?}", hot.evidence);
}

/// Steps with and without the GPU recorded, as a budget does it, and what the collectors say of themselves.
fn windows(recorded: &str, unrecorded: &str) -> String {
    format!(
        "collector launches on own 2ms
        track main
        repeat 2 every 1s
          repeat 20 every 10ms\n step r 1ms..{recorded}\n api cudaLaunchKernel 1010us..1020us\n stream 7\n kernel k 1030us..1040us\n end
          repeat 60 every 10ms\n step r 201ms..{unrecorded}\n end
        end
        track inferscope-gpu
        repeat 2 every 1s\n window on 0\n window off 200ms\n end"
    )
}

#[test]
fn overhead_is_the_steps_inside_the_windows_against_those_outside() {
    let overhead = gpu(&windows("2100us", "202ms")).1.overhead.unwrap();
    assert!((overhead.percent.unwrap() - 2.5).abs() < 1e-6, "{overhead:?}");
    assert_eq!(overhead.how.by(), Some(OverheadBy::Steps));
    assert!(how(&overhead).contains("40 steps with GPU recording take 10 % longer than 120 without"), "{overhead:?}");
    // What a program pays that takes twice as long where it is recorded.
    let (_, diagnosis) = of(&windows("3ms", "202ms"));
    let said = diagnosis.health.iter().find(|line| line.label() == "overhead").unwrap();
    assert!(said.text.starts_with("25 %: mean over all steps") && said.text.contains("100 % longer"), "{said:?}");
    let faster = gpu(&windows("2ms", "203ms")).1.overhead.unwrap();
    assert!(faster.percent == Some(0.0) && how(&faster).contains("take no longer than"), "{faster:?}");
}

#[test]
fn a_step_without_device_work_is_no_unrecorded_one() {
    let unmarked: String = windows("2100us", "202ms")
        .lines()
        .filter(|line| !line.trim().starts_with("window"))
        .map(|line| format!("{line}\n"))
        .collect();
    let overhead = gpu(&unmarked).1.overhead.unwrap();
    assert_eq!(overhead.how.by(), Some(OverheadBy::OwnTime), "{overhead:?}");
    assert!(overhead.percent.unwrap() < 0.5, "{overhead:?}");
}

#[test]
fn where_steps_are_too_few_the_collector_says_what_its_windows_cost() {
    let overhead = gpu(&format!("collector gpu on windows 40 7.5\n{RUN}")).1.overhead.unwrap();
    assert_eq!(overhead.how.by(), Some(OverheadBy::Windows));
    assert!((overhead.percent.unwrap() - 3.0).abs() < 1e-9, "{overhead:?}");
    assert!(how(&overhead).contains("slowing the program by 7.5 %"), "{overhead:?}");
    assert!(gpu(&format!("collector gpu on\n{RUN}")).1.overhead.is_none());
}

#[test]
fn without_windows_overhead_is_what_the_collectors_measured_of_themselves() {
    let plain =
        "collector launches on own 2ms\n end 1s\n track main\n step r 0..1s\n api cudaLaunchKernel 0..1us\n stream 7
        kernel k 2us..3us\n api cudaStreamSynchronize 2us..4us\n sync stream 2us..4us\n overhead flush 5us..8us";
    let overhead = gpu(plain).1.overhead.unwrap();
    assert_eq!((overhead.own_ns, overhead.launches, overhead.cupti_ns), (2_000_000, 1, 3_000), "a wait is no launch");
    assert!((overhead.percent.unwrap() - 0.2).abs() < 1e-9);
    assert!(gpu(RUN).1.overhead.is_none());
}
