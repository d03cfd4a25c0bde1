//! `low-pcie-bandwidth`: large copies from and to pinned memory are far slower than the link to the device.

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
use timeline::gpu::detail;

pub const CODE: RuleCode = RuleCode::new("low-pcie-bandwidth");

pub struct LowPcieBandwidth;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "the cause is in the machine: a few percent are worth a look");
const MIN_BYTES: Threshold =
    Threshold::new(CODE, "min_bytes", 8_388_608.0, Unit::Bytes, "copies of this size reach the speed of the link");
const MAX_LINK_SHARE: Threshold =
    Threshold::new(CODE, "max_link_share", 0.6, Unit::Share, "good links reach more than this");

impl Rule for LowPcieBandwidth {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_BYTES, MAX_LINK_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Copies of {min_bytes} or more from or to pinned memory reach less than {max_link_share} of the link speed and take {min_share} of the step or more exposed.",
            why: "Pinned copies of this size should come near the link speed. Far less means that the link is shared or badly placed: memory on another NUMA node, several GPUs or a network card copying at once, a virtual machine in between. Link generation and width come from the driver, at the best seen. The gain is at most this time at full link speed, at least nothing, and half of it in the middle.",
            needs: "Pinned copies, and link counters (`gpu_pcie_link_gen`, `gpu_pcie_link_width`) on a machine with one GPU.",
            example: "Pinned copies reach 11.2 GB/s on a 63.0 GB/s link and take 21 % of the step",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Memory)
    }

    fn fix(&self) -> Option<&'static str> {
        Some("pinned-copies")
    }

    fn look(&self, case: &Case) -> Verdict {
        let fits = |copy: &Copy| {
            copy.host_memory() == detail::PINNED && copy.piece.bytes >= (case.threshold(MIN_BYTES) as u64)
        };
        let OnLink { moved, tally, link, speed } = match OnLink::most(case, fits, case.threshold(MIN_SHARE)) {
            Ok(found) => found,
            Err(verdict) => return verdict,
        };
        if speed <= 0.0 || speed >= case.threshold(MAX_LINK_SHARE) * link.gb_per_s {
            return Verdict::Silent;
        }
        let gain = Gain::up_to(100.0 * tally.mid() * (1.0 - speed / link.gb_per_s));
        let longest = moved.all.iter().filter(|copy| fits(copy)).max_by_key(|copy| copy.piece.dur);
        let finding = Finding {
            code: CODE,
            title: format!(
                "Pinned copies reach {speed:.1} GB/s on a {:.1} GB/s link and take {} of {}",
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
                "Run on the GPU's NUMA node: numactl --cpunodebind=N --membind=N <command>, with N from nvidia-smi topo -m."
                    .into(),
                "Check the link and who shares it: nvidia-smi -q -d PCI, nvidia-smi dmon -s t.".into(),
            ],
            verify: proof::verify(case, gain.mid / 100.0),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(bytes: u64, memory: &str, link: &str) -> String {
        format!(
            "track main\n repeat 20 every 10ms\n step r 0..10ms\n stream 7\n api cudaMemcpyAsync 0..10us\n copy h2d 20us..4020us {bytes} {memory}\n\
             api cudaLaunchKernel 20us..30us\n kernel k 4.1ms..9.9ms\n end\n {link}"
        )
    }
    const GEN5: &str = "counter host gpu_pcie_link_gen 0=5\n counter host gpu_pcie_link_width 0=16";

    #[test]
    fn pinned_copies_at_a_fifth_of_the_link() {
        let found = found(&LowPcieBandwidth, &steps(40_000_000, "pinned", GEN5));
        assert_eq!(found[0].title, "Pinned copies reach 10.0 GB/s on a 63.0 GB/s link and take 40 % of the step");
        let gain = found[0].gain.unwrap();
        // At the most the 40 % less a sixth of them.
        assert!(gain.low == 0.0 && (gain.mid - 16.8).abs() < 0.5 && (gain.high - 33.6).abs() < 0.5, "{gain:?}");
        assert_eq!(gain.by, replay::gain::GainBy::Bounded);
    }

    #[test]
    fn silent_at_full_speed_from_pageable_memory_and_for_small_ones() {
        silent(&LowPcieBandwidth, &steps(220_000_000, "pinned", GEN5));
        silent(&LowPcieBandwidth, &steps(40_000_000, "pageable", GEN5));
        silent(&LowPcieBandwidth, &steps(4_000_000, "pinned", GEN5));
        silent(&LowPcieBandwidth, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_when_the_link_is_not_known() {
        abstains(&LowPcieBandwidth, &steps(40_000_000, "pinned", ""), "link");
    }
}
