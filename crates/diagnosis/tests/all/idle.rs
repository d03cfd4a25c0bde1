//! Why devices were idle, on small timelines: each cause where it belongs, and always the whole of the time.

use analysis::{Cause, DeviceIdle};
use diagnosis::{Diagnosis, Options, diagnose};
use timeline::Timeline;

fn of(text: &str) -> Diagnosis {
    let timeline = Timeline::from_text(text).unwrap();
    diagnose(&timeline, &Options::default())
}

#[track_caller]
fn device(text: &str) -> DeviceIdle {
    let diagnosis = of(text);
    for device in &diagnosis.idle {
        let idle: u64 = device.causes.iter().map(|one| one.ns).sum();
        assert_eq!(device.busy_ns + idle, device.window_ns, "everything adds up");
        assert!(device.causes.iter().all(|one| one.top_ns <= one.ns && one.ns > 0));
    }
    diagnosis.idle.into_iter().next().expect("a device")
}

#[track_caller]
fn causes(text: &str) -> Vec<(Cause, u64)> {
    device(text).causes.iter().map(|one| (one.cause, one.ns / 1_000)).collect()
}

/// Preprocessing before the first kernel is idle time of the device, and has a line.
#[test]
fn a_step_is_accounted_for_from_its_first_host_work_on() {
    let device = device(
        "track main
         repeat 10 every 100ms
           step request 0..90ms
           samples 0..60ms every 5ms active gil main>preprocess@vision.py:44
           api cudaLaunchKernel 60ms..60.1ms
           stream 7
           kernel gemm 60.2ms..80ms
           api cudaStreamSynchronize 60.1ms..80.5ms
           samples 60ms..80ms every 5ms active gil main>forward@model.py:7
           samples 80ms..90ms every 5ms active gil main>postprocess@vision.py:80
         end",
    );
    assert_eq!((device.window_ns, device.busy_ns), (900_000_000, 198_000_000));
    let python = &device.causes[0];
    assert_eq!((python.cause, python.top.as_ref().unwrap().line), (Cause::Python, Some(44)));
    // The sample at 60 ms is inside the launch call: the one before it stands for the time up to the call.
    assert_eq!((python.ns, device.ns(Cause::Launch), device.ns(Cause::Sync)), (695_000_000, 2_000_000, 5_000_000));
    assert_eq!(device.ns(Cause::Unknown), 0);
}

#[test]
fn recorded_calls_and_pauses_have_their_time_exactly() {
    let text = "track main
         step request 0..1000us
         api cudaLaunchKernel 0..10us corr 1
         stream 7
         kernel first 15us..100us
         api cudaStreamSynchronize 20us..110us
         api cudaMalloc 120us..220us
         gc 2 230us..330us
         api cuModuleLoadData 340us..440us
         overhead BUFFER_FLUSH 450us..460us
         api cudaMemcpyAsync 500us..600us corr 9
         copy h2d 590us..650us 4096 pageable
         api cudaLaunchKernel 655us..660us corr 10
         kernel second 670us..900us
         api ncclGroupEnd 910us..1000us";
    assert_eq!(
        causes(text),
        [
            (Cause::Allocator, 100),
            (Cause::Gc, 100),
            (Cause::Compile, 100),
            (Cause::Unknown, 95),
            (Cause::Copy, 90),
            (Cause::Communication, 90),
            (Cause::Launch, 30),
            (Cause::Sync, 10),
            (Cause::Overhead, 10),
        ]
    );
    let named = device(text).causes.into_iter().find(|one| one.cause == Cause::Allocator).unwrap();
    assert_eq!(named.top.unwrap().api.as_deref(), Some("cudaMalloc"));
}

/// Without samples and calls nothing is guessed.
#[test]
fn what_nobody_saw_is_unknown() {
    assert_eq!(causes("track main\n step r 0..1ms\n stream 7\n kernel k 100us..350us corr 0"), [(Cause::Unknown, 750)]);
    // A sample stands for two periods to either side: 20 ms here.
    let text = "rate 100\n track main\n step r 0..100ms\n sample 50ms active gil work:3\n stream 7\n kernel k 99ms..100ms corr 0";
    assert_eq!(causes(text), [(Cause::Unknown, 59_000), (Cause::Python, 40_000)]);
}

#[test]
fn recorded_functions_tell_where_there_are_no_samples() {
    let text = "track main
        step r 0..1ms
        call forward@model.py:3 0..600us
        ccall aten::mm 100us..200us
        call _compile@torch/_dynamo/convert_frame.py:9 300us..400us
        call lower@torch/_inductor/lowering.py:9 310us..390us
        api cudaLaunchKernel 600us..610us
        stream 7
        kernel k 610us..1ms";
    assert_eq!(causes(text), [(Cause::Python, 400), (Cause::Native, 100), (Cause::Compile, 100), (Cause::Launch, 10)]);
}

