//! The word and the first finding for small programs with one thing wrong with each, and for some with nothing wrong.

use diagnosis::{BottleneckKind, Diagnosis, Options, diagnose};
use timeline::Timeline;

fn of(text: &str) -> Diagnosis {
    let timeline = Timeline::from_text(text).unwrap();
    diagnose(&timeline, &Options::default())
}

/// Layers of seven kernels of so many microseconds, launched every 10 µs, with anything after each launch.
fn decode(kernel_us: u64, after_each: impl Fn(u64, u64) -> String) -> String {
    let mut text = String::from("track main\n repeat 30 every 3ms\n step token 0..2ms\n stream 7\n");
    let mut free = 0;
    for number in 0..200 {
        let at = number * 10;
        let start = free.max(at + 5);
        free = start + kernel_us;
        text += &format!("api cudaLaunchKernel {at}us..{}us\n kernel op{} {start}us..{free}us\n", at + 4, number % 7);
        text += &after_each(at, free);
    }
    text + "samples 0..2ms every 100us active gil main>decode@engine.py:9\n end"
}

#[track_caller]
fn first(diagnosis: &Diagnosis) -> (&str, BottleneckKind) {
    (diagnosis.findings.first().map_or("", |finding| finding.code.as_str()), diagnosis.bottleneck.kind)
}

#[test]
fn small_kernels_one_by_one_are_launch_bound() {
    let diagnosis = of(&decode(3, |_, _| String::new()));
    assert_eq!(first(&diagnosis), ("launch-bound", BottleneckKind::Launch));
    assert!(diagnosis.answer[1].contains("but are launched every"), "{:?}", diagnosis.answer);
    assert!(diagnosis.answer[2].contains("CUDA graph"), "{:?}", diagnosis.answer);
}

/// A value is read after each forward pass of half a millisecond; the next one takes a fifth of that to launch.
#[test]
fn reading_a_value_in_the_loop_is_sync_bound() {
    let mut text = String::from("track main\n repeat 30 every 30ms\n step token 0..20ms\n stream 7\n");
    for pass in 0..20 {
        let at = pass * 1000;
        let us = |offset: u64| format!("{}us", at + offset);
        text += &format!("api cudaLaunchKernel {}..{}\n kernel forward {}..{}\n", us(400), us(404), us(405), us(805));
        text +=
            &format!("api cudaMemcpyAsync {}..{}\n copy d2h {}..{} 8 pageable\n", us(410), us(420), us(806), us(808));
        text += &format!("api cudaStreamSynchronize {}..{}\n", us(421), us(812));
    }
    text += "samples 50us..20ms every 100us active gil main>decode@engine.py:41\n end";
    let diagnosis = of(&text);
    assert_eq!(first(&diagnosis), ("implicit-sync", BottleneckKind::Sync));
    assert_eq!(diagnosis.findings[0].place.line, Some(41));
}

