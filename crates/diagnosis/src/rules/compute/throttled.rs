//! `throttled`: the GPU's clock is held down while the steps run, for power, heat or by the hardware.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use crate::wording::origin::not_recorded;
use analysis::device::gpu::windows_of;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::{Share, again};
use replay::{Change, Target};
use timeline::{CollectorCode, Counter, counters as counter_names};

pub const CODE: RuleCode = RuleCode::new("throttled");

pub struct Throttled;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.10, Unit::Share, "of step time: clocks drop for a moment on any GPU");
const MIN_SLOWER_SHARE: Threshold =
    Threshold::new(CODE, "min_slower_share", 0.05, Unit::Share, "a clock closer to the highest costs nothing visible");
const MIN_MEDIUM_SHARE: Threshold = Threshold::new(
    CODE,
    "min_medium_share",
    0.05,
    Unit::Share,
    "of the step, at most to gain: a twentieth is worth an hour, medium severity",
);

/// NVML's reasons that slow a device down against its will; being idle and clocks set by the user are none.
const THROTTLE_REASONS: [(i64, &str); 5] = [
    (0x4, "the power cap"),
    (0x8, "hardware slowdown"),
    (0x20, "heat"),
    (0x40, "heat (hardware)"),
    (0x80, "the power brake"),
];

impl Rule for Throttled {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_SLOWER_SHARE, MIN_MEDIUM_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The GPU reports a throttled clock for {min_share} of step time or more, and the clock is {min_slower_share} or more below the highest of the recording.",
            why: "The driver reports why a clock is lower than requested: power, heat, the hardware. The cost is at most how far the clock lies below the highest of this recording while the GPU is busy; at least nothing, because kernels that wait for memory do not slow down with the clock. The power cap alone has no gain: a GPU under full load runs at it.",
            needs: "GPU counters (`gpu_throttle_reasons`, `gpu_sm_clock_mhz`) on a machine with one GPU: with several, the trace does not show which one a process uses.",
            example: "GPU clock throttled for 64 % of step time by heat: 1,410 MHz instead of 1,980",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let [device] = case.idle() else {
            return match case.idle().len() {
                0 => Verdict::Silent,
                _ => {
                    Verdict::Abstain("several GPUs used: the trace does not show which counters belong to which".into())
                }
            };
        };
        let read = |name: &str| -> Vec<&Counter> {
            case.timeline.counters.iter().filter(|one| one.process.is_none() && &*one.name == name).collect()
        };
        let (reasons, clocks) = (read(counter_names::GPU_THROTTLE_REASONS), read(counter_names::GPU_SM_CLOCK_MHZ));
        let ([reasons], [clock]) = (&reasons[..], &clocks[..]) else {
            return Verdict::Abstain(match reasons.len() {
                0 | 1 => {
                    not_recorded(case.timeline, CollectorCode::Devices, "throttle reasons and clocks not recorded")
                }
                _ => "the machine has several GPUs: the trace does not show which one was used".into(),
            });
        };
        let windows = windows_of(case, device.process);
        let inside = |start: u64, end: u64| -> u64 {
            let first = windows.partition_point(|window| window.end <= start);
            let those = windows[first..].iter().take_while(|window| window.start < end);
            those.map(|window| end.min(window.end) - start.max(window.start)).sum()
        };
        let (mut held, mut why) = (Vec::new(), 0);
        for (start, end, bits) in stretches(case, reasons) {
            let bits = THROTTLE_REASONS.iter().fold(0, |all, (bit, _)| all | bits & bit);
            if bits != 0 && inside(start, end) > 0 {
                held.push((start, end));
                why |= bits;
            }
        }
        let held_ns: u64 = held.iter().map(|(start, end)| inside(*start, *end)).sum();
        let share = held_ns as f64 / device.window_ns.max(1) as f64;
        let highest = clock.value.iter().copied().max().unwrap_or(0) as f64;
        // The clock while it was held down, weighted by time.
        let (mut sum, mut time) = (0.0, 0.0);
        for (start, end, mhz) in stretches(case, clock) {
            let first = held.partition_point(|one| one.1 <= start);
            for (from, to) in held[first..].iter().take_while(|one| one.0 < end) {
                let both = inside(start.max(*from), end.min(*to)) as f64;
                sum += mhz as f64 * both;
                time += both;
            }
        }
        let mean = if time > 0.0 { sum / time } else { highest };
        let slower = if highest > 0.0 { 1.0 - mean / highest } else { 0.0 };
        if share < case.threshold(MIN_SHARE) || slower < case.threshold(MIN_SLOWER_SHARE) {
            return Verdict::Silent;
        }
        let busy = device.busy_ns as f64 / device.window_ns.max(1) as f64;
        let most = 100.0 * slower * share.min(1.0) * busy;
        let faster = Change::Scale(Target::Kernel("*".into()), 1.0 - slower * share.min(1.0));
        let gain = case.gain(&[faster], Share::exactly(most / 100.0));
        // A device that works hard runs at its power cap: that is how it is built, and nothing of the program.
        let capped = why == THROTTLE_REASONS[0].0;
        let words: Vec<&str> =
            THROTTLE_REASONS.iter().filter(|(bit, _)| why & bit != 0).map(|(_, word)| *word).collect();
        let number = |mhz: f64| phrase::count(mhz as u64);
        let finding = Finding {
            code: CODE,
            title: format!(
                "GPU clock throttled for {} of step time by {}: {} MHz instead of {}",
                phrase::percent(share.min(1.0)),
                words.join(" and "),
                number(mean),
                number(highest)
            ),
            place: Place::default(),
            // What memory limits does not follow the clock.
            gain: (!capped).then_some(gain.at_most()),
            severity: match most {
                _ if capped => Severity::Info,
                most if most >= 100.0 * case.threshold(MIN_MEDIUM_SHARE) => Severity::Medium,
                _ => Severity::Low,
            },
            // Readings are rare: so many stretches tell.
            certainty: Certainty::seen(again(held.len())),
            evidence: vec![
                Evidence::new(format!("the clock is {} below the highest of the recording", phrase::percent(slower))).number("slower", slower),
                Evidence::new(format!("GPU busy {} of step time", phrase::percent(busy))).number("busy", busy),
            ],
            actions: vec![
                "Find the reason: nvidia-smi -q -d PERFORMANCE,POWER,TEMPERATURE.".into(),
                "Raise the power limit if the machine allows it (nvidia-smi -pl), or improve cooling; compare runs only at a fixed clock.".into(),
            ],
            verify: proof::verify(case, if capped { 0.0 } else { gain.mid / 200.0 }),
        };
        finding.into()
    }
}

