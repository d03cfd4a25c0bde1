//! `cudamalloc-in-steady-state`: the allocator still asks the driver for memory long after the start.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::allocators;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::AllocatorMemory;
use analysis::memory::who;
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("cudamalloc-in-steady-state");

pub struct CudamallocInSteadyState;

const MIN_CALLS: Threshold = Threshold::new(
    CODE,
    "min_calls",
    3.0,
    Unit::Count,
    "one late call is a request of a size that had not come before",
);
const MIN_EVENTS: Threshold = Threshold::new(
    CODE,
    "min_events",
    4.0,
    Unit::Times,
    "events to a late call: with fewer, the recording has only the start, whose end looks like a steady state",
);

impl Rule for CudamallocInSteadyState {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_CALLS, MIN_EVENTS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The allocator asks the driver for memory at least {min_calls} times in the second half of the recording.",
            why: "A cached block costs a microsecond, cudaMalloc costs hundreds, and it may wait for the device. In steady state everything should come from the cache; where it does not, sizes change from step to step, memory grows, or the cache is emptied again and again.",
            needs: "Allocator events: a memory snapshot of PyTorch recorded with `torch.cuda.memory._record_memory_history()`.",
            example: "GPU 0: 12 driver allocations (240 MiB) in the second half of the recording",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let all = allocators::with_events(case);
        if all.is_empty() {
            return allocators::not_recorded(case, allocators::NO_EVENTS);
        }
        let found: Vec<Finding> = all.iter().filter_map(|one| of(case, one)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn of(case: &Case, one: &AllocatorMemory) -> Option<Finding> {
    let events = &case.timeline.memory.events;
    let half = events.len() / 2;
    let late: Vec<usize> = one.history.segment_allocs.iter().copied().filter(|at| *at >= half).collect();
    let early = one.history.segment_allocs.len() - late.len();
    if (late.len() as f64) < case.threshold(MIN_CALLS)
        || (events.len() as f64) < case.threshold(MIN_EVENTS) * late.len() as f64
    {
        return None;
    }
    let bytes = late.iter().map(|at| events[*at].bytes).fold(0, u64::saturating_add);
    let returned = one.history.segment_frees.iter().filter(|at| **at >= half).count();
    let stacks = late.iter().map(|at| (events[*at].stack, events[*at].bytes));
    let places = who::by_place(case.timeline, &case.frames, stacks);
    let mut evidence = vec![
        Evidence::new(format!(
            "{early} in the first half, {} given back to the driver in the second",
            phrase::count(returned as u64)
        ))
        .number("calls", late.len() as f64)
        .number("bytes", bytes as f64),
    ];
    evidence.extend(places.iter().filter(|holder| holder.stack.0 != 0).take(3).map(|holder| {
        let calls = phrase::counted(holder.blocks, "call");
        Evidence::new(format!("{calls} for {} ({})", phrase::bytes(holder.bytes), phrase::place(&holder.place)))
    }));
    evidence.push(allocators::expandable_evidence(case, one.allocator));
    let emptied =
        "Remove torch.cuda.empty_cache() from the loop: what it gives back is asked for again in the next step.";
    let mut actions: Vec<Action> = Vec::new();
    actions.extend((returned > 0).then(|| emptied.into()));
    actions.push("Run the largest inputs first, as warm-up, so that every later size fits what is cached.".into());
    actions.push(
        "Pad inputs to a few fixed sizes, or round sizes: PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:8.".into(),
    );
    Some(Finding {
        code: CODE,
        title: format!(
            "{}: {} ({}) in the second half of the recording",
            allocators::name(case, one.allocator),
            phrase::counted(late.len() as u64, "driver allocation"),
            phrase::bytes(bytes)
        ),
        place: places.into_iter().find(|holder| holder.stack.0 != 0).map(|holder| holder.place).unwrap_or_default(),
        gain: None,
        severity: Severity::Medium,
        certainty: Certainty::seen((late.len() as f64 + 1.0) / (late.len() as f64 + 2.0)),
        evidence,
        actions,
        verify: "Record again: the second half has no driver allocations.".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const STEP: &str =
        "repeat 30 every 1ms\n block alloc 20us 64M at 1 main>forward@model.py:7\n block free 30us 64M at 1\n";

    #[test]
    fn late_driver_allocations_are_found_with_their_line() {
        let text = format!("{STEP} segment alloc 19us 20M at 5 each main>grow@model.py:12\n end");
        let found = found(&CudamallocInSteadyState, &text);
        assert_eq!(found[0].title, "GPU 0: 15 driver allocations (300 MiB) in the second half of the recording");
        assert_eq!(found[0].place.line, Some(12));
    }

    #[test]
    fn silent_where_only_the_start_allocates() {
        let start = "segment alloc 0 64M at 1\n segment alloc 0 20M at 2\n segment alloc 0 20M at 3\n segment alloc 0 20M at 4\n";
        silent(&CudamallocInSteadyState, &format!("{start}{STEP} end"));
    }

    #[test]
    fn abstains_without_events() {
        abstains(
            &CudamallocInSteadyState,
            "track main\n step request 0..40ms\n stream 7\n kernel gemm 1ms..2ms",
            "not recorded",
        );
    }
}
