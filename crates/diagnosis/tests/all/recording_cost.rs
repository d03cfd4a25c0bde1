//! What recording itself cost is taken out of gains, and said with them where it matters.

use diagnosis::{Options, diagnose};
use timeline::Timeline;

/// A step of ten launches of 20 µs each, in windows; outside them a step takes 100 µs, so a call costs 10 µs to record.
fn launches(own: &str, windows: &str, unrecorded: &str) -> Timeline {
    let calls: String = (0..10)
        .map(|at| {
            let (begin, work) = (at * 20, at * 20 + 5);
            format!("api cudaLaunchKernel {begin}us..{}us\n stream 7\n kernel k {work}us..{}us\n", begin + 19, work + 2)
        })
        .collect();
    let text = format!(
        "collector launches on {own}\n track main\n repeat 20 every 1ms\n step r 0..200us\n {calls} end\n \
         repeat 20 every 1ms\n step r 100ms..{unrecorded}\n end\n {windows}"
    );
    Timeline::from_text(&text).unwrap()
}

fn evidence(timeline: &Timeline) -> Vec<String> {
    let found = diagnose(timeline, &Options::default()).findings;
    let all = found.iter().flat_map(|finding| &finding.evidence);
    all.filter(|one| one.numbers.iter().any(|(name, _)| name == "recording_share"))
        .map(|one| one.text.clone())
        .collect()
}

const WINDOWS: &str = "track inferscope-gpu\n window on 0\n window off 50ms\n";

#[test]
fn what_recording_cost_is_said_with_the_gain_it_was_taken_out_of() {
    let said = evidence(&launches("own 1us", WINDOWS, "100.1ms"));
    let [first, ..] = said.as_slice() else { panic!("{said:?}") };
    assert!(first.contains("10.0 µs per CUDA call, 50 % of the step (recorded vs. unrecorded steps)"), "{first}");
}

#[test]
fn what_was_not_measured_or_is_little_is_not_said() {
    assert_eq!(evidence(&launches("", "", "100.2ms")), [""; 0]);
    assert_eq!(evidence(&launches("own 1us", "", "100.2ms")), [""; 0]);
    assert_eq!(evidence(&launches("own 1us", WINDOWS, "100.2ms")), [""; 0]);
}
