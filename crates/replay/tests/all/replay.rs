//! Replays: an unchanged step comes out as it was recorded, and a change gains what the graph says, on small timelines and on
//! those recorded on real hardware.

use analysis::steps::Steps;
use replay::{Answer, Assumption, Change, Changed, Direction, NotThere, On, Refusal, Unknown, check, parse, replay};
use std::path::Path;
use timeline::Timeline;

pub fn ask(text: &str, changes: &str) -> Result<Answer, Refusal> {
    let timeline = Timeline::from_text(text).unwrap();
    let steps = Steps::find(&timeline, None);
    replay(&timeline, &steps, &parse(changes).unwrap())
}

#[track_caller]
fn gain(text: &str, changes: &str) -> (i64, i64, i64) {
    let answer = ask(text, changes).unwrap();
    assert!(answer.check.off < 0.01, "{answer:?}");
    (answer.low_ns / 1000, answer.mid_ns / 1000, answer.high_ns / 1000)
}

#[track_caller]
pub fn refused(text: &str, changes: &str) -> Refusal {
    ask(text, changes).unwrap_err()
}

/// A wait in the middle, host code after it, and a second half that the device could have begun at once.
pub const SYNC: &str = "
    track main
    repeat 30 every 10ms
      step token 0..8ms
      stream 7
      api cudaLaunchKernel 0..10us
      kernel first 10us..3ms
      api cudaDeviceSynchronize 20us..3.02ms
      sync context 20us..3.02ms
      api cudaLaunchKernel 5ms..5.01ms
      kernel second 5.01ms..7.9ms
      api cudaStreamSynchronize 5.02ms..7.95ms
      sync stream 5.02ms..7.95ms
    end";

#[test]
fn a_wait_in_the_middle_costs_what_the_host_could_have_done_meanwhile() {
    // Without it the launch comes at 2 ms, in the shadow of the first kernel, which ends at 3 ms: 2.01 ms earlier.
    let answer = ask(SYNC, "remove sync-api").unwrap();
    assert_eq!(answer.now_ns, 8_000_000);
    assert!((answer.mid_ns - 2_010_000).abs() < 20_000, "{answer:?}");
    assert!(answer.low_ns <= answer.mid_ns && answer.mid_ns <= answer.high_ns);
    assert_eq!(answer.changed.into_iter().collect::<Vec<_>>(), [(Changed::Named("cudaDeviceSynchronize".into()), 30)]);
    assert_eq!((answer.after[0].on, answer.after[0].name.as_str()), (On::Kernel, "first"));
}

/// The wait for the result stays; nothing is left to remove.
#[test]
fn the_wait_for_the_result_is_no_fault() {
    let text = SYNC.replace("api cudaDeviceSynchronize 20us..3.02ms\n      sync context 20us..3.02ms", "");
    assert_eq!(refused(&text, "remove sync-api"), Refusal::NotThere(NotThere::RemovableWait));
}

#[test]
fn a_kernel_that_is_waited_for_gains_all_of_its_time() {
    let (low, mid, high) = gain(SYNC, "scale kernel:second 0.5");
    assert_eq!((low, mid, high), (1445, 1445, 1445));
    // Both; and a name that is part of a template.
    assert_eq!(gain(SYNC, "scale kernel:* 0.5").1, 1445 + 1495);
    let templated = SYNC.replace("kernel second", "kernel at::native::second<float>(int)");
    assert_eq!(gain(&templated, "scale kernel:sec* 0.5").1, 1445);
}

#[test]
fn what_is_removed_goes_with_its_launch() {
    let (low, mid, _) = gain(SYNC, "remove kernel:second");
    // The kernel, its latency and its launch; the call stays in the low case.
    assert!((2_890..=2_950).contains(&mid) && low < mid, "{low} {mid}");
}

/// The device is busy while the host works: a shorter kernel shortens nothing but the last wait.
const HOST_BOUND: &str = "
    track main
    repeat 20 every 5ms
      step token 0..4ms
      scope prepare 0..1ms
      api cudaLaunchKernel 1ms..1.01ms
      stream 7
      kernel a 1.02ms..1.1ms
      api cudaLaunchKernel 2ms..2.01ms
      kernel b 2.02ms..2.1ms
      api cudaLaunchKernel 3ms..3.01ms
      kernel c 3.02ms..3.1ms
      api cudaStreamSynchronize 3.02ms..3.12ms
      sync stream 3.02ms..3.12ms
    end";

