//! What `waits-in-step` says of small timelines.

use super::*;
use crate::testing::{abstains, found, silent};

#[test]
fn names_the_line_that_waits_and_for_what() {
    let found = found(&WaitsInStep, "
        track main
        repeat 40 every 50ms
          step request 0..40ms
          samples 1ms..31ms every 10ms serve>next_batch:131>get@/usr/lib/python3.12/queue.py:171>wait@/usr/lib/python3.12/threading.py:359
          sample 35ms active gil serve>work:5
        end");
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].title,
        "Blocked for 75 % of the step in next_batch (app.py:131), on a lock, queue or another thread"
    );
    assert!(found[0].actions.len() >= 2 && found[0].gain.unwrap().low > 60.0);
}

const GET: &str = "get@/usr/lib/python3.12/queue.py:171>wait@/usr/lib/python3.12/threading.py:359";
const READ: &str = "readinto@/usr/lib/python3.12/socket.py:707";

/// A step of 100 ms and what its samples, one every 10 ms, show.
fn steps(samples: &str) -> String {
    format!("track main\n repeat 40 every 100ms\n step request 0..100ms\n {samples}\n end")
}

/// A callback that sleeps keeps every other request waiting: first it leaves the loop.
#[test]
fn what_blocks_the_event_loop_is_sent_to_a_thread() {
    let of = |below: &str| {
        let found = found(
            &WaitsInStep,
            &steps(&format!(
                "samples 0..80ms every 10ms {below}handle:21>look_up:8\n samples 80ms..100ms every 10ms active gil {below}handle:22"
            )),
        );
        found[0].actions[0].text().to_owned()
    };
    let on_loop = of(
        "main:3>run_forever@/usr/lib/python3.12/asyncio/base_events.py:600>_run@/usr/lib/python3.12/asyncio/events.py:80>",
    );
    assert_eq!(on_loop, "Run it outside the loop: await asyncio.to_thread(look_up, ...).");
    assert!(of("main:3>").starts_with("Check what blocks in line 8"));
}

#[test]
fn a_function_that_waits_in_two_places_has_a_finding_for_each() {
    let found = found(
        &WaitsInStep,
        &steps(&format!(
            "samples 0..30ms every 10ms serve>handle:21>{READ}\n samples 30ms..80ms every 10ms serve>handle:14>{GET}\n \
             samples 80ms..100ms every 10ms active gil serve>work:5"
        )),
    );
    let titles: Vec<&str> = found.iter().map(|finding| &*finding.title).collect();
    assert_eq!(
        titles,
        [
            "Blocked for 50 % of the step in handle (app.py:14), on a lock, queue or another thread",
            "Blocked for 30 % of the step in handle (app.py:21), on a socket or pipe",
        ]
    );
    // Each gains its own, and says where the other is.
    let gains = found.iter().map(|finding| finding.gain.unwrap().mid.round()).collect::<Vec<_>>();
    assert_eq!(gains, [50.0, 30.0]);
    let both = "handle waits at 2 lines: 50 % at app.py:14, 30 % at app.py:21";
    assert!(found.iter().all(|finding| finding.evidence.iter().any(|one| one.text == both)), "{found:?}");
    let counts: Vec<f64> = found.iter().map(|finding| finding.evidence[0].numbers[0].1).collect();
    assert_eq!(counts, [200.0, 120.0]);
}

#[test]
fn a_short_wait_beside_a_long_one_is_not_added_to_it() {
    let found = found(
        &WaitsInStep,
        &steps(&format!(
            "samples 0..60ms every 10ms serve>handle:14>{GET}\n samples 60ms..61ms every 10ms serve>handle:21>{READ}\n \
             samples 70ms..100ms every 5ms active gil serve>work:5"
        )),
    );
    let titles: Vec<&str> = found.iter().map(|finding| &*finding.title).collect();
    assert_eq!(titles, ["Blocked for 46 % of the step in handle (app.py:14), on a lock, queue or another thread"]);
}