/// A thread that launches waits for a queue: what the step's own thread does meanwhile is the reason.
#[test]
fn a_worker_without_work_hands_the_question_to_the_step() {
    let text = "track main
        repeat 10 every 20ms
          step request 0..20ms
          samples 0..10ms every 1ms active gil main>tokenise:5
          samples 10ms..20ms every 1ms main>result@/usr/lib/python3.12/concurrent/futures/_base.py:9
        end
        track worker
        repeat 10 every 20ms
          samples 0..10ms every 1ms loop>get@/usr/lib/python3.12/queue.py:171
          samples 10ms..20ms every 1ms active loop>forward:7
          api cudaLaunchKernel 11ms..11.1ms
          stream 7
          kernel gemm 11.1ms..20ms
        end";
    let device = device(text);
    let top = &device.causes[0];
    assert_eq!((top.cause, top.top.as_ref().unwrap().line), (Cause::Python, Some(5)));
    assert!(device.share(Cause::Python) > 0.47 && device.share(Cause::Waiting) < 0.01, "{:?}", device.causes);
}

#[test]
fn an_event_loop_without_a_request_is_no_fault_of_the_code() {
    let base = "/usr/lib/python3.12/asyncio/base_events.py";
    let idle = format!("run_forever@{base}:600>_run_once@{base}:1900>select@/usr/lib/python3.12/selectors.py:468");
    let text = format!(
        "track main\n repeat 10 every 100ms\n samples 0..80ms every 5ms {idle}\n samples 80ms..100ms every 5ms active gil main>serve:3
         api cudaLaunchKernel 82ms..82.1ms\n stream 7\n kernel gemm 82.1ms..100ms\n end"
    );
    let device = device(&text);
    assert_eq!(device.causes[0].cause, Cause::NoRequest);
    assert!(device.share(Cause::NoRequest) > 0.7, "{:?}", device.causes);
}

#[test]
fn time_without_a_core_is_taken_out_of_time_that_seems_to_run() {
    let text = "track main
        repeat 10 every 100ms
          step r 0..100ms
          samples 0..100ms every 10ms active gil main>prepare:5
          api cudaLaunchKernel 50ms..50.01ms
          stream 7
          kernel gemm 50.01ms..100ms
        end
        counter runqueue_wait_ns 0..1s every 100ms grows 20ms";
    let device = device(text);
    assert!((device.share(Cause::Descheduled) - 0.10).abs() < 0.002, "{:?}", device.causes);
    assert!((device.share(Cause::Python) - 0.40).abs() < 0.002, "{:?}", device.causes);
}

/// Work that was launched long before and starts at once when the stream is free: that is the device's own pace.
#[test]
fn gaps_between_queued_kernels_are_the_launch_path() {
    let text = "track main
        step r 0..1ms
        api cudaLaunchKernel 0..1us corr 1
        api cudaLaunchKernel 1us..2us corr 2
        stream 7
        kernel a 10us..500us corr 1
        kernel b 502us..1000us corr 2
        samples 0..1ms every 100us active gil main>work:5";
    assert_eq!(causes(text), [(Cause::Launch, 12)]);
}

/// The launch returned long ago and the device has nothing else to do: what holds the work back was not recorded. Also not for a
/// collective, which waits for its peers while it runs.
#[test]
fn queued_work_that_does_not_start_is_not_put_on_the_launch() {
    let text = "track main
        step r 0..600ms
        api cudaLaunchKernel 0..5us corr 1
        stream 7
        kernel resolve 500ms..600ms corr 1
        api cudaMemcpyAsync 10us..590ms corr 9";
    assert_eq!(causes(text), [(Cause::Unknown, 499_995), (Cause::Launch, 5)]);
    let collective = text.replace("kernel resolve", "kernel ncclDevKernel_AllReduce");
    assert_eq!(causes(&collective), [(Cause::Unknown, 499_995), (Cause::Launch, 5)]);
}

#[test]
fn several_devices_and_a_process_without_work() {
    let text = "track main
        step r 0..1ms
        api cudaLaunchKernel 0..10us
        stream 7 device 0
        kernel a 10us..500us
        api cudaLaunchKernel 20us..30us
        stream 7 device 1
        kernel b 30us..800us";
    let diagnosis = of(text);
    let busy: Vec<_> = diagnosis.idle.iter().map(|one| (one.ordinal, one.busy_ns)).collect();
    assert_eq!(busy, [(0, 490_000), (1, 770_000)]);
    assert!(of("track main\n step r 0..1ms").idle.is_empty());
}