#[test]
fn host_code_is_scaled_by_its_slices_or_samples() {
    assert_eq!(gain(HOST_BOUND, "scale host:prepare 0.5").1, 500);
    assert_eq!(gain(HOST_BOUND, "scale kernel:a 0.1").1, 0);
    let sampled = HOST_BOUND.replace("scope prepare 0..1ms", "samples 50us..950us every 100us active gil main>prepare");
    let mid = gain(&sampled, "remove host:prepare").1;
    assert!((900..=1000).contains(&mid), "{mid}");
    // A function goes with what it calls, and what goes twice is gone once.
    let nested = HOST_BOUND.replace("scope prepare 0..1ms", "scope prepare 0..1ms\n scope inner 200us..600us");
    assert_eq!(gain(&nested, "remove host:inner").1, 400);
    assert_eq!(gain(&nested, "remove host:prepare").1, gain(HOST_BOUND, "remove host:prepare").1);
    assert_eq!(gain(&nested, "remove host:prepare; remove host:inner").1, gain(&nested, "remove host:prepare").1);
    let asked = ask(&nested, "remove host:prepare; remove host:inner").unwrap();
    let scaled = Assumption::FunctionScaled { among_calls: true };
    assert_eq!(asked.assumed.iter().filter(|one| **one == scaled).count(), 1);
    let named = refused(HOST_BOUND, "remove host:nothing");
    assert!(matches!(&named, Refusal::NotThere(NotThere::Function(name, _)) if name == "nothing"), "{named:?}");
}

#[test]
fn a_graph_needs_one_launch_and_no_host_code_between() {
    let (low, mid, high) = gain(HOST_BOUND, "graph steps");
    // Mid: 2 ms from the first launch to the last, less what the kernels then take; low: two calls of 10 µs.
    assert!((1_700..=2_000).contains(&mid), "{mid}");
    assert!((10..=40).contains(&low) && high >= mid, "{low} {high}");
    let recorded = HOST_BOUND.replace("api cudaLaunchKernel 3ms..3.01ms", "api cudaGraphLaunch 3ms..3.01ms");
    assert!(gain(&recorded, "graph steps").1 < mid);
}

#[test]
fn several_changes_are_replayed_together() {
    let one = gain(HOST_BOUND, "scale host:prepare 0.5").1;
    let both = gain(HOST_BOUND, "scale host:prepare 0.5; scale kernel:c 0.5").1;
    assert_eq!(both - one, 40);
}

/// A pageable copy that blocks its call, beside a pinned one twice as fast.
const COPIES: &str = "
    track main
    repeat 20 every 5ms
      step token 0..4ms
      api cudaMemcpyAsync 100us..1.1ms
      stream 7
      copy h2d 110us..1.1ms 9900000 pageable
      api cudaMemcpyAsync 1.2ms..1.21ms
      copy h2d 1.22ms..1.715ms 9900000 pinned
      api cudaStreamSynchronize 1.3ms..1.8ms
      sync stream 1.3ms..1.8ms
    end";

#[test]
fn pageable_copies_get_the_speed_of_pinned_ones_of_the_same_trace() {
    let (low, mid, _) = gain(COPIES, "pin copies");
    // Low: the copy takes half. Mid: the host no longer waits for it, so that the second copy starts when the first ends.
    assert_eq!((low, mid), (495, 615));
    let none = COPIES.replace("pinned", "pageable");
    assert_eq!(refused(&none, "pin copies"), Refusal::Unknown(Unknown::PinnedCopies(Direction::HostToDevice)));
    assert_eq!(refused(SYNC, "pin copies"), Refusal::NotThere(NotThere::PageableCopies));
    assert_eq!(gain(COPIES, "scale copy:h2d 1").1, 0);
    // What none of them was compared with is not said.
    let link = "\n counter host gpu_pcie_link_gen 0=5\n counter host gpu_pcie_link_width 0=16";
    let assumed = |text: &str| {
        let assumed = ask(text, "pin copies").unwrap().assumed;
        let count = |fits: fn(&Assumption) -> bool| assumed.iter().filter(|one| fits(one)).count();
        let linked = count(|one| matches!(one, Assumption::CopiesByLink { .. }));
        (count(|one| *one == Assumption::CopiesAsPinned), linked)
    };
    assert_eq!((assumed(COPIES), assumed(&(none + link))), ((1, 0), (0, 1)));
}

/// Work trails behind its step: a shorter host does not make the device faster than it is.
#[test]
fn steps_do_not_run_away_from_their_work() {
    let text = "track main
        repeat 20 every 2ms
          step token 0..2ms
          scope prepare 0..1.9ms
          api cudaLaunchKernel 1.95ms..1.96ms
          stream 7
          kernel a 2ms..3.9ms
        end";
    let mid = gain(text, "remove host:prepare").1;
    // The 100 µs for which the device had nothing to do, and the head start of the first step over all twenty.
    assert!((100..=200).contains(&mid), "{mid}");
}