/// No line has a tenth, the function has: it is named with what each line has, and with no reason that is not that of all.
#[test]
fn many_short_waits_of_one_function_are_one_finding_that_names_each() {
    let waits = |other: &str| {
        steps(&format!(
            "sample 0ms serve>handle:14>{GET}\n sample 5ms serve>handle:16>{GET}\n sample 10ms serve>handle:18>{other}\n \
             samples 15ms..100ms every 5ms active gil serve>work:5"
        ))
    };
    let title = |text: &str| found(&WaitsInStep, text)[0].title.clone();
    assert_eq!(
        title(&waits(GET)),
        "Blocked for 15 % of the step in handle at 3 lines, on a lock, queue or another thread"
    );
    assert!(title(&waits(READ)).ends_with("in handle at 3 lines"), "{}", title(&waits(READ)));
    let each = "handle waits at 3 lines: 5.0 % at app.py:14, 5.0 % at app.py:16, 5.0 % at app.py:18";
    assert!(found(&WaitsInStep, &waits(GET))[0].evidence.iter().any(|one| one.text == each));
    // One line alone is too little for a finding.
    silent(&WaitsInStep, &steps("sample 0ms serve>handle:14\n samples 5ms..100ms every 5ms active gil serve>work:5"));
}

#[test]
fn where_another_thread_runs_meanwhile_it_is_named_and_only_the_rest_is_surely_gained() {
    let wait = "get@/usr/lib/python3.12/queue.py:171>wait@/usr/lib/python3.12/threading.py:359";
    let text = |busy: &str| {
        format!(
            "track main
             repeat 40 every 50ms
               step request 0..40ms
               samples 1ms..31ms every 10ms serve>next_batch:131>{wait}
               sample 35ms active gil serve>work:5
             end
             track worker
             repeat 40 every 50ms
               {busy}
             end"
        )
    };
    // In two of three waits it prepares, and in the third one it waits as well.
    let busy = format!("samples 2ms..22ms every 10ms active gil worker>prepare:43\n sample 22ms worker>{wait}");
    let found_busy = found(&WaitsInStep, &text(&busy));
    assert_eq!(
        found_busy[0].title,
        "Blocked for 75 % of the step in next_batch (app.py:131), while other threads run prepare (app.py:43)"
    );
    assert!(found_busy[0].actions[0].starts_with("Speed up prepare (app.py:43)"), "{:?}", found_busy[0].actions);
    let (gain, all) =
        (found_busy[0].gain.unwrap(), found(&WaitsInStep, &text("sample 22ms worker>idle:1"))[0].gain.unwrap());
    assert!(gain.high == all.high && all.low > 60.0, "{gain:?} {all:?}");
    assert!(gain.mid < 0.5 * all.mid && gain.mid > 0.2 * all.mid, "{gain:?} {all:?}");
}

