//! `hidden-memory`: memory of a device that the framework's allocator does not know of: what the program or its libraries took of the driver (`recorded`),
//! and what only the driver's own count shows (`counted`).

mod counted;
mod recorded;

use crate::measures::outside_memory::{self, DriftLevels};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use timeline::driver_memory::MemoryPlace;

pub const CODE: RuleCode = RuleCode::new("hidden-memory");

pub struct HiddenMemory;

const MIN_CALLS: Threshold =
    Threshold::new(CODE, "min_calls", 8.0, Unit::Count, "a handful of allocations is a buffer that was taken late");
const MIN_GROWTH: Threshold =
    Threshold::new(CODE, "min_growth", 1_048_576.0, Unit::Bytes, "less takes days to matter, and every library has it");
const MIN_GROWTH_SHARE: Threshold = Threshold::new(
    CODE,
    "min_growth_share",
    0.01,
    Unit::Share,
    "of what the process takes of the device at most: less is not what fills a GPU",
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
    "steady growth has a third of it in the last third of the steps; what fills up has less than half of that",
);
const MIN_BYTES: Threshold = Threshold::new(
    CODE,
    "min_bytes",
    268_435_456.0,
    Unit::Bytes,
    "a step, a spike or a level of less: workspaces of cuBLAS and cuDNN and modules that are loaded late take as much",
);
const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.1,
    Unit::Share,
    "of what the process takes of the device at most: less leaves the allocator's figures a good measure",
);
const MIN_UNRECORDED: Threshold = Threshold::new(
    CODE,
    "min_unrecorded",
    67_108_864.0,
    Unit::Bytes,
    "growth by no recorded call: kernels that are loaded when they are first used, and their stacks, take tens of MiB",
);
const MIN_CONTEXT: Threshold = Threshold::new(
    CODE,
    "min_context",
    1_610_612_736.0,
    Unit::Bytes,
    "a context with PyTorch's libraries takes 0.5 to 1 GiB in every program",
);
const MIN_OTHERS: Threshold = Threshold::new(
    CODE,
    "min_others",
    1_073_741_824.0,
    Unit::Bytes,
    "of other processes: a display, a monitor or an idle context takes less",
);

impl Rule for HiddenMemory {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[
            MIN_CALLS,
            MIN_GROWTH,
            MIN_GROWTH_SHARE,
            MIN_TREND,
            MIN_LATE_SHARE,
            MIN_BYTES,
            MIN_SHARE,
            MIN_UNRECORDED,
            MIN_CONTEXT,
            MIN_OTHERS,
        ]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "GPU memory that PyTorch's allocator does not know of grows from step to step, comes in one step of {min_bytes} or more, or takes {min_share} of what the process takes of the device.",
            why: "torch.cuda.memory_stats() and snapshots show only what PyTorch took of the driver. Libraries (NCCL, cuDNN, TensorRT) and extensions call cudaMalloc themselves; the CUDA context, loaded kernels and other processes take memory without any call of this program. Recorded calls beside the allocator's are followed over the steps: a drift (at least {min_calls} allocations that are never freed, with the trend that {rule} asks for) is a leak outside PyTorch; one jump is a workspace, a communicator or a graph; what comes and goes inside of steps costs calls that wait. What NVML counts beyond all calls is the context, and, after the first step, growth by no recorded call. Where PyTorch's blocks were not recorded, only a drift is said, for its own segments are among the calls then. Without NVML only recorded calls are looked at.",
            needs: "CUDA memory calls (`inferscope run` records them); PyTorch's blocks (`--memory-events gpu`) tell them from its own; NVML for what no call took.",
            example: "GPU 0 memory grows by 32.0 MiB a step outside PyTorch: 1.00 GiB by cudaMalloc in infer (engine.py:44)",
        }
    }

    fn mentions(&self) -> &'static [RuleCode] {
        &[super::leak::CODE]
    }

    fn look(&self, case: &Case) -> Verdict {
        if let Some(verdict) = outside_memory::not_recorded(case) {
            return verdict;
        }
        let devices = case.outside_memory().iter().filter(|one| matches!(one.place, MemoryPlace::Device(_)));
        let mut found: Vec<_> = devices.filter_map(|one| recorded::finding(case, one)).collect();
        found.extend(case.attribution().iter().flat_map(|one| counted::findings(case, one)));
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

/// From which growth on a process that takes so much at most is said to drift.
fn drift(case: &Case, least: Threshold, peak: u64) -> DriftLevels {
    DriftLevels {
        bytes: case.threshold(least).max(case.threshold(MIN_GROWTH_SHARE) * peak as f64),
        trend: case.threshold(MIN_TREND),
        late: case.threshold(MIN_LATE_SHARE),
    }
}

/// From which size on a step, a spike or a level is worth a word.
fn least(case: &Case, peak: u64) -> f64 {
    case.threshold(MIN_BYTES).max(case.threshold(MIN_SHARE) * peak as f64)
}

#[cfg(test)]
mod tests;