/// The second stream starts when the first has done its part.
#[test]
fn a_stream_that_waits_for_an_event_follows_the_other() {
    let text = "track main
        repeat 10 every 5ms
          step token 0..4.1ms
          api cudaLaunchKernel 0..10us
          stream 7
          kernel a 20us..2ms
          api cudaStreamWaitEvent 20us..25us
          api cudaLaunchKernel 30us..40us
          stream 8
          kernel b 2.01ms..4ms
          api cudaStreamSynchronize 50us..4.01ms
          sync stream 50us..4.01ms
        end";
    assert_eq!(gain(text, "scale kernel:a 0.5").1, 990);
}

#[test]
fn a_thread_that_was_silent_follows_those_that_worked() {
    let mut text = String::from(
        "track main\n step train 0..20ms\n api cudaLaunchKernel 1ms..1.01ms\n stream 7\n kernel f 1.02ms..2ms\n",
    );
    text.push_str("api cudaLaunchKernel 19ms..19.01ms corr 900\n kernel o 19.02ms..19.9ms corr 900\n track autograd\n");
    text.push_str(" scope slow 2ms..6ms\n");
    for call in 0..10 {
        text.push_str(&format!(
            "api cudaLaunchKernel {0}ms..{0}.1ms corr {1}\n kernel b {0}.2ms..{0}.8ms corr {1}\n",
            7 + call,
            call + 100
        ));
    }
    assert_eq!(gain(&text, "scale host:slow 0.5").1, 2000);
}

#[test]
fn odd_timelines_are_answered_or_refused_and_never_panic() {
    for text in [
        "",
        "track main\n step r 5ms..5ms",
        "track main\n step r 0..1ms\n api cudaStreamSynchronize 0..0\n api cudaLaunchKernel 0..0\n stream 7\n kernel k 0..0",
        "track main\n step r 0..1ms\n step r 0.5ms..2ms\n api cudaLaunchKernel 0.9ms..3ms\n stream 7\n kernel k 0.1ms..9ms",
        "track main\n step r 1ms..2ms\n api cudaLaunchKernel 1.5ms..1.6ms\n stream 7\n kernel k 1.4ms..1.5ms\n kernel k 1.45ms..1.9ms",
    ] {
        for changes in
            ["remove sync-api", "remove kernel:*", "scale kernel:* 1000", "pin copies", "graph steps", "remove api:*"]
        {
            if let Ok(answer) = ask(text, changes) {
                assert!(answer.low_ns <= answer.mid_ns && answer.mid_ns <= answer.high_ns, "{text}: {changes}");
            }
        }
    }
}

/// Every step of every trace that was recorded on a GPU, those of the suite as well.
#[test]
fn recorded_traces_are_reproduced_within_two_percent() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    let names =
        ["bert", "copies", "decode", "graphs", "suite/tiny_kernels", "suite/sync_each_layer", "suite/graph_decode"];
    for name in names.into_iter().filter(|name| folder.join(name).exists()) {
        let timeline = timeline::open(&folder.join(name)).unwrap();
        let check = check(&timeline, &Steps::find(&timeline, None)).unwrap();
        println!(
            "{name}: {} steps, off by {:.3} %, worst {:.3} %",
            check.steps,
            check.off * 100.0,
            check.worst * 100.0
        );
        assert!(check.worst < 0.02 && check.explained == check.steps, "{name}: {check:?}");
    }
}

/// Its launch was seen 3 ms before, nothing in its stream: it started when the other stream's kernel ended.
#[test]
fn work_that_starts_when_another_stream_is_done_waited_for_it() {
    let text = "track main
        repeat 12 every 10ms
          step token 0..8.1ms
          api cudaLaunchKernel 0..10us
          stream 7
          kernel a 20us..4ms
          api cudaLaunchKernel 20us..30us
          stream 8
          kernel early 40us..60us
          api cudaLaunchKernel 40us..50us
          kernel b 4.002ms..8ms
          api cudaStreamSynchronize 60us..8.01ms
          sync stream 60us..8.01ms
        end";
    let answer = ask(text, "scale kernel:a 0.5").unwrap();
    assert_eq!((answer.check.explained, answer.mid_ns), (12, 1_990_000), "{answer:?}");
}

