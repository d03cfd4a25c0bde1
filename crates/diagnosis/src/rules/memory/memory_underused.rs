//! `memory-underused`: the peak leaves so much of the device free that the batch can grow.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::allocators;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::AllocatorMemory;
use analysis::dataflow::Batch;
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
            why: "Memory that steps allocate and free grows with the batch; weights do not. What the device has left, divided by what the steps take at the peak, is how much larger a batch can be as far as memory goes; what is kept over steps counts as growing with it, for it may be a cache of each item. The batch itself is said where the shapes of convolutions, attention, embeddings and normalisations agree on it. Whether a larger one is faster is another question.",
            needs: "Allocator events with steps, and the size of the device's memory; operator shapes for the batch.",
            example: "GPU 0: 22.0 GiB of 80.0 GiB used at the peak; the batch of 4 can grow to 24",
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
    let at_peak = |wanted: Category| {
        let own = one.peak.by_category.iter().find(|(kind, _, _)| *kind == wanted);
        own.map_or(0, |(_, bytes, _)| *bytes)
    };
    // What is kept over steps may be a cache of each item, or not: counted with the batch, the factor is at most too small.
    let (temporary, kept) = (at_peak(Category::Activations), at_peak(Category::Cache));
    let growing = temporary.saturating_add(kept);
    let fixed = peak.saturating_sub(growing) as f64;
    let times = (case.threshold(MAX_FILLED) * total as f64 - fixed) / growing as f64;
    if temporary == 0 || peak as f64 >= case.threshold(MAX_SHARE) * total as f64 || times < case.threshold(MIN_TIMES) {
        return None;
    }
    let batch = case.dataflow().batch(case.timeline);
    // Rounded down: the next one would not fit.
    let grown = |batch: &Batch| (batch.size as f64 * times) as u64;
    let mut evidence = vec![
        Evidence::new(format!(
            "at the peak {} are of the step, {} kept over steps, {} held throughout",
            phrase::bytes(temporary),
            phrase::bytes(kept),
            phrase::bytes(fixed as u64)
        ))
        .number("bytes", growing as f64)
        .number("times", times),
        Evidence::new(format!(
            "{} of the device filled with what steps allocate and keep {times:.1} times as large",
            case.threshold_text(MAX_FILLED)
        )),
    ];
    let grows = match &batch {
        Some(batch) => {
            let ops: Vec<String> =
                batch.ops.iter().map(|(name, count)| format!("{name} ({})", phrase::count(*count))).collect();
            evidence.push(
                Evidence::new(format!("the batch is {} in the shapes of {}", batch.size, ops.join(", ")))
                    .number("batch", batch.size as f64)
                    .number("batch_that_fits", grown(batch) as f64),
            );
            format!("the batch of {} can grow to {}", phrase::count(batch.size), phrase::count(grown(batch)))
        }
        None => {
            evidence
                .push(Evidence::new("the size of the batch is not known: no shapes of operators that agree on one"));
            format!("the batch can grow to {:.0} times its size", times.floor())
        }
    };
    let raise = match &batch {
        Some(batch) => format!("Raise the batch size, up to {},", phrase::count(grown(batch))),
        None => format!("Raise the batch size, up to {:.0} times,", times.floor()),
    };
    Some(Finding {
        code: CODE,
        title: format!(
            "{}: {} of {} used at the peak; {grows}",
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
            format!("{raise} and measure: throughput grows until the device is busy."),
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

    /// Of convolutions that take four images at a time.
    #[test]
    fn the_batch_is_said_where_shapes_tell_it() {
        let dims = "{\"Input~Dims\":[[4,3,224,224],[64,3,7,7]],\"Input~type\":[],\"device\":\"cuda:0\",\"turn\":[0,1]}";
        let ops: String = (0..4)
            .map(|at| format!("op aten::convolution {}us..{}us args {dims}\n", 11_000 + at, 11_001 + at))
            .collect();
        let found = found(&MemoryUnderused, &format!("{WEIGHTS}{STEPS}\n{ops}"));
        assert_eq!(found[0].title, "GPU 0: 300 MiB of 0.98 GiB used at the peak; the batch of 4 can grow to 26");
        assert!(found[0].evidence[2].text.contains("aten::convolution (4)"), "{:?}", found[0].evidence);
        let mixed = format!("{WEIGHTS}{STEPS}\n{ops}{}", ops.replace("[4,3", "[8,3").replace("11_", "12_"));
        assert!(crate::testing::found(&MemoryUnderused, &mixed)[0].title.contains("6 times"));
    }

    /// A cache of each item grows with the batch: without it the factor would be 6.
    #[test]
    fn what_is_kept_over_steps_counts_with_the_batch() {
        let kept = "block alloc 25us 10M at 3 each main>keep@cache.py:9\n end";
        let found = found(&MemoryUnderused, &format!("{WEIGHTS}{}", STEPS.replace("end", kept)));
        assert_eq!(
            found[0].title,
            "GPU 0: 400 MiB of 0.98 GiB used at the peak; the batch can grow to 3 times its size"
        );
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