/// As many devices, with the same busy time, as the metrics have.
#[test]
fn busy_time_is_that_of_the_metrics() {
    let text = "track main\n repeat 5 every 2ms\n step r 0..1ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel a 10us..1500us
        stream 8\n copy d2h 900us..1700us 10 pinned\n end";
    let diagnosis = of(text);
    let metrics = diagnosis.gpu.unwrap();
    let both = |one: &DeviceIdle| (one.window_ns, one.busy_ns);
    assert_eq!(
        diagnosis.idle.iter().map(both).collect::<Vec<_>>(),
        metrics.devices.iter().map(|one| (one.window_ns, one.busy_ns)).collect::<Vec<_>>()
    );
}

/// Nodes of a graph that were not recorded leave holes: the graph was launched, so they are not the host's, whatever that does.
#[test]
fn a_hole_behind_a_launch_that_has_returned_is_not_the_hosts() {
    let text = "track main
         step request 0..9990us
         api cudaGraphLaunch 0..20us
         stream 7
         memset 30us..40us 64
         memset 4040us..4050us 64
         kernel last 4055us..5000us
         api cudaMemcpyAsync 50us..9990us
         copy d2h 9980us..9985us 4 pageable";
    let device = device(text);
    let unknown = device.causes.iter().find(|one| one.cause == Cause::Unknown).unwrap();
    assert_eq!((unknown.ns, device.held_ns()), (4_000_000, 4_000_000));
    assert_eq!(unknown.top.as_ref().unwrap().api.as_deref(), Some("cudaGraphLaunch"));
}

/// What was launched before the recording waits for nothing that the host does in it.
#[test]
fn work_from_before_the_recording_does_not_wait_for_the_host() {
    let text = "track main
         step request 0..10ms
         stream 7
         kernel old 0..1ms corr 0
         kernel older 5ms..6ms corr 0
         kernel next 6020us..7ms corr 0
         api cudaMemcpyAsync 100us..9ms
         copy d2h 8ms..8900us 4 pageable
         api cudaLaunchKernel 9ms..9010us
         kernel mine 9015us..10ms";
    let device = device(text);
    assert_eq!(device.held_ns(), 4_000_000);
    assert_eq!(device.ns(Cause::Launch), 20_000 + 15_000);
}

/// The first call of a process makes its context, for seconds: that is not launching.
#[test]
fn a_long_call_that_launches_nothing_is_no_launch() {
    let text = "track main
         step request 0..3100ms
         ccall aten::empty_strided 0..3s
         api cudaDeviceGetStreamPriorityRange 1us..3s
         api cudaLaunchKernel 3s..3000010us
         stream 7
         kernel k 3000010us..3100ms";
    let device = device(text);
    assert_eq!(device.causes[0].cause, Cause::Native);
    let diagnosis = of(text);
    assert_eq!(diagnosis.breakdown.parts[0].label, "cudaDeviceGetStreamPriorityRange");
    assert_eq!(diagnosis.bottleneck.kind.name(), "cpu_bound");
    assert!(diagnosis.answer[1].contains("mostly in cudaDeviceGetStreamPriorityRange"), "{:?}", diagnosis.answer);
}

/// Without steps, what the host does before the device's first work is start-up, and not between two works.
#[test]
fn start_up_is_not_between_the_kernels() {
    let text = "track main
         ccall load_weights 0..900ms
         api cudaLaunchKernel 900ms..900010us
         stream 7
         kernel k 900010us..950ms
         ccall think 950ms..960ms
         api cudaLaunchKernel 960ms..960010us
         kernel k 960010us..1s";
    let found = of(text).findings;
    assert!(!found.iter().any(|one| one.code == "host-wait"), "{found:?}");
    let between = text.replace("0..900ms", "0..1ms").replace("ccall think 950ms..960ms", "ccall think 950ms..9s");
    let between = between.replace("960ms..960010us", "9s..9000010us").replace("960010us..1s", "9000010us..9100ms");
    assert!(of(&between).findings.iter().any(|one| one.code == "host-wait"));
}

/// The picture of the step shows what the thread does that it waits for, as the breakdown does.
#[test]
fn the_waterfall_follows_a_step_to_the_thread_it_waits_for() {
    let mut text = String::from(
        "track main\n step r 0..100ms\n ccall aten::linear 0..10ms\n api cudaLaunchKernel 9ms..9.01ms\n stream 7\n kernel k 9.1ms..95ms\n ccall aten::item 50ms..100ms\n track autograd\n",
    );
    (0..40).for_each(|at| text += &format!(" ccall aten::mm {}ms..{}ms\n", 10 + at, 11 + at));
    let waterfall = of(&text).waterfall.expect("a step");
    let host: Vec<(&str, u64)> =
        waterfall.lanes[0].totals.iter().map(|one| (one.class.code(), one.ns / 1_000)).collect();
    assert_eq!(host, [("host_native", 99_990), ("launch_path", 10)]);
}