/// A counter is written when it changes: each value holds until the next.
fn stretches(case: &Case, counter: &Counter) -> Vec<(u64, u64, i64)> {
    let ends = counter.time.iter().skip(1).copied().chain([case.timeline.end]);
    counter
        .time
        .iter()
        .zip(ends)
        .zip(&counter.value)
        .map(|((start, end), value)| (*start, end, *value))
        .filter(|one| one.0 < one.1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const STEPS: &str = "
        end 1s
        track main
        repeat 10 every 100ms
          step r 0..100ms
          api cudaLaunchKernel 0..10us
          stream 7
          kernel k 10us..99.9ms
          api cudaStreamSynchronize 20us..99.95ms
        end\n";

    #[test]
    fn a_clock_that_heat_holds_down() {
        let text = format!(
            "{STEPS} counter host gpu_throttle_reasons 0=0 500ms=32\n counter host gpu_sm_clock_mhz 0=1980 500ms=1485"
        );
        let found = found(&Throttled, &text);
        assert_eq!(found[0].title, "GPU clock throttled for 50 % of step time by heat: 1,485 MHz instead of 1,980");
        let gain = found[0].gain.unwrap();
        assert!(gain.low == 0.0 && (gain.high - 12.5).abs() < 0.1, "{gain:?}");
    }

    #[test]
    fn the_power_cap_of_a_busy_device_is_stated_and_has_no_gain() {
        let text = format!(
            "{STEPS} counter host gpu_throttle_reasons 0=0 500ms=4\n counter host gpu_sm_clock_mhz 0=1980 500ms=1485"
        );
        let found = found(&Throttled, &text);
        assert_eq!((found[0].gain, found[0].severity), (None, Severity::Info));
        assert!(!found[0].verify.contains("should"), "{}", found[0].verify);
    }

    #[test]
    fn silent_when_nothing_slows_it_when_it_is_idle_and_when_the_clock_stays() {
        silent(
            &Throttled,
            &format!("{STEPS} counter host gpu_throttle_reasons 0=0\n counter host gpu_sm_clock_mhz 0=1980"),
        );
        silent(
            &Throttled,
            &format!("{STEPS} counter host gpu_throttle_reasons 0=1\n counter host gpu_sm_clock_mhz 0=345 100ms=1980"),
        );
        silent(
            &Throttled,
            &format!("{STEPS} counter host gpu_throttle_reasons 0=4\n counter host gpu_sm_clock_mhz 0=1980 500ms=1950"),
        );
        silent(&Throttled, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_counters_and_with_several_devices() {
        abstains(&Throttled, STEPS, "not recorded");
        let two = format!("{STEPS} api cudaLaunchKernel 20us..30us\n stream 7 device 1\n kernel k 40us..50us");
        abstains(&Throttled, &two, "several GPUs");
    }
}
