//! What recording added to the calls of a step goes before anything is replayed: a gain is of the step that nobody records.

use super::replay::{SYNC, ask};
use analysis::device::gpu::OverheadBy;
use replay::Assumption;

/// Ten launches of 20 µs and 100 µs of host code. Of a call's time 10 µs are the recording's.
fn recorded(cost: &str) -> String {
    let calls: String = (0..10)
        .map(|at| {
            let begin = at * 20;
            format!(
                "api cudaLaunchKernel {begin}us..{}us\n stream 7\n kernel k {}us..{}us\n",
                begin + 20,
                begin + 5,
                begin + 7
            )
        })
        .collect();
    format!(
        "collector launches on {cost}\n track main\n repeat 30 every 1ms\n step r 0..300us\n {calls} scope format 200us..300us\n end"
    )
}

#[test]
fn a_gain_is_of_the_step_without_what_recording_added_to_its_calls() {
    let percent = |cost: &str| ask(&recorded(cost), "remove host:format").unwrap().gain().mid;
    assert!((percent("") - 33.3).abs() < 0.1, "{}", percent(""));
    // What the collector measured of itself is a part of the cost.
    assert_eq!(percent("own 3ms"), percent(""));
    assert!((percent("windows 40 50") - 50.0).abs() < 0.5, "{}", percent("windows 40 50"));
    // More than the calls took: then nothing of them is left but what the device does, and no more.
    let all = percent("windows 40 5000");
    assert!(50.0 < all && all < 100.0, "{all}");
}

#[test]
fn what_recording_added_is_an_assumption_that_is_said_and_no_error_of_the_replay() {
    let answer = ask(&recorded("windows 40 50"), "remove host:format").unwrap();
    let cost = |one: &Assumption| match one {
        Assumption::WithoutRecording(cost) => Some((cost.ns(), cost.call.by, (cost.share * 100.0).round())),
        _ => None,
    };
    let said = (10_000, OverheadBy::Windows, 33.0);
    assert_eq!(answer.assumed.iter().find_map(cost), Some(said), "{:?}", answer.assumed);
    assert!(answer.check.off < 0.01 && answer.now_ns == 300_000, "{answer:?}");
    let unmeasured = ask(&recorded(""), "remove host:format").unwrap();
    assert_eq!(unmeasured.assumed.iter().find_map(cost), None);
}

/// What a device does is not slowed by what records the calls of the host.
#[test]
fn a_step_that_waits_for_its_device_gains_as_before() {
    let with = format!("collector launches on windows 40 1\n{SYNC}");
    let (a, b) = (ask(SYNC, "scale kernel:second 0.5").unwrap(), ask(&with, "scale kernel:second 0.5").unwrap());
    assert!((a.gain().mid - b.gain().mid).abs() < 0.5, "{a:?} {b:?}");
}
