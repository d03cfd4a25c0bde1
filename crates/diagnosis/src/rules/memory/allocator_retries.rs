//! `allocator-retries`: the allocator gives its cache back to the driver to be able to serve a request.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::allocators;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::AllocatorMemory;
use analysis::phrase;
use timeline::memory::MemoryEventKind;

pub const CODE: RuleCode = RuleCode::new("allocator-retries");

pub struct AllocatorRetries;

const MIN_RETRIES: Threshold =
    Threshold::new(CODE, "min_retries", 2.0, Unit::Count, "one may be the program's own torch.cuda.empty_cache()");

impl Rule for AllocatorRetries {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_RETRIES]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "At least {min_retries} times, segments are given back to the driver and one is asked for at once.",
            why: "When cudaMalloc fails, the allocator waits for the device, frees cached segments and tries again: milliseconds in which nothing runs, and the last stage before an out-of-memory error. In the events this is segments freed with nothing but a new segment after them. A program that empties the cache itself before it allocates looks the same, and costs the same.",
            needs: "Allocator events: a memory snapshot of PyTorch recorded with `torch.cuda.memory._record_memory_history()`.",
            example: "GPU 0: the allocator freed cached segments and retried 5 times (1.20 GiB freed)",
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

/// Runs of freed segments that end with a new one, and the bytes freed in them.
fn retries(case: &Case, one: &AllocatorMemory) -> (u64, u64) {
    let (mut retries, mut bytes, mut freed) = (0, 0u64, 0u64);
    for event in case.timeline.memory.events.iter().filter(|event| event.allocator == one.allocator) {
        match event.kind {
            MemoryEventKind::SegmentFree | MemoryEventKind::SegmentUnmap => freed = freed.saturating_add(event.bytes),
            MemoryEventKind::SegmentAlloc | MemoryEventKind::SegmentMap if freed > 0 => {
                retries += 1;
                bytes = bytes.saturating_add(freed);
                freed = 0;
            }
            _ => freed = 0,
        }
    }
    (retries, bytes)
}

fn of(case: &Case, one: &AllocatorMemory) -> Option<Finding> {
    let (retries, bytes) = retries(case, one);
    if (retries as f64) < case.threshold(MIN_RETRIES) {
        return None;
    }
    let mut actions: Vec<Action> = Vec::new();
    actions.extend(allocators::expandable_action(case, one.allocator).map(Action::from));
    actions.push(
        "Leave the allocator more room: a smaller batch, a shorter context, or less for the engine's KV cache.".into(),
    );
    actions.push("Remove torch.cuda.empty_cache() if the program calls it before it allocates.".into());
    Some(Finding {
        code: CODE,
        title: format!(
            "{}: the allocator freed cached segments and retried {retries} times ({} freed)",
            allocators::name(case, one.allocator),
            phrase::bytes(bytes)
        ),
        place: analysis::place::Place::default(),
        gain: None,
        severity: Severity::High,
        certainty: Certainty::seen((retries as f64 + 1.0) / (retries as f64 + 2.0)),
        evidence: vec![
            Evidence::new(format!("{retries} times a segment was asked for right after others were freed"))
                .number("retries", retries as f64),
            allocators::expandable_evidence(case, one.allocator),
        ],
        actions,
        verify: "Record again: num_alloc_retries in torch.cuda.memory_stats() stays 0.".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const STEP: &str =
        "repeat 10 every 1ms\n block alloc 20us 64M at 1 main>forward@model.py:7\n block free 30us 64M at 1\n";

    #[test]
    fn freed_and_asked_for_at_once_is_a_retry() {
        let text = format!(
            "{STEP} segment free 40us 20M at 2\n segment free 41us 20M at 3\n segment alloc 42us 40M at 4\n end"
        );
        let found = found(&AllocatorRetries, &text);
        assert_eq!(found[0].title, "GPU 0: the allocator freed cached segments and retried 10 times (400 MiB freed)");
    }

    #[test]
    fn silent_where_the_cache_is_emptied_once_or_nothing_follows() {
        silent(&AllocatorRetries, &format!("{STEP} segment free 40us 20M at 2\n end"));
        silent(&AllocatorRetries, &format!("{STEP} end\n segment free 20ms 20M at 2\n segment alloc 21ms 20M at 2"));
    }

    #[test]
    fn abstains_without_events() {
        abstains(
            &AllocatorRetries,
            "track main\n step request 0..40ms\n stream 7\n kernel gemm 1ms..2ms",
            "not recorded",
        );
    }
}
