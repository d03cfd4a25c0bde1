//! `reserved-unused`: the allocator has reserved memory that nothing used in the whole recording.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::allocators;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::AllocatorMemory;
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("reserved-unused");

pub struct ReservedUnused;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.2,
    Unit::Share,
    "of the reserved memory: a cache for the next peak needs some room",
);
const MIN_BYTES: Threshold =
    Threshold::new(CODE, "min_bytes", 268_435_456.0, Unit::Bytes, "less helps no other process on the GPU");

impl Rule for ReservedUnused {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_BYTES]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "At least {min_share} of the reserved memory, and {min_bytes}, is in segments that are wholly free and that the recorded peak does not need.",
            why: "PyTorch keeps what it once reserved. After loading or a single large request, gigabytes may stay reserved that other processes, NCCL or CUDA graphs could use. Only what lies in segments without a block in use is counted, for only that can be given back, and no more than what the peak of the recording leaves.",
            needs: "The allocator's segments and events: a recording with `--memory-events gpu`, at the end of its last step, or a memory snapshot of PyTorch recorded with `torch.cuda.memory._record_memory_history()`.",
            example: "GPU 0: 3.10 GiB of 9.20 GiB reserved is never used in the recording",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.timeline.memory.cut {
            return Verdict::Abstain(allocators::EVENTS_MISSING.into());
        }
        let all = allocators::with_events(case);
        if !all.iter().any(|one| one.last_map().is_some()) {
            return allocators::not_recorded(case, allocators::NO_EVENTS);
        }
        let found: Vec<Finding> = all.iter().filter_map(|one| of(case, one)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn of(case: &Case, one: &AllocatorMemory) -> Option<Finding> {
    let map = one.last_map().filter(|map| map.reserved > 0)?;
    let unused = map.reserved.saturating_sub(one.history.peak).min(map.releasable);
    let share = unused as f64 / map.reserved as f64;
    if share < case.threshold(MIN_SHARE) || (unused as f64) < case.threshold(MIN_BYTES) {
        return None;
    }
    let name = allocators::name(case, one.allocator);
    let evidence = vec![
        Evidence::new(format!(
            "the recording uses {} at its peak; {} lie in segments that are wholly free",
            phrase::bytes(one.history.peak),
            phrase::bytes(map.releasable)
        ))
        .number("bytes", unused as f64),
        allocators::expandable_evidence(case, one.allocator),
    ];
    let mut actions = Action::all([format!(
        "Call torch.cuda.empty_cache() once, after loading and warm-up: it gives {} back. Not in every step: each call makes the next ones wait for cudaMalloc.",
        phrase::bytes(map.releasable)
    )]);
    actions.extend(allocators::expandable_action(case, one.allocator).map(Action::from));
    actions
        .push("Load weights to the CPU first or with mmap=True, so that loading does not reserve memory twice.".into());
    Some(Finding {
        code: CODE,
        title: format!(
            "{name}: {} of {} reserved is never used in the recording",
            phrase::bytes(unused),
            phrase::bytes(map.reserved)
        ),
        place: analysis::place::Place::default(),
        gain: None,
        severity: Severity::Medium,
        certainty: Certainty::seen(unused as f64 / map.reserved.saturating_sub(one.history.peak).max(1) as f64),
        evidence,
        actions,
        verify: "Take another snapshot: reserved memory is close to the peak in use.".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const USED: &str = "block alloc 1us 100M at 1M main>run@a.py:3\n block free 2us 100M at 1M\n reserved 100M at 1M\n holds 100M free\n";

    #[test]
    fn what_the_peak_does_not_need_is_found() {
        let found = found(&ReservedUnused, &format!("{USED} reserved 900M at 2000M\n holds 900M free"));
        assert_eq!(found[0].title, "GPU 0: 900 MiB of 0.98 GiB reserved is never used in the recording");
        assert!(found[0].actions[0].contains("gives 0.98 GiB back"), "{:?}", found[0].actions);
    }

    #[test]
    fn silent_where_it_is_used_or_cannot_be_given_back() {
        silent(&ReservedUnused, USED);
        silent(&ReservedUnused, &format!("{USED} reserved 900M at 2000M\n holds 1M active\n holds 899M free"));
    }

    #[test]
    fn abstains_without_events() {
        abstains(
            &ReservedUnused,
            "track main\n step request 0..40ms\n stream 7\n kernel gemm 1ms..2ms",
            "not recorded",
        );
        abstains(&ReservedUnused, "reserved 900M at 2000M\n holds 900M free", "not recorded");
    }
}
