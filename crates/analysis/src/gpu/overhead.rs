//! What recording the device cost: what the collectors measured of themselves, and what CUPTI says that it took.

use super::Overhead;
use crate::rule::Case;
use timeline::SliceKind;

/// The collectors that record a device.
const OURS: [&str; 3] = ["gpu", "launches", "layers"];

pub fn measure(case: &Case) -> Option<Overhead> {
    let timeline = case.timeline;
    let states = timeline.processes.iter().flat_map(|process| &process.collectors);
    let own_ns: u64 = states
        .filter(|state| OURS.contains(&state.name.as_str()))
        .fold(0, |sum, state| sum.saturating_add(state.own_ns));
    let (mut launches, mut cupti_ns, mut said) = (0, 0u64, false);
    for index in 0..timeline.slices.len() {
        match timeline.slices.kind(index) {
            SliceKind::ApiCall => launches += u64::from(!timeline.gpu.work.of_launch(index).is_empty()),
            SliceKind::Overhead => {
                said = true;
                cupti_ns = cupti_ns.saturating_add(timeline.slices.dur[index]);
            }
            _ => {}
        }
    }
    if own_ns == 0 && !said {
        return None;
    }
    let percent = (own_ns > 0 && timeline.duration() > 0).then(|| 100.0 * own_ns as f64 / timeline.duration() as f64);
    let how = match (own_ns > 0, said) {
        (true, true) => {
            "the collectors' own time over the length of the recording; what CUPTI says of itself is beside it"
        }
        (true, false) => "the collectors' own time over the length of the recording; CUPTI says nothing of its own",
        _ => "the collectors did not measure their own time; only what CUPTI says of itself is known",
    };
    Some(Overhead { own_ns, launches, cupti_ns, percent, how: how.into() })
}
