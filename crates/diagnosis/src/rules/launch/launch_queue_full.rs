//! `launch-queue-full`: the host is so far ahead that launching itself waits until the device has taken something from its queue.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::measures::{calls_in_steps, gap};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::host::full_queue::{self, DEEP};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::percentile;
use timeline::NameIndex;
use timeline::cuda_calls::CudaCall;

pub const CODE: RuleCode = RuleCode::new("launch-queue-full");

pub struct LaunchQueueFull;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "a full queue is normal for a busy GPU; the CPU has to lose time to it",
);
const MIN_CALL: Threshold = Threshold::new(
    CODE,
    "min_call",
    full_queue::LEAST_NS as f64,
    Unit::Nanoseconds,
    "no launch takes this long by itself",
);
const MIN_TIMES: Threshold = Threshold::new(
    CODE,
    "min_times",
    full_queue::TIMES as f64,
    Unit::Times,
    "the median launch: a call that waits takes far longer",
);
const MIN_QUEUED: Threshold = Threshold::new(
    CODE,
    "min_queued",
    full_queue::DEEP as f64,
    Unit::Count,
    "CUDA's queues hold about a thousand launches",
);

impl Rule for LaunchQueueFull {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MIN_CALL, MIN_TIMES, MIN_QUEUED]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Launch calls block on a full queue of hundreds of launches for {min_share} of the step or more.",
            why: "A CUDA stream queues about a thousand launches. When it is full, the next launch returns only when the GPU has finished something. The GPU is the bottleneck then and the CPU is merely far ahead: nothing is wrong, but the time a CPU profile shows in cudaLaunchKernel is waiting, not launch cost. Calls of {min_call} or more that take {min_times} times the median launch (of those made with fewer than {min_queued} ahead, if that is less) count where {min_queued} launches or more were queued, and those that CUPTI reports as blocked. No gain is given.",
            needs: "GPU operations with their launch calls (`--gpu-detail launch`).",
            example: "Launch queue full: CPU blocked in cudaLaunchKernel for 41 % of the step, up to 1,024 launches ahead",
        }
    }

    fn fix(&self) -> Option<&'static str> {
        Some("launch-queue")
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(reason) = gap::without_launches(case) {
            return Verdict::Abstain(reason);
        }
        let Some(launch) =
            case.gpu().and_then(|gpu| gpu.launch.as_ref()).filter(|launch| launch.max_depth >= DEEP as u64)
        else {
            return Verdict::Silent;
        };
        let slices = &case.timeline.slices;
        let all = calls_in_steps::find(case, CudaCall::is_launch, |_| true);
        let mut times: Vec<u64> = all.all.iter().map(|call| slices.dur[*call as usize]).collect();
        times.sort_unstable();
        let full = calls_in_steps::find(case, CudaCall::is_launch, |call| case.full_queue.waits(call));
        let Some(longest) = full.all.iter().max_by_key(|call| slices.dur[**call as usize]) else {
            return Verdict::Silent;
        };
        if full.tally.mid() < case.threshold(MIN_SHARE) {
            return Verdict::Silent;
        }
        let slice = slices.get(*longest as usize);
        let api = case.timeline.names.text(NameIndex(slices.name[*longest as usize]));
        let finding = Finding {
            code: CODE,
            title: format!(
                "Launch queue full: CPU blocked in {api} for {} of {}, up to {} launches ahead",
                phrase::percent(full.tally.mid()),
                case.the_step(),
                phrase::count(launch.max_depth)
            ),
            place: Place { api: Some(api.to_owned()), ..Place::default() },
            gain: None,
            severity: Severity::Info,
            certainty: Certainty::seen(full.tally.repeats()),
            evidence: vec![
                Evidence::at(format!("longest, {}", phrase::duration(slice.dur)), None, slice.start, slice.end()),
                Evidence::new(format!("{} calls blocked; the median launch takes {}", phrase::count(full.all.len() as u64), phrase::duration(percentile(&times, 50)))),
            ],
            actions: vec![
                match copies_most(case) {
                    false => "Look at the kernels: the GPU is the bottleneck, and the CPU is not at fault.".into(),
                    true => "Look at the copies: they are most of the GPU's work, and the CPU is not at fault.".into(),
                },
                "Use the CPU time: prepare the next requests before launching more, or launch a CUDA graph (one call for all).".into(),
            ],
            verify: proof::verify(case, 0.0),
        };
        finding.into()
    }
}

/// Whether the devices copy, with no kernel beside that, for more than half of the time.
fn copies_most(case: &Case) -> bool {
    case.gpu().is_some_and(|gpu| gpu.devices.iter().any(|one| one.exposed_copy_ns > one.window_ns / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    /// A thousand launches at once, then each waits for a kernel of 200 µs to end.
    fn steps(ahead: u64) -> String {
        let mut text = String::from("track main\n step r 0..300ms\n stream 7\n");
        for number in 0..1400 {
            let start = 10 + number * 200;
            let (from, to) = if number < ahead {
                (number * 5, number * 5 + 4)
            } else {
                ((number - ahead) * 200 + 5_001, (number - ahead + 1) * 200 + 5_000)
            };
            text += &format!("api cudaLaunchKernel {from}us..{to}us\n kernel k {}us..{}us\n", start + 5, start + 200);
        }
        text
    }

    #[test]
    fn launching_waits_for_room() {
        let found = found(&LaunchQueueFull, &steps(1000));
        assert!(
            found[0]
                .title
                .starts_with("Launch queue full: CPU blocked in cudaLaunchKernel for 27 % of the step, up to 9"),
            "{}",
            found[0].title
        );
        assert!(found[0].gain.is_none());
    }

    #[test]
    fn silent_when_the_queue_has_room_and_without_a_gpu() {
        silent(&LaunchQueueFull, &steps(1400));
        silent(&LaunchQueueFull, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_launches() {
        abstains(
            &LaunchQueueFull,
            "track main\n step r 0..1ms\n stream 7\n kernel k 0..1us corr 0",
            "launch calls not recorded",
        );
    }
}