/// A launch of a graph takes as long as it takes: the first node starts by its end.
#[test]
fn a_graph_starts_by_the_end_of_its_launch() {
    let mut text = String::from("track main\n");
    for step in 0..12 {
        let (at, took) = (step * 1000, 80 + 7 * (step % 5));
        text.push_str(&format!("step token {at}us..{}us\n", at + took + 120));
        text.push_str(&format!("api cudaGraphLaunch {at}us..{}us corr {step}1\n stream 7\n", at + took));
        text.push_str(&format!("kernel a {0}us..{1}us corr {step}1\n", at + took - 5, at + took + 40));
        text.push_str(&format!("kernel b {0}us..{1}us corr {step}1\n", at + took + 41, at + took + 100));
        text.push_str(&format!("api cudaStreamSynchronize {0}us..{1}us\n", at + took + 2, at + took + 106));
    }
    let answer = ask(&text, "scale api:cudaGraphLaunch 0.5").unwrap();
    assert_eq!(answer.check.explained, answer.check.steps);
    // Half of the launch, of about 94 µs.
    assert!((42_000..=52_000).contains(&answer.mid_ns), "{answer:?}");
}

/// `graphs` is the same model as `decode`, captured as a CUDA graph: what was predicted for the one was measured on the other.
#[test]
fn a_graph_predicted_for_a_recorded_trace_is_as_fast_as_the_recorded_graph() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    let of = |name: &str| {
        let timeline = timeline::open(&folder.join(name)).unwrap();
        let steps = Steps::find(&timeline, None);
        (timeline, steps)
    };
    let ((eager, steps), (_, measured)) = (of("decode"), of("graphs"));
    let answer = replay(&eager, &steps, &parse("graph steps").unwrap()).unwrap();
    let off = answer.then_ns as f64 - measured.mean() as f64;
    println!("predicted {} ns, measured {} ns, before {} ns", answer.then_ns, measured.mean(), answer.now_ns);
    assert!(off.abs() < 0.05 * answer.now_ns as f64, "{answer:?}");
}

/// A hole between nodes of a graph, in which the device shows nothing: the recording lacks it, and the replay keeps it.
const HOLE: &str = "
    track main
    repeat 20 every 10ms
      step token 0..9ms
      stream 7
      api cudaGraphLaunch 0..20us
      kernel first 30us..1ms graph 3 node 1
      kernel last 5ms..8ms graph 3 node 2
      api cudaStreamSynchronize 30us..8010us
      sync stream 30us..8010us
    end";

#[test]
fn what_the_recording_lacks_stays_as_long_as_it_was() {
    let answer = ask(HOLE, "scale kernel:last 0.5").unwrap();
    assert!((answer.check.held - 4.0 / 9.0).abs() < 0.001 && answer.check.off < 0.001, "{:?}", answer.check);
    assert_eq!(answer.mid_ns, 1_500_000);
    assert!(answer.assumed.contains(&Assumption::LateAsRecorded));
    // Another stream that works meanwhile may be what it waited for: that is no hole.
    let busy = HOLE.replace("graph 3 node 2", "graph 3 node 2\n      stream 9\n      kernel other 1ms..4990us corr 0");
    let timeline = Timeline::from_text(&busy).unwrap();
    assert_eq!(check(&timeline, &Steps::find(&timeline, None)).unwrap().held, 0.0);
}

/// The queue is full: each launch returns when the device has done something. Faster kernels make faster launches.
#[test]
fn a_launch_that_waits_for_room_returns_sooner_when_the_device_is_faster() {
    let mut text = String::from("track main\n step r 0..300ms\n stream 7\n");
    for number in 0..1450u64 {
        let (from, to) = match number.checked_sub(1000) {
            None => (number * 5, number * 5 + 4),
            Some(waits) => (5_010 + waits * 200, 5_208 + waits * 200),
        };
        text += &format!(
            "api cudaLaunchKernel {from}us..{to}us\n kernel k {}us..{}us\n",
            12 + number * 200,
            210 + number * 200
        );
    }
    text += "api cudaStreamSynchronize 96ms..290.1ms\n";
    // All but the launches themselves and the host's code is the device's time.
    let answer = ask(&text, "scale kernel:k 0.5").unwrap();
    assert!(answer.check.off < 0.01 && (answer.mid_ns - 143_000_000).abs() < 3_000_000, "{answer:?}");
}

/// What was launched before the recording waits only for its stream.
#[test]
fn work_from_before_the_recording_moves_with_its_stream() {
    let text = "track main
        step r 0..10ms
        stream 7
        kernel old 0..3ms corr 0
        kernel older 3001us..6ms corr 0
        api cudaLaunchKernel 10us..20us
        kernel mine 6001us..9ms
        api cudaStreamSynchronize 30us..9010us";
    let timeline = Timeline::from_text(text).unwrap();
    let answer = replay(&timeline, &Steps::find(&timeline, None), &[Change::Work(vec![0, 1, 2], 0.5)]).unwrap();
    assert_eq!((answer.mid_ns, answer.check.off), (4_499_000, 0.0));
}