#[test]
fn preparing_before_the_first_kernel_is_cpu_bound() {
    let diagnosis = of("track main
        repeat 20 every 400ms
          step request 0..370ms
          samples 0..218ms every 5ms active gil main>serve>preprocess@vision.py:44
          samples 220ms..370ms every 5ms active gil main>serve>forward@model.py:3
          api cudaLaunchKernel 218ms..218.1ms
          stream 7
          kernel forward 218.2ms..369ms
          api cudaStreamSynchronize 219ms..369ms
        end");
    assert_eq!(first(&diagnosis), ("preprocess-before-first-kernel", BottleneckKind::Cpu));
    assert!(diagnosis.answer[1].contains("preprocess (vision.py:44)"), "{:?}", diagnosis.answer);
}

/// However busy the GPU is: where the cause is that it is idle after a wait, it is not bound by itself.
#[test]
fn a_gpu_that_is_busy_for_most_of_the_step_and_idle_after_each_wait_is_sync_bound() {
    let mut text = String::from("track main\n repeat 30 every 30ms\n step token 0..20ms\n stream 7\n");
    for pass in 0..20 {
        let us = |offset: u64| format!("{}us", pass * 1000 + offset);
        text += &format!("api cudaLaunchKernel {}..{}\n kernel forward {}..{}\n", us(200), us(204), us(205), us(980));
        text += &format!("api cudaDeviceSynchronize {}..{}\n", us(210), us(985));
    }
    text += "samples 50us..20ms every 100us active gil main>decode@engine.py:41\n end";
    let diagnosis = of(&text);
    assert_eq!(first(&diagnosis), ("sync-api", BottleneckKind::Sync));
    assert!(diagnosis.bottleneck.primary_cause.contains("GPU idle"), "{}", diagnosis.bottleneck.primary_cause);
}

/// A GPU that copies most of the time is at work, and not by its kernels.
#[test]
fn copies_that_no_kernel_hides_are_the_answer_where_they_take_most() {
    let diagnosis = of("track main
        repeat 20 every 12ms
          step request 0..10ms
          samples 0..10ms every 1ms active gil main>serve@engine.py:9
          api cudaMemcpyAsync 0..10us
          stream 7
          copy h2d 20us..8ms 216000000 pinned
          api cudaLaunchKernel 20us..30us
          kernel forward 8ms..9.9ms
          api cudaStreamSynchronize 40us..9.95ms
        end");
    assert_eq!(first(&diagnosis), ("copies-exposed", BottleneckKind::Memory));
    assert!(diagnosis.answer[1].contains("host → device, pinned"), "{:?}", diagnosis.answer);
}

/// A GPU that has work all the time is nobody's fault, whatever the host does meanwhile.
#[test]
fn a_busy_gpu_is_never_blamed_on_the_host() {
    let diagnosis = of(&decode(12, |_, _| String::new()));
    assert_eq!(diagnosis.bottleneck.kind, BottleneckKind::Gpu);
    let gains: Vec<_> = diagnosis.findings.iter().filter(|one| one.gain.is_some_and(|gain| gain.mid > 1.0)).collect();
    assert!(gains.is_empty(), "{gains:?}");
}

/// One wait at the end of each step, for its result, with the GPU busy until then.
#[test]
fn the_result_at_the_end_of_a_step_is_no_fault() {
    let diagnosis = of("track main
        repeat 30 every 10ms
          step token 0..10ms
          api cudaLaunchKernel 50us..60us
          stream 7
          kernel forward 70us..9.8ms
          api cudaMemcpyAsync 80us..90us
          copy d2h 9.8ms..9.81ms 8 pageable
          api cudaStreamSynchronize 91us..9.83ms
          samples 0..10ms every 1ms active gil main>decode@engine.py:9
        end");
    assert_eq!(diagnosis.bottleneck.kind, BottleneckKind::Gpu);
    assert!(diagnosis.findings.iter().all(|one| one.gain.is_none()), "{:?}", diagnosis.findings);
}

/// No rule about devices says anything, not even that it could not look, where there is none.
#[test]
fn a_host_without_a_device_is_not_told_of_one() {
    let diagnosis = of(
        "track main\n repeat 30 every 10ms\n step r 0..10ms\n samples 0..10ms every 1ms active gil main>work:5\n end",
    );
    let said = diagnosis.findings.iter().map(|one| one.title.as_str());
    let abstained = diagnosis.abstentions.iter().map(|one| one.reason.as_str());
    for text in said.chain(abstained).chain(diagnosis.answer.iter().map(String::as_str)) {
        assert!(!text.contains("GPU"), "{text}");
    }
    assert_eq!(diagnosis.bottleneck.kind, BottleneckKind::Cpu);
}

/// What of it could be saved is not known, but it is where the time goes: a small gain that is known comes after it.
#[test]
fn a_place_with_most_of_the_step_is_named_before_a_small_gain() {
    let collects = |until: &str| {
        of(&format!(
            "track main
            repeat 20 every 100ms
              step request 0..80ms
              samples 0..80ms every 2ms active gil serve>work:5
              gc 2 10ms..{until}
              samples 80ms..100ms every 2ms serve>wait@/usr/lib/python3.12/threading.py:3
            end"
        ))
    };
    let small = collects("14ms");
    assert!(small.findings[0].code == "hot-line" && small.findings[0].gain.is_none(), "{:?}", small.findings);
    assert!(small.findings[1].code == "gc-pauses" && small.findings[1].gain.is_some(), "{:?}", small.findings);
    assert!(small.answer[1].contains("% of the step (app.py:5)."), "{:?}", small.answer);
    assert!(small.answer[1].contains("Next: Garbage collection takes 5.0 % of the step"), "{:?}", small.answer);
    assert!(!small.answer[2].contains("gc.freeze"), "{:?}", small.answer);
    assert_eq!(small.bottleneck.kind, BottleneckKind::Cpu);
    assert!(small.bottleneck.primary_cause.starts_with("work takes"), "{:?}", small.bottleneck);
    let large = collects("60ms");
    assert!(large.answer[1].starts_with("Garbage collection takes 6"), "{:?}", large.answer);
}

/// The threads of a compiler work while the step's own thread waits for them: what it waits for is told by its rule.
#[test]
fn steps_that_wait_for_a_compiler_are_bound_by_it() {
    let compiler = "/usr/lib/python3.12/site-packages/jax/_src/compiler.py";
    let text = format!(
        "track main\n repeat 20 every 100ms\n step r 0..100ms\n \
         samples 0..90ms every 5ms main:3>encode@app.py:9>backend_compile@{compiler}:353\n \
         samples 90ms..100ms every 5ms active gil main:3>reply@app.py:2\n end"
    );
    assert_eq!(first(&of(&text)), ("compile-in-request", BottleneckKind::Cpu));
}

/// A callback that sleeps: two rules speak of its line, and one of them knows what that means.
#[test]
fn a_blocked_event_loop_is_sync_bound() {
    let asyncio = "/usr/lib/python3.12/asyncio";
    let on_loop = format!("main:3>run_forever@{asyncio}/base_events.py:600>_run@{asyncio}/events.py:80");
    let text = format!(
        "track main\n repeat 20 every 200ms\n step r 0..200ms\n samples 0..180ms every 10ms {on_loop}>look_up@app.py:30\n \
         samples 180ms..200ms every 10ms active gil {on_loop}>reply@app.py:40\n end"
    );
    assert_eq!(first(&of(&text)), ("waits-in-step", BottleneckKind::Sync));
}
