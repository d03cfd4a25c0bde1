//! `memory-underused`: the peak leaves so much of the device free that the batch can grow.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::allocators;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::AllocatorMemory;
use analysis::memory::who::Category;
use analysis::phrase;
use analysis::steps::StepSource;

pub const CODE: RuleCode = RuleCode::new("memory-underused");

pub struct MemoryUnderused;

const MAX_SHARE: Threshold =
    Threshold::new(CODE, "max_share", 0.5, Unit::Share, "of the device: with more in use there is little to double");
const MAX_FILLED: Threshold = Threshold::new(
    CODE,
    "max_filled",
    0.85,
    Unit::Share,
    "of the device, by a larger batch: the context, libraries and rounding need the rest",
);
const MIN_TIMES: Threshold =
    Threshold::new(CODE, "min_times", 2.0, Unit::Times, "a batch that cannot even double is as good as full");

impl Rule for MemoryUnderused {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MAX_SHARE, MAX_FILLED, MIN_TIMES]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The allocator's peak takes less than {max_share} of the device's memory, and what the steps allocate could grow {min_times} times or more.",
            why: "Memory that steps allocate and free grows with the batch; weights do not. What the device has left, divided by what the steps take at the peak, is how much larger a batch can be as far as memory goes. Whether it is faster is another question.",
            needs: "Allocator events with steps, and the size of the device's memory.",
            example: "GPU 0: 22.0 GiB of 80.0 GiB used at the peak; the batch can grow to 6 times its size",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.timeline.memory.cut {
            return Verdict::Abstain(allocators::EVENTS_MISSING.into());
        }
        if allocators::with_events(case).is_empty() {
            return allocators::not_recorded(case, allocators::NO_EVENTS);
        }
        let sized = allocators::sized(case);
        if sized.is_empty() {
            return Verdict::Abstain(allocators::NO_SIZE.into());
        }
        if case.steps.source == StepSource::Whole {
            return Verdict::Abstain("no steps: what a step allocates is not known".into());
        }
        let found: Vec<Finding> = sized.into_iter().filter_map(|(one, total)| of(case, one, total)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn of(case: &Case, one: &AllocatorMemory, total: u64) -> Option<Finding> {
    let peak = one.history.reserved_peak.unwrap_or(one.history.peak);
    let steps: u64 =
        one.peak.by_category.iter().filter(|(kind, _, _)| *kind == Category::Activations).map(|kind| kind.1).sum();
    let kept = peak.saturating_sub(steps) as f64;
    let times = (case.threshold(MAX_FILLED) * total as f64 - kept) / steps as f64;
    if steps == 0 || peak as f64 >= case.threshold(MAX_SHARE) * total as f64 || times < case.threshold(MIN_TIMES) {
        return None;
    }
    let evidence = vec![
        Evidence::new(format!(
            "steps allocate {} at the peak, {} are held throughout",
            phrase::bytes(steps),
            phrase::bytes(kept as u64)
        ))
        .number("bytes", steps as f64)
        .number("times", times),
    ];
    Some(Finding {
        code: CODE,
        title: format!(
            "{}: {} of {} used at the peak; the batch can grow to {times:.0} times its size",
            allocators::name(case, one.allocator),
            phrase::bytes(peak),
            phrase::bytes(total)
        ),
        place: analysis::place::Place::default(),
        gain: None,
        severity: Severity::Info,
        certainty: Certainty::seen(1.0 - peak as f64 / total as f64),
        evidence,
        actions: Action::all([
            format!(
                "Raise the batch size, up to {times:.0} times, and measure: throughput grows until the device is busy."
            ),
            "Serve several models or replicas from the device, or use a smaller one.".into(),
        ]),
        verify: "Record again: the peak is higher, and a step takes less time per item.".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const WEIGHTS: &str =
        "device 0 NVIDIA_H200 memory 1000M\n block alloc 0us 200M at 1 main>load@model.py:3\n track main\n";
    const STEPS: &str =
        "repeat 10 every 1ms\n step request 10us..900us\n block alloc 20us 100M at 2\n block free 30us 100M at 2\n end";

    #[test]
    fn room_for_a_larger_batch_is_said_as_a_factor() {
        let found = found(&MemoryUnderused, &format!("{WEIGHTS}{STEPS}"));
        assert_eq!(
            found[0].title,
            "GPU 0: 300 MiB of 0.98 GiB used at the peak; the batch can grow to 6 times its size"
        );
        silent(&MemoryUnderused, &format!("{WEIGHTS}{STEPS}").replace("200M", "500M"));
    }

    #[test]
    fn abstains_without_events_a_size_or_steps() {
        abstains(
            &MemoryUnderused,
            "track main\n step request 0..40ms\n stream 7\n kernel gemm 1ms..2ms",
            "not recorded",
        );
        abstains(&MemoryUnderused, "block alloc 1us 60M at 1", "size of the device's memory");
        abstains(&MemoryUnderused, WEIGHTS, "no steps");
    }
}