#[test]
fn an_idle_event_loop_is_said_to_be_idle() {
    let base = "/usr/lib/python3.12/asyncio/base_events.py";
    let found = found(&WaitsInStep, &format!("
        track main
        step request 0..1s
        samples 0..1s every 10ms main>run_forever@{base}:600>_run_once@{base}:1900>select@/usr/lib/python3.12/selectors.py:468"));
    assert!(found[0].title.ends_with("awaiting something outside this thread (event loop idle)"), "{found:?}");
    let named = crate::testing::found(
        &WaitsInStep,
        &format!(
            "track main\n step request 0..1s\n scope database 100ms..990ms\n samples 0..1s every 10ms main>run_forever@{base}:600>_run_once@{base}:1900>select@/usr/lib/python3.12/selectors.py:468"
        ),
    );
    assert!(named[0].title.contains("awaiting scope \"database\""), "{}", named[0].title);
    assert!(named[0].actions[0].starts_with("Start what \"database\" awaits earlier"), "{:?}", named[0].actions);
    // Nothing says whether there was a request.
    let text = format!(
        "track main\n samples 0..1s every 10ms main>run_forever@{base}:600>_run_once@{base}:1900>select@/usr/lib/python3.12/selectors.py:468"
    );
    let found = crate::testing::found(&WaitsInStep, &text);
    assert!(found[0].title.ends_with(", with the event loop idle"), "{}", found[0].title);
    assert!(found[0].actions[0].starts_with("Mark the requests"), "{:?}", found[0].actions);
}

#[test]
fn a_wait_for_a_child_is_told_from_one_for_a_socket() {
    let std = "/usr/lib/python3.12";
    let title = |stack: &str| {
        let text = format!("track main\n step request 0..1s\n samples 0..1s every 10ms main>convert:5>{stack}");
        found(&WaitsInStep, &text)[0].title.clone()
    };
    let select = format!("select@{std}/selectors.py:415");
    let child = format!(
        "run@{std}/subprocess.py:550>communicate@{std}/subprocess.py:1209>_communicate@{std}/subprocess.py:2115>{select}"
    );
    assert!(title(&child).ends_with("in convert (app.py:5), on a child process"), "{}", title(&child));
    let socket = format!("get@{std}/http/client.py:9>readinto@{std}/socket.py:707");
    assert!(title(&socket).ends_with(", on a socket or pipe"), "{}", title(&socket));
}

#[test]
fn recorded_calls_serve_where_there_are_few_samples() {
    let found = found(
        &WaitsInStep,
        "track main\n step r 0..10ms\n call f@a.py:1 0..10ms\n ccall time.sleep 1ms..9ms\n sample 5ms f:1",
    );
    assert_eq!(found[0].title, "Blocked for 80 % of the step in time.sleep");
}

const DEVICE: &str = "
    track main
    repeat 40 every 50ms
      step request 0..40ms
      api cudaLaunchKernel 1ms..2ms
      stream 7
      kernel gemm 2ms..38ms
      api cudaStreamSynchronize 8ms..38ms
      sync stream 8ms..38ms
      samples 0..40ms every 10ms active gil main>generate:12
    end";

/// CUDA spins while it waits, so samples say that the thread runs.
#[test]
fn a_wait_for_the_device_is_named_with_its_call_and_line_however_busy_it_looks() {
    let found = found(&WaitsInStep, DEVICE);
    assert_eq!(found[0].title, "Waiting for the GPU takes 75 % of the step in cudaStreamSynchronize (app.py:12)");
    assert_eq!((found.len(), found[0].gain), (1, None));
    assert_eq!(found[0].place.api.as_deref(), Some("cudaStreamSynchronize"));
    assert!(found[0].evidence.iter().any(|one| one.text == "GPU busy 90 % of the steps' time"));
    assert!(found[0].evidence.iter().any(|one| one.text.ends_with("waited for gemm")), "{:?}", found[0].evidence);
}

/// A stack is read a little after its time was taken: close to the end of the call it may show what runs next.
#[test]
fn a_sample_at_the_end_of_a_call_does_not_say_who_called_it() {
    let with = |more: &str| {
        let late = "samples 0..40ms every 10ms active gil main>generate:12";
        let samples = format!(
            "sample 37960us active gil main>book:3\n sample 37970us active gil main>book:3\n {more}\n samples 39ms..40ms every 250us active gil main>book:3"
        );
        found(&WaitsInStep, &DEVICE.replace(late, &samples)).remove(0)
    };
    let near = with("");
    assert!(near.title.ends_with("in cudaStreamSynchronize (near app.py:3)"), "{}", near.title);
    assert_eq!(near.place.function, None);
    let sure = with("sample 20ms active gil main>wait:7");
    assert!(sure.title.ends_with("in cudaStreamSynchronize (app.py:7)"), "{}", sure.title);
}

/// A copy that returns when all before it is done waits as long as any synchronisation; the function around it is its place.
#[test]
fn a_copy_that_waits_is_a_wait_and_has_the_function_around_it() {
    let text = "
        track main
        repeat 4 every 50ms
          step request 0..40ms
          call prepare@batch.py:7 0..39ms
          call __torch_function__@torch/utils/_device.py:9 1ms..39ms
          api cudaLaunchKernel 1ms..2ms
          stream 7
          kernel gemm 2ms..38ms
          ccall aten::copy_ 8ms..38.2ms
          api cudaMemcpyAsync 8ms..38.2ms
          copy h2d 38ms..38.1ms 60 pageable
        end";
    let found = found(&WaitsInStep, text);
    assert_eq!(found[0].title, "Waiting for the GPU takes 76 % of the step in cudaMemcpyAsync (in batch.py:7)");
    assert!(found[0].actions.last().unwrap().contains("non_blocking"));
    silent(&WaitsInStep, &text.replace("8ms..38.2ms", "8ms..8.2ms"));
}

/// One call is not given the time of another.
#[test]
fn of_several_calls_that_wait_the_longest_is_named_with_its_own_part() {
    let both = DEVICE.replace(
        "api cudaStreamSynchronize 8ms..38ms",
        "api cudaStreamSynchronize 8ms..20ms\n api cudaDeviceSynchronize 20ms..38ms",
    );
    let found = found(&WaitsInStep, &both.replace("sync stream 8ms..38ms", ""));
    assert_eq!(found[0].title, "Waiting for the GPU takes 75 % of the step: 45 % in cudaDeviceSynchronize (app.py:12)");
}

#[test]
fn a_wait_for_copies_is_not_sent_to_the_kernels() {
    let copies =
        DEVICE.replace("kernel gemm 2ms..38ms", "copy h2d 2ms..37ms 900000000 pinned\n kernel gemm 37ms..38ms");
    assert!(found(&WaitsInStep, DEVICE)[0].actions[0].contains("kernel table"));
    assert!(found(&WaitsInStep, &copies)[0].actions[0].contains("copies are most of its work"));
}

#[test]
fn a_wait_for_the_device_needs_no_samples() {
    let without: String =
        DEVICE.lines().filter(|line| !line.contains("samples")).map(|line| format!("{line}\n")).collect();
    let found = found(&WaitsInStep, &without);
    assert_eq!(found[0].title, "Waiting for the GPU takes 75 % of the step in cudaStreamSynchronize");
}

#[test]
fn native_frames_tell_a_wait_for_the_device_where_calls_were_not_recorded() {
    let found = found(
        &WaitsInStep,
        "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>generate:12>cudaStreamSynchronize@libcudart.so",
    );
    assert!(found[0].title.ends_with("in cudaStreamSynchronize (app.py:12)"), "{}", found[0].title);
}

#[test]
fn silent_when_the_step_runs() {
    silent(&WaitsInStep, "track main\n step request 0..1s\n samples 0..1s every 10ms active gil serve>work:5");
}

#[test]
fn abstains_without_samples() {
    abstains(&WaitsInStep, "track main\n step request 0..1s", "stacks not sampled");
}

/// The lock is taken in C, and no frame of it is seen: the thread that sleeps in one place while the step waits, and is elsewhere when it does not, has it.
#[test]
fn the_thread_that_holds_what_a_step_waits_for_is_named() {
    let text = |during: &str, after: &str| {
        format!(
            "track main\n repeat 40 every 100ms\n step request 0..100ms\n samples 0..60ms every 10ms serve>lookup:14\n \
             samples 60ms..100ms every 10ms active gil serve>work:5\n end\n track refresher\n repeat 40 every 100ms\n \
             samples 0..60ms every 10ms run>{during}\n samples 60ms..100ms every 10ms run>{after}\n end"
        )
    };
    let found = |text: &str| found(&WaitsInStep, text).remove(0);
    let held = found(&text("update@cache.py:31", "pause@cache.py:50"));
    assert_eq!(
        held.title,
        "Blocked for 60 % of the step in lookup (app.py:14), while another thread is in update (cache.py:31)"
    );
    let said =
        "thread refresher is in update (cache.py:31) in 240 of 240 of these waits, and in 0 of 160 samples otherwise";
    assert!(held.evidence.iter().any(|one| one.text == said && one.track.is_some()), "{:?}", held.evidence);
    assert!(held.actions[0].contains("thread refresher, in update (cache.py:31)"), "{:?}", held.actions);
    // A thread that is always there holds nothing.
    let always = found(&text("pause@cache.py:50", "pause@cache.py:50"));
    assert!(
        !always.title.contains("another thread is")
            && always.evidence.iter().all(|one| !one.text.contains("refresher"))
    );
}

/// A call of XLA sleeps until its own threads are done: they are the work. A lock that is waited for meanwhile, or threads that hardly run, are none.
#[test]
fn what_a_librarys_own_threads_compute_is_no_wait_that_could_go() {
    let jax = "block_until_ready@/usr/lib/python3.12/site-packages/jax/_src/array.py:9";
    let text = |wait: &str, ran: &str| {
        format!(
            "track main\n repeat 40 every 50ms\n step request 0..40ms\n samples 0..30ms every 5ms serve>score:14>{wait}\n \
             samples 30ms..40ms every 5ms active gil serve>work:5\n end\n\
             track xla\n counter cpu_ns 0..2s every 100ms grows {ran}\n counter runqueue_wait_ns 0..2s every 100ms grows 1ms"
        )
    };
    let computes = &found(&WaitsInStep, &text(jax, "90ms"))[0];
    let title = &*computes.title;
    assert!(title.starts_with("Threads of a library compute for "), "{title}");
    assert!(title.ends_with(" of the step, awaited in score (app.py:14)"), "{title}");
    assert!(
        computes.gain.is_none() && computes.evidence.iter().any(|one| one.text.contains("cores busy in these waits"))
    );
    for (wait, ran) in [(jax, "9ms"), (GET, "90ms"), ("score:14", "90ms")] {
        let blocked = &found(&WaitsInStep, &text(wait, ran))[0];
        assert!(blocked.title.starts_with("Blocked for ") && blocked.gain.is_some(), "{blocked:?}");
    }
}
