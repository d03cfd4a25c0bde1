//! `oom-near-miss`: a request for GPU memory failed, and the program went on; or was about to end.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::allocators;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use analysis::AllocatorMemory;
use analysis::memory::who;
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("oom-near-miss");

pub struct OomNearMiss;

impl Rule for OomNearMiss {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "A request for GPU memory failed.",
            why: "The allocator records what was asked for and what the device had free when a request fails, also where the program catches the error and goes on. Beside it stand what the allocator itself had free, and its largest hole: where that is free but split, the memory was there and could not be used.",
            needs: "Allocator events: a memory snapshot of PyTorch recorded with `torch.cuda.memory._record_memory_history()`.",
            example: "GPU 0: a request of 8.00 GiB failed with 100 MiB free on the device (handle, serve.py:44)",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let recorded = |one: &&AllocatorMemory| one.history.allocs > 0 || !one.history.failed.is_empty();
        let all: Vec<&AllocatorMemory> = case.memory().iter().filter(recorded).collect();
        if all.is_empty() {
            return allocators::not_recorded(case, allocators::NO_EVENTS);
        }
        let found: Vec<Finding> = all.iter().filter_map(|one| of(case, one)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn of(case: &Case, one: &AllocatorMemory) -> Option<Finding> {
    let events = &case.timeline.memory.events;
    let last = &events[*one.history.failed.last()?];
    let place = who::place(case.timeline, case.frames.home(last.stack));
    let at = if place.function.is_some() { format!(" ({})", phrase::place(&place)) } else { String::new() };
    let mut evidence = vec![
        Evidence::new(format!("{} failed", phrase::counted(one.history.failed.len() as u64, "request")))
            .number("requests", one.history.failed.len() as f64)
            .number("bytes", last.bytes as f64),
    ];
    let mut actions: Vec<Action> = Vec::new();
    if let Some(map) = &one.map {
        evidence.push(Evidence::new(format!(
            "the allocator held {} free in {}, largest {}; {} in use",
            phrase::bytes(map.free),
            phrase::counted(map.free_blocks, "hole"),
            phrase::bytes(map.largest_free),
            phrase::bytes(map.active)
        )));
        if map.free >= last.bytes && map.largest_free < last.bytes {
            evidence.push(Evidence::new("that is enough for the request, but split"));
        }
    }
    evidence.push(allocators::expandable_evidence(case, one.allocator));
    actions.extend(allocators::expandable_action(case, one.allocator).map(Action::from));
    if let Some(holder) = one.peak.by_place.iter().find(|holder| holder.stack.0 != 0) {
        let (bytes, place) = (phrase::bytes(holder.bytes), phrase::place(&holder.place));
        actions.push(format!("Reduce what the largest holder keeps at the peak: {place}, {bytes}.").into());
    }
    actions.push("Ask for less at once: a smaller batch, a shorter context, or the work in chunks.".into());
    Some(Finding {
        code: CODE,
        title: format!(
            "{}: a request of {} failed with {} free on the device{at}",
            allocators::name(case, one.allocator),
            phrase::bytes(last.bytes),
            phrase::bytes(last.address)
        ),
        place,
        gain: None,
        severity: Severity::High,
        certainty: Certainty::seen(1.0), // The allocator recorded it.
        evidence,
        actions,
        verify: "Record again under the same load: num_ooms in torch.cuda.memory_stats() stays 0.".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    #[test]
    fn a_failed_request_is_said_with_what_was_free() {
        let text = "block alloc 1us 60M at 1M main>load@model.py:3\n oom 2us 80M free 10M\n reserved 200M at 1M\n holds 60M active\n
            holds 50M free\n holds 40M active\n holds 50M free";
        let found = found(&OomNearMiss, text);
        assert_eq!(found[0].title, "GPU 0: a request of 80.0 MiB failed with 10.0 MiB free on the device");
        assert!(found[0].evidence.iter().any(|one| one.text.contains("but split")), "{:?}", found[0].evidence);
        assert!(found[0].actions.iter().any(|action| action.contains("load (model.py:3), 60.0 MiB")));
    }

    #[test]
    fn silent_without_failures_and_abstains_without_events() {
        silent(&OomNearMiss, "block alloc 1us 60M at 1 main>load@model.py:3");
        abstains(&OomNearMiss, "track main\n step request 0..40ms\n stream 7\n kernel gemm 1ms..2ms", "not recorded");
    }
}
