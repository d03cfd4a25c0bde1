//! `memory-near-full`: what the allocator reserves at its peak is almost all that the device has.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::allocators;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::AllocatorMemory;
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("memory-near-full");

pub struct MemoryNearFull;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.92,
    Unit::Share,
    "of the device: the CUDA context, libraries and NCCL take some percent that the allocator does not know of",
);

impl Rule for MemoryNearFull {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The allocator's peak takes at least {min_share} of the device's memory.",
            why: "The next longer input, the next CUDA graph or another process then ends in an out-of-memory error. What the allocator reserves counts, for that is what nobody else can have.",
            needs: "Allocator events or segments, and the size of the device's memory.",
            example: "GPU 0: the allocator reserves 76.1 GiB of 80.0 GiB at its peak (95 %)",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.timeline.memory.cut {
            return Verdict::Abstain(allocators::EVENTS_MISSING.into());
        }
        if case.memory().is_empty() {
            return allocators::not_recorded(case, allocators::NO_EVENTS);
        }
        let sized: Vec<(&AllocatorMemory, u64)> = allocators::sized(case);
        if sized.is_empty() {
            return Verdict::Abstain(allocators::NO_SIZE.into());
        }
        let found: Vec<Finding> = sized.into_iter().filter_map(|(one, total)| of(case, one, total)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn of(case: &Case, one: &AllocatorMemory, total: u64) -> Option<Finding> {
    let peak = one.history.reserved_peak.unwrap_or(one.history.peak);
    let share = peak as f64 / total as f64;
    if share < case.threshold(MIN_SHARE) {
        return None;
    }
    let holder = one.peak.by_place.iter().find(|holder| holder.stack.0 != 0);
    let mut evidence = vec![
        Evidence::new(format!("{} of it in use at the peak", phrase::bytes(one.history.peak)))
            .number("bytes", peak as f64),
    ];
    evidence.extend(holder.map(|holder| {
        Evidence::new(format!("{} holds {} of that", phrase::place(&holder.place), phrase::bytes(holder.bytes)))
    }));
    let mut actions: Vec<Action> = Vec::new();
    actions.extend(allocators::expandable_action(case, one.allocator).map(Action::from));
    actions.push(
        "Hold less at the peak: a smaller batch, a shorter context, weights in a smaller type (torch.bfloat16, int8)."
            .into(),
    );
    actions.push(
        "Free what is not needed at the peak: del large tensors before the next allocation, not after it.".into(),
    );
    Some(Finding {
        code: CODE,
        title: format!(
            "{}: the allocator reserves {} of {} at its peak ({})",
            allocators::name(case, one.allocator),
            phrase::bytes(peak),
            phrase::bytes(total),
            phrase::percent(share)
        ),
        place: holder.map(|holder| holder.place.clone()).unwrap_or_default(),
        gain: None,
        severity: Severity::Medium,
        certainty: Certainty::seen(share.min(1.0)),
        evidence,
        actions,
        verify: "Record again: the peak leaves more of the device free.".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    #[test]
    fn a_peak_near_the_size_of_the_device_is_found() {
        let text = "device 0 NVIDIA_H200 memory 1G\n segment alloc 1us 990M at 1\n block alloc 2us 900M at 1 main>load@model.py:3";
        let found = found(&MemoryNearFull, text);
        assert_eq!(found[0].title, "GPU 0: the allocator reserves 990 MiB of 1.00 GiB at its peak (97 %)");
        assert_eq!(found[0].place.line, Some(3));
        silent(&MemoryNearFull, &text.replace("990M", "600M"));
    }

    #[test]
    fn abstains_without_events_or_without_a_size() {
        abstains(
            &MemoryNearFull,
            "track main\n step request 0..40ms\n stream 7\n kernel gemm 1ms..2ms",
            "not recorded",
        );
        abstains(&MemoryNearFull, "block alloc 1us 60M at 1", "size of the device's memory");
    }
}
