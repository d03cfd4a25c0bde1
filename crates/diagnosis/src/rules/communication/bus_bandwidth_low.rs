//! `bus-bandwidth-low`: large collectives move far less than the link between the devices could.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::collectives;
use crate::measures::confidence;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::device::kernel_kind::Class;
use analysis::phrase;
use analysis::place::Place;
use replay::gain::Left;
use replay::gain::{Gain, GainBy};
use std::collections::HashSet;

pub const CODE: RuleCode = RuleCode::new("bus-bandwidth-low");

pub struct BusBandwidthLow;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.05,
    Unit::Share,
    "the cause is in the machine or the library's settings: a twentieth of the step is worth a look",
);
const MIN_BYTES: Threshold =
    Threshold::new(CODE, "min_bytes", 8e6, Unit::Bytes, "smaller ones do not reach the link speed");
const MAX_RANKS: Threshold = Threshold::new(
    CODE,
    "max_ranks",
    8.0,
    Unit::Count,
    "more ranks are more than one machine, whose links are unknown",
);
const MAX_LINK_SHARE: Threshold =
    Threshold::new(CODE, "max_link_share", 0.4, Unit::Share, "good links reach more than this");

impl Rule for BusBandwidthLow {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_BYTES, MAX_RANKS, MAX_LINK_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Collectives of {min_bytes} or more among up to {max_ranks} ranks reach less than {max_link_share} of the link speed and take {min_share} of the step or more.",
            why: "The bytes a collective moves over the bus follow from its message size and the number of ranks (nearly twice the message for an all-reduce). Far less than the link's data-sheet speed means that it takes another path (PCI Express, a switch that is off), or that ranks wait for one of them. The gain is at most the recorded steps replayed at full link speed; at worst nothing changes, because waiting looks the same; half of it in the middle.",
            needs: "Collectives with their sizes (torch.profiler), on a GPU of the table of peaks that has such a link.",
            example: "Large collectives reach 41 GB/s on a 450 GB/s link and take 22 % of the step",
        }
    }

    fn changes_device_work(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let Some((device, share)) = collectives::most(case).filter(|(_, share)| *share >= case.threshold(MIN_SHARE))
        else {
            return Verdict::Silent;
        };
        let Some(link) = device.peaks(case).and_then(|peaks| peaks.link) else {
            return Verdict::Abstain("the GPU's interconnect is not in the table of peaks".into());
        };
        let all = collectives::messages(case, device);
        if all.is_empty() {
            return Verdict::NeedsTorch("collective sizes not recorded (torch.profiler writes them)".into());
        }
        let large: Vec<_> = all
            .into_iter()
            .filter(|one| one.bytes >= case.threshold(MIN_BYTES) && one.ranks <= case.threshold(MAX_RANKS))
            .collect();
        let dur = |index: u32| case.timeline.gpu.work.dur[index as usize] as f64;
        let (bytes, ns) =
            large.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.bytes * one.factor, sum.1 + dur(one.index)));
        let (speed, part) = (bytes / f64::max(ns, 1.0), ns / device.window_ns.max(1) as f64);
        if part < case.threshold(MIN_SHARE) || speed >= case.threshold(MAX_LINK_SHARE) * link {
            return Verdict::Silent;
        }
        let left = (speed / link).min(1.0);
        let work: Vec<u32> = large.iter().map(|one| one.index).collect();
        let those: HashSet<u32> = work.iter().copied().collect();
        let tally = device.tally(case, |index| those.contains(&(index as u32)));
        let gain = case.gain_of_work(device, vec![(work, Left::between(left, 1.0))]);
        let gain = Gain { by: GainBy::Bounded, ..gain };
        let row = device.rows.iter().find(|row| row.kind.class == Class::Collective);
        let finding = Finding {
            code: CODE,
            title: format!("Large collectives reach {speed:.0} GB/s on a {link:.0} GB/s link and take {} of {}", phrase::percent(part), case.the_step()),
            place: Place { kernel: row.map(|row| case.timeline.names.text(row.name).to_owned()), ..Place::default() },
            gain: Some(gain),
            severity: Severity::of_gain(&gain),
            certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
            evidence: vec![Evidence::new(format!("{} of {} or more; all collectives take {} of step time", phrase::counted(large.len() as u64, "collective"), case.threshold_text(MIN_BYTES), phrase::percent(share))).number("gb_per_s", speed)],
            actions: vec![
                "Check which path they take: NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=GRAPH,INIT <command>, nvidia-smi topo -m, nvidia-smi nvlink -s.".into(),
                "Compare with what the machine can do: nccl-tests' all_reduce_perf -b 8M -e 256M -f 2 -g 8.".into(),
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

    fn steps(device: &str, message: &str) -> String {
        format!(
            "device 0 {device}\n track main\n repeat 20 every 10ms\n step r 0..10ms\n op record_param_comms 0..20us {message}\n api cudaLaunchKernel 5us..10us\n\
             stream 7\n kernel ncclDevKernel_AllReduce_Sum_bf16_RING_LL 20us..4020us\n api cudaStreamSynchronize 30us..9ms\n end"
        )
    }

    #[test]
    fn a_link_of_which_little_is_used() {
        // 40 MB twice over 4 ms, less one rank's part of eight.
        let found = found(&BusBandwidthLow, &steps("NVIDIA_H200", "message allreduce,20000000,8,BFloat16"));
        assert_eq!(found[0].title, "Large collectives reach 18 GB/s on a 450 GB/s link and take 40 % of the step");
        let gain = found[0].gain.unwrap();
        assert!(gain.low == 0.0 && (gain.mid - 19.2).abs() < 1.0 && (gain.high - 38.4).abs() < 1.0, "{gain:?}");
        assert!(gain.by == GainBy::Bounded && found[0].confidence() > 0.9, "{:?}", found[0]);
    }

    #[test]
    fn silent_at_full_speed_for_small_messages_and_without_collectives() {
        silent(&BusBandwidthLow, &steps("NVIDIA_H200", "message allreduce,400000000,8,BFloat16"));
        silent(&BusBandwidthLow, &steps("NVIDIA_H200", "message allreduce,1000,8,BFloat16"));
        silent(&BusBandwidthLow, "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>work:5");
    }

    #[test]
    fn abstains_without_sizes_and_without_a_link() {
        abstains(&BusBandwidthLow, &steps("NVIDIA_H200", ""), "collective sizes");
        abstains(&BusBandwidthLow, &steps("NVIDIA_L4", ""), "interconnect");
    }
}
