//! The time in recorded waits for a device, exactly. Which lines wait is told by the samples taken in them; where there are
//! none, the calls themselves are named.

use super::part::{Key, PartKind, apportion};
use crate::frames::Frames;
use crate::host::step_samples::{Doing, StepSamples};
use crate::steps::windows::StepSpans;
use std::collections::{BTreeMap, HashMap};
use timeline::{NameIndex, Timeline};

pub fn times(timeline: &Timeline, windows: &StepSpans, frames: &Frames, seen: &StepSamples) -> Vec<(Key, u64)> {
    let mut by_call: HashMap<NameIndex, u64> = HashMap::new();
    for (track, waits) in &seen.gpu {
        for (start, end, name) in waits {
            let sum = by_call.entry(*name).or_default();
            *sum = sum.saturating_add(windows.overlap(*track, *start, *end));
        }
    }
    // Lines by the call that they were seen in: a rare wait must not get the line of a frequent one.
    let mut lines: HashMap<NameIndex, HashMap<Key, u64>> = HashMap::new();
    for one in seen.all.iter().filter(|one| one.doing == Doing::Gpu) {
        let sample = timeline.samples.get(one.sample as usize);
        let track = windows.all()[one.window as usize].track;
        let Some((_, _, call)) = seen.device_wait(track, sample.time) else { continue };
        let frame = timeline.stacks.frame(frames.python(sample.stack));
        let name = if sample.stack.0 == 0 { call } else { frame.name };
        *lines.entry(call).or_default().entry(Key { kind: PartKind::Gpu, name, line: frame.line }).or_default() += 1;
    }
    let mut times: HashMap<Key, u64> = HashMap::new();
    for (call, ns) in by_call {
        let plain = HashMap::from([(Key { kind: PartKind::Gpu, name: call, line: 0 }, 1)]);
        // In order: of equal ones, the first get what does not divide.
        let lines = BTreeMap::from_iter(lines.remove(&call).unwrap_or(plain));
        let (keys, weights): (Vec<Key>, Vec<u64>) = lines.into_iter().unzip();
        for (key, part) in keys.into_iter().zip(apportion(ns, &weights)) {
            let sum = times.entry(key).or_default();
            *sum = sum.saturating_add(part);
        }
    }
    times.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::StepContext;

    fn waited(copy: &str, returns: &str) -> f64 {
        let text = format!(
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..5us\n stream 7\n kernel gemm 10us..9ms\n\
             api cudaMemcpyAsync 20us..{returns}\n copy {copy}\n end\n samples 0..200ms every 1ms active main>read:5"
        );
        let timeline = Timeline::from_text(&text).unwrap();
        StepContext::new(&timeline, None).breakdown.share(PartKind::Gpu)
    }

    #[test]
    fn a_result_that_is_there_when_its_copy_returns_was_waited_for() {
        let share = waited("d2h 9ms..9050us 4 pageable", "9100us");
        assert!((share - 0.898).abs() < 0.001, "{share}");
    }

    #[test]
    fn a_copy_that_returns_before_waits_for_nothing() {
        assert_eq!(waited("d2h 9ms..9050us 4 pinned", "40us"), 0.0);
        assert_eq!(waited("h2d 9ms..9050us 4 pageable", "40us"), 0.0);
    }

    /// Four bytes are not staged for nine milliseconds: the call waits for the kernel before it. Ten megabytes are.
    #[test]
    fn a_copy_to_the_device_that_is_over_when_it_returns_waited_for_what_was_before_it() {
        let share = waited("h2d 9ms..9050us 4 pageable", "9100us");
        assert!((share - 0.898).abs() < 0.001, "{share}");
        assert_eq!(waited("h2d 9ms..9050us 10000000 pageable", "9100us"), 0.0);
    }

    /// A thousand launches, and then each waits until the device has taken one: the host does not run, it waits.
    #[test]
    fn a_launch_that_waits_for_room_waits_for_the_device() {
        let launches = |full: bool| {
            let mut text = String::from("track main\n step r 0..300ms\n stream 7\n ccall aten::mm 0..299ms\n");
            for number in 0..1400u64 {
                let ahead = if full { 1000 } else { 100 };
                let (from, to) = match number.checked_sub(ahead) {
                    None => (number * 5, number * 5 + 4),
                    Some(waits) => (waits * 200 + 5_001, (waits + 1) * 200 + 5_000),
                };
                let at = 15 + number * 200;
                text += &format!("api cudaLaunchKernel {from}us..{to}us\n kernel k {at}us..{}us\n", at + 195);
            }
            let timeline = Timeline::from_text(&text).unwrap();
            StepContext::new(&timeline, None).breakdown.share(PartKind::Gpu)
        };
        assert!((launches(true) - 80.0 / 300.0).abs() < 0.01, "{}", launches(true));
        assert_eq!(launches(false), 0.0);
    }
}
