//! `pinned-growth`: pinned memory of the host grows from step to step and is not given back.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::outside_memory::{self, DriftLevels, drifts, held, of, rate, rises_again, said};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::memory::outside::OutsideMemory;
use analysis::phrase;
use timeline::driver_memory::MemoryPlace;

pub const CODE: RuleCode = RuleCode::new("pinned-growth");

pub struct PinnedGrowth;

const MIN_CALLS: Threshold =
    Threshold::new(CODE, "min_calls", 8.0, Unit::Count, "a handful of allocations are staging buffers");
const MIN_BYTES: Threshold = Threshold::new(
    CODE,
    "min_bytes",
    16_777_216.0,
    Unit::Bytes,
    "PyTorch keeps pinned buffers in powers of two: it takes some of each size before it reuses them",
);
const MIN_TREND: Threshold = Threshold::new(
    CODE,
    "min_trend",
    2.58,
    Unit::Times,
    "standard deviations: chance gives a trend like this once in a hundred places",
);
const MIN_LATE_SHARE: Threshold = Threshold::new(
    CODE,
    "min_late_share",
    1.0 / 6.0,
    Unit::Share,
    "steady growth has a third of it in the last third of the steps; a cache that fills up has less than half of that",
);

impl Rule for PinnedGrowth {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_CALLS, MIN_BYTES, MIN_TREND, MIN_LATE_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Pinned memory of the host grows over the steps, by {min_calls} allocations and {min_bytes} or more, and is not freed.",
            why: "Pinned pages cannot be swapped out: they are missing for the page cache and for other programs, and a machine that runs out of them kills the process. pin_memory() in each step with results that are kept, or a queue of batches that grows, takes more and more of it; so does cudaHostRegister without its cudaHostUnregister. PyTorch keeps what it once pinned for reuse: that fills up and stays, which is no finding. Counted are cudaHostAlloc, cudaMallocHost, cuMemHostAlloc and cudaHostRegister with what frees them, at the end of each step.",
            needs: "CUDA memory calls (`inferscope run` records them).",
            example: "Pinned host memory grows by 8.00 MiB a step: 320 MiB by cudaHostAlloc in collate (loader.py:31)",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(verdict) = outside_memory::not_recorded(case) {
            return verdict;
        }
        let pinned = case.outside_memory().iter().filter(|one| one.place == MemoryPlace::Pinned);
        let found: Vec<Finding> = pinned.filter_map(|one| finding(case, one)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn finding(case: &Case, one: &OutsideMemory) -> Option<Finding> {
    let levels = DriftLevels {
        bytes: case.threshold(MIN_BYTES),
        trend: case.threshold(MIN_TREND),
        late: case.threshold(MIN_LATE_SHARE),
    };
    let count: u64 = one.grown.iter().map(|taken| taken.count).sum();
    let top = one.grown.first()?;
    if !drifts(&one.course, &levels) || (count as f64) < case.threshold(MIN_CALLS) {
        return None;
    }
    let mut evidence = vec![
        Evidence::new(format!(
            "{} after the start that nothing freed, {} of them by {}",
            phrase::counted(count, "allocation"),
            phrase::count(top.count),
            said(top)
        ))
        .number("bytes", one.course.growth() as f64)
        .number("allocations", count as f64),
        Evidence::new(held(&one.course)).number("trend", one.course.trend),
    ];
    if let Some(ram) = case.timeline.info.host.ram_bytes.filter(|ram| *ram > 0) {
        let share = one.course.last() as f64 / ram as f64;
        evidence.push(Evidence::new(format!(
            "{} pinned in the end, {} of the machine's memory",
            phrase::bytes(one.course.last()),
            phrase::percent(share)
        )));
    }
    Some(Finding {
        code: CODE,
        title: format!(
            "Pinned host memory{} grows {}: {} by {}",
            of(case, one.process),
            rate(&one.course),
            phrase::bytes(one.course.last()),
            said(top)
        ),
        place: top.site.place.clone(),
        gain: None,
        severity: Severity::Medium,
        certainty: Certainty::seen(rises_again(&one.course)),
        evidence,
        actions: vec![
            Action::new("Pin one buffer at start-up and copy each batch into it.")
                .or_torch("torch.empty(shape, pin_memory=True) once, then buffer.copy_(batch)"),
            "Limit the queue of batches that wait: what is in it stays pinned.".into(),
            "Give each cudaHostRegister its cudaHostUnregister, and each cudaHostAlloc its cudaFreeHost.".into(),
        ],
        verify: "Record again: pinned memory is level after the first steps.".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const STEPS: &str = "device 0 NVIDIA_H200 memory 80G\n track main\n repeat 40 every 10ms\n step request 0..9ms\n
        call collate@loader.py:31 1ms..3ms\n api cudaHostAlloc 1ms..2ms\n alloc 2ms 8388608 at 7 each pinned\n";

    #[test]
    fn buffers_that_are_never_freed_are_found_with_their_line() {
        let found = found(&PinnedGrowth, &format!("{STEPS} end"));
        assert_eq!(
            found[0].title,
            "Pinned host memory grows by 8.00 MiB a step: 320 MiB by cudaHostAlloc in collate (loader.py:31)"
        );
        assert_eq!((found[0].place.line, found[0].severity), (Some(31), Severity::Medium));
    }

    #[test]
    fn buffers_that_are_freed_or_kept_for_reuse_are_none() {
        silent(&PinnedGrowth, &format!("{STEPS} free 5ms 0 at 7 each\n end"));
        let early =
            "device 0 GPU\n track main\n repeat 40 every 10ms\n step request 0..9ms\n end\n repeat 8 every 10ms\n
            api cudaHostAlloc 1ms..2ms\n alloc 2ms 8388608 at 7 each pinned\n end";
        silent(&PinnedGrowth, early);
        silent(&PinnedGrowth, "device 0 GPU\n track main\n step request 0..40ms\n alloc 1ms 4096 at 7");
    }

    #[test]
    fn abstains_without_calls() {
        abstains(&PinnedGrowth, "track main\n step request 0..40ms\n stream 7\n kernel gemm 1ms..2ms", "not recorded");
    }
}
