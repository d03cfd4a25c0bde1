//! `low-occupancy`: kernels whose grid has fewer blocks than the device has processors leave most of it empty.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::roofline;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Class;
use analysis::device::kernel_name;
use analysis::device::step_kernels::StepKernels;
use analysis::phrase;
use analysis::stats::share::Tally;
use analysis::steps::spans::Spans;

pub const CODE: RuleCode = RuleCode::new("low-occupancy");

pub struct LowOccupancy;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.2, Unit::Share, "below it the empty part would go unnoticed");
const MIN_KERNEL_NS: Threshold = Threshold::new(
    CODE,
    "min_kernel_ns",
    10_000.0,
    Unit::Nanoseconds,
    "shorter kernels cost their launch time, however full the GPU is",
);

const MAX_SM_SHARE: Threshold =
    Threshold::new(CODE, "max_sm_share", 0.5, Unit::Share, "a batch twice as large would fit beside it");

impl Rule for LowOccupancy {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_KERNEL_NS, MAX_SM_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Kernels of {min_kernel_ns} or more that fill at most {max_sm_share} of the GPU's SMs run for {min_share} of the step or more.",
            why: "A block runs on one SM. A grid of 16 blocks leaves 116 of an H200's 132 SMs empty however long it runs; more work beside it would cost nothing. Collectives use few blocks on purpose and do not count, nor does what runs beside another kernel. No gain is given: a step does not get shorter by giving it more to do, but a larger batch is free until the SMs are full.",
            needs: "GPU operations with grid sizes, on a GPU whose number of SMs was recorded.",
            example: "41 % of the step uses at most 50 % of the GPU's 132 SMs, mostly decode_attention (16 blocks)",
        }
    }

    fn sets_pace(&self) -> bool {
        true
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &["Or overlap other work, in a second stream: parts that do not depend on each other."]
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some(device) = case
            .kernels()
            .iter()
            .max_by_key(|device| device.rows.iter().map(|row| row.ns).fold(0, u64::saturating_add))
        else {
            return Verdict::Silent;
        };
        let Some(processors) = device.device(case).and_then(|device| device.multiprocessors).filter(|count| *count > 0)
        else {
            return Verdict::Abstain("number of SMs not recorded".into());
        };
        if case.timeline.gpu.shapes.is_empty() {
            return Verdict::Abstain("grid sizes not recorded".into());
        }
        let tally = alone(case, device, |index| fills_little(case, device, index, processors));
        if tally.mid() < case.threshold(MIN_SHARE) {
            return Verdict::Silent;
        }
        let pieces = device.pieces(case, |index| fills_little(case, device, index, processors));
        let work = &case.timeline.gpu.work;
        let longest = pieces.iter().max_by_key(|index| work.dur[**index as usize]).map_or(0, |index| *index as usize);
        let row = device.rows.iter().find(|row| row.name.0 == work.name[longest]);
        let place = row.map(|row| roofline::place(case, row)).unwrap_or_default();
        let finding = Finding {
            code: CODE,
            title: format!(
                "{} of {} uses at most {} of the GPU's {processors} SMs, mostly {} ({} blocks)",
                phrase::percent(tally.mid()),
                case.the_step(),
                case.threshold_text(MAX_SM_SHARE),
                kernel_name::brief(place.kernel.as_deref().unwrap_or("")),
                phrase::count(blocks(case, longest).unwrap_or(0))
            ),
            place,
            gain: None,
            severity: Severity::Low,
            certainty: Certainty::seen(tally.repeats()),
            evidence: vec![
                Evidence::at("longest", None, work.start[longest], work.end(longest)),
                Evidence::new(format!("{} of them in the steps", phrase::count(pieces.len() as u64)))
                    .number("share", tally.mid()),
            ],
            actions: vec![
                "Increase the batch: more work costs nothing until the SMs are full.".into(),
                Action::torch(
                    "Or overlap other work: with torch.cuda.stream(torch.cuda.Stream()): ... for parts that do not depend on each other.",
                ),
            ],
            verify: "Record with twice the batch: a step should take hardly longer.".into(),
        };
        finding.into()
    }
}

/// Whether the device is so empty for so long that neither its arithmetic nor its memory sets the pace.
pub fn is_empty(case: &Case, device: &StepKernels) -> bool {
    let processors = device.device(case).and_then(|device| device.multiprocessors).unwrap_or(0);
    alone(case, device, |index| fills_little(case, device, index, processors)).mid() >= case.threshold(MIN_SHARE)
}

fn blocks(case: &Case, index: usize) -> Option<u64> {
    case.timeline
        .gpu
        .shape(index)
        .map(|shape| shape.grid.iter().fold(1u64, |all, side| all.saturating_mul(u64::from(*side))))
}

fn fills_little(case: &Case, device: &StepKernels, index: usize, processors: u32) -> bool {
    case.timeline.gpu.work.dur[index] >= (case.threshold(MIN_KERNEL_NS) as u64)
        && blocks(case, index)
            .is_some_and(|blocks| blocks as f64 <= case.threshold(MAX_SM_SHARE) * f64::from(processors))
        && device.kind(case, index).class != Class::Collective
}

/// The time in which only such kernels run.
fn alone(case: &Case, device: &StepKernels, fits: impl Fn(usize) -> bool) -> Tally {
    let work = &case.timeline.gpu.work;
    let (mut those, mut others) = (Vec::new(), Vec::new());
    device.each(case, |_, index| {
        let all = if fits(index) { &mut those } else { &mut others };
        all.push((work.start[index], work.end(index)));
    });
    let alone = Spans::union(those).minus(&Spans::union(others));
    let mut tally = Tally::default();
    for window in &device.windows {
        tally.add(alone.overlap(window.start, window.end) as f64, (window.end - window.start) as f64);
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(device: &str, grid: &str) -> String {
        format!(
            "{device}\n track main\n repeat 20 every 10ms\n step r 0..10ms\n api cudaLaunchKernel 0..10us\n stream 7\n kernel decode 20us..6ms {grid}\n end"
        )
    }
    const H200: &str = "device 0 NVIDIA_H200 sms 132";

    #[test]
    fn a_grid_of_few_blocks() {
        let found = found(&LowOccupancy, &steps(H200, "grid 8,2 block 128"));
        assert_eq!(
            found[0].title,
            "60 % of the step uses at most 50 % of the GPU's 132 SMs, mostly decode (16 blocks)"
        );
        assert!(found[0].gain.is_none() && found[0].actions.len() == 2);
    }

    #[test]
    fn silent_when_the_grid_is_large_and_without_a_gpu() {
        silent(&LowOccupancy, &steps(H200, "grid 128 block 128"));
        silent(&LowOccupancy, &steps(H200, "grid 16 block 128").replace("..6ms", "..25us"));
        let beside =
            steps(H200, "grid 16 block 128").replace(" end", " stream 8\n kernel gemm 20us..6ms grid 512\n end");
        silent(&LowOccupancy, &beside);
        silent(&LowOccupancy, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_processors_and_without_grids() {
        abstains(&LowOccupancy, &steps("device 0 NVIDIA_H200", "grid 8 block 128"), "number of SMs");
        abstains(&LowOccupancy, &steps(H200, ""), "grid sizes");
    }
}
