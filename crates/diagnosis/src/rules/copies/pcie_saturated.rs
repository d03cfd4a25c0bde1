//! `pcie-saturated`: the link between host and device is as fast as it can be, and the step waits for it.

use crate::action::Action;
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Finding, Severity};
use crate::measures::confidence;
use crate::measures::on_link::{self, OnLink};
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::gpu::moved::Copy;
use analysis::phrase;
use analysis::place::Place;
use replay::gain::Gain;

pub const CODE: RuleCode = RuleCode::new("pcie-saturated");

pub struct PcieSaturated;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.10,
    Unit::Share,
    "sending fewer bytes changes the program: a tenth of the step is worth that",
);
const MIN_LINK_SHARE: Threshold =
    Threshold::new(CODE, "min_link_share", 0.7, Unit::Share, "links reach little more in practice");
const MIN_BYTES: Threshold =
    Threshold::new(CODE, "min_bytes", 1_048_576.0, Unit::Bytes, "smaller copies do not reach the link speed");

impl Rule for PcieSaturated {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_LINK_SHARE, MIN_BYTES]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Copies of {min_bytes} or more at {min_link_share} of the link speed or above take {min_share} of the step or more exposed.",
            why: "Such copies cannot get faster: either fewer bytes cross the link, or they cross while kernels run. The gain is their time overlapped with the kernels of the step, as far as these last: all of it at best, nothing at worst, half in the middle.",
            needs: "GPU copies, and link counters (`gpu_pcie_link_gen`, `gpu_pcie_link_width`) on a machine with one GPU.",
            example: "PCIe link saturated: 2.10 GiB per step at 54.1 of 63.0 GB/s, exposed for 46 % of the step",
        }
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Memory)
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Send fewer bytes: small types as they are, converted on the GPU.",
            "Copy the next batch in a separate stream while this one is computed: cudaMemcpyAsync from pinned memory.",
        ]
    }

    fn look(&self, case: &Case) -> Verdict {
        let fits = |copy: &Copy| copy.piece.bytes >= (case.threshold(MIN_BYTES) as u64);
        let OnLink { moved, tally, link, speed } = match OnLink::most(case, fits, case.threshold(MIN_SHARE)) {
            Ok(found) => found,
            Err(verdict) => return verdict,
        };
        if speed < case.threshold(MIN_LINK_SHARE) * link.gb_per_s {
            return Verdict::Silent;
        }
        let device = case.gpu().and_then(|gpu| {
            gpu.devices.iter().find(|one| (one.process, one.ordinal) == (moved.process, moved.ordinal))
        });
        let kernels = device.map_or(0.0, |device| device.kernel_ns as f64 / device.window_ns.max(1) as f64);
        let most = 100.0 * tally.mid().min(kernels);
        let gain = Gain::up_to(most);
        let bytes: u64 =
            moved.all.iter().filter(|copy| fits(copy)).map(|copy| copy.piece.bytes).fold(0, u64::saturating_add);
        let longest = moved.all.iter().filter(|copy| fits(copy)).max_by_key(|copy| copy.exposed_ns);
        let finding = Finding {
            code: CODE,
            title: format!(
                "PCIe link saturated: {} per step at {speed:.1} of {:.1} GB/s, exposed for {} of {}",
                phrase::bytes(bytes / case.steps.count().max(1) as u64),
                link.gb_per_s,
                phrase::percent(tally.mid()),
                case.the_step()
            ),
            place: Place::default(),
            gain: Some(gain),
            severity: Severity::of_gain(&gain),
            certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
            evidence: on_link::evidence(&link, longest),
            actions: vec![
                Action::torch(
                    "Send fewer bytes: uint8 images and token ids as they are, converted on the GPU (x.to(device).float()).",
                ),
                Action::torch(
                    "Copy the next batch in a separate stream while this one is computed: torch.cuda.Stream(), non_blocking=True from pinned memory.",
                ),
                "Keep reused data on the GPU: weights, caches, tables.".into(),
            ],
            verify: proof::verify(case, most / 200.0),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(bytes: u64, link: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n stream 7\n api cudaMemcpyAsync 0..10us\n copy h2d 20us..4020us {bytes} pinned\n\
             api cudaLaunchKernel 20us..30us\n kernel k 4.1ms..9.9ms\n end\n {link}"
        )
    }
    const GEN5: &str = "counter host gpu_pcie_link_gen 0=1 1ms=5\n counter host gpu_pcie_link_width 0=16";

    #[test]
    fn a_full_link() {
        let found = found(&PcieSaturated, &steps(216_000_000, GEN5));
        assert_eq!(
            found[0].title,
            "PCIe link saturated: 206 MiB per step at 54.0 of 63.0 GB/s, exposed for 40 % of the step"
        );
        assert_eq!(found[0].gain.map(|gain| (gain.low, gain.high.round())), Some((0.0, 40.0)));
    }

    #[test]
    fn silent_for_slow_and_for_few_copies_and_without_a_gpu() {
        silent(&PcieSaturated, &steps(40_000_000, GEN5));
        silent(&PcieSaturated, &steps(216_000_000, GEN5).replace("20us..4020us 216000000", "20us..520us 27000000"));
        silent(&PcieSaturated, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_when_the_link_is_not_known() {
        abstains(&PcieSaturated, &steps(216_000_000, ""), "link");
        abstains(
            &PcieSaturated,
            &steps(216_000_000, "counter host gpu_pcie_link_gen 0=9\n counter host gpu_pcie_link_width 0=16"),
            "is unknown",
        );
    }
}
