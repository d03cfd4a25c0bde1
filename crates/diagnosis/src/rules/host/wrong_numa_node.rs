//! `wrong-numa-node`: the process runs on one memory node and much of its memory lies on another.

use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use crate::wording::origin::not_recorded;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Tally;
use timeline::{CollectorCode, ProcessIndex, counters};

pub const CODE: RuleCode = RuleCode::new("wrong-numa-node");

pub struct WrongNumaNode;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.25,
    Unit::Share,
    "some pages of shared libraries are always remote; a quarter of everything is no accident",
);
const MIN_MEDIUM_SHARE: Threshold = Threshold::new(
    CODE,
    "min_medium_share",
    0.5,
    Unit::Share,
    "with most of the memory elsewhere, most reads are remote: medium severity",
);

impl Rule for WrongNumaNode {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_MEDIUM_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "{min_share} or more of a process's memory is on a different NUMA node from the one it runs on.",
            why: "Reading from a remote NUMA node takes longer and shares a narrow link. The location of pages is read from the kernel every few seconds, and compared with where the process runs. The cost is not measured, so no gain is given.",
            needs: "A machine with at least two NUMA nodes, and NUMA readings (collector `memory`).",
            example: "62 % of the memory of serve.py (11.3 GiB) is on a remote NUMA node",
        }
    }

    fn fix(&self) -> Option<&'static str> {
        Some("affinity")
    }

    fn look(&self, case: &Case) -> Verdict {
        match case.timeline.info.host.numa_nodes {
            None => return Verdict::Abstain("number of NUMA nodes not recorded".into()),
            // Nowhere else to be.
            Some(0 | 1) => return Verdict::Silent,
            Some(_) => {}
        }
        let mut seen = false;
        let mut found = Vec::new();
        for process in (0..case.timeline.processes.len() as u32).map(ProcessIndex) {
            if let Some(tally) = remote(case, process) {
                seen = true;
                let share = tally.measured();
                if share.mid >= case.threshold(MIN_SHARE) && share.low >= case.threshold(MIN_SHARE) / 2.0 {
                    found.push(finding(case, process, &tally));
                }
            }
        }
        match (found.is_empty(), seen) {
            (false, _) => Verdict::Found(found),
            (true, true) => Verdict::Silent,
            (true, false) => {
                Verdict::Abstain(not_recorded(case.timeline, CollectorCode::Memory, "memory location not recorded"))
            }
        }
    }
}

/// Bytes on other nodes and bytes on all, one pair a reading.
fn remote(case: &Case, process: ProcessIndex) -> Option<Tally> {
    let remote = case.readings.process(process, counters::NUMA_REMOTE_BYTES)?;
    let is_node = |name: &str| {
        name.strip_prefix("numa_node")
            .and_then(|rest| rest.strip_suffix("_bytes"))
            .is_some_and(|node| node.parse::<u32>().is_ok())
    };
    let nodes: Vec<_> = case.readings.of_process(process).iter().filter(|counter| is_node(&counter.name)).collect();
    let mut tally = Tally::default();
    for (time, value) in remote.time.iter().zip(&remote.value) {
        // A node is read a moment before the sum, and written when it changes: its last value up to then holds.
        let at = |counter: &timeline::Counter| {
            let place = counter.time.partition_point(|other| other <= time);
            place.checked_sub(1).map_or(0, |place| counter.value[place].max(0))
        };
        let all: f64 = nodes.iter().map(|counter| at(counter) as f64).sum();
        let remote = (*value).max(0) as f64;
        tally.add(remote.min(all), all);
    }
    (tally.stretches > 0).then_some(tally)
}

fn finding(case: &Case, process: ProcessIndex, tally: &Tally) -> Finding {
    let share = tally.measured();
    let program = &case.timeline.processes[process.0 as usize].program;
    let bytes = (tally.whole / tally.stretches.max(1) as f64 * share.mid) as u64;
    let text = format!("mean of {}: {}", phrase::counted(tally.stretches, "reading"), phrase::percent_range(share));
    Finding {
        code: CODE,
        title: format!(
            "{} of the memory of {} ({}) is on a remote NUMA node",
            phrase::percent(share.mid),
            phrase::short_file(program),
            phrase::bytes(bytes)
        ),
        place: Place { module: Some(program.clone()), ..Place::default() },
        gain: None,
        severity: if share.low >= case.threshold(MIN_MEDIUM_SHARE) { Severity::Medium } else { Severity::Low },
        certainty: Certainty::seen(share.surely_above(case.threshold(MIN_SHARE) / 2.0) * tally.repeats()),
        evidence: vec![Evidence::new(text).number("share", share.mid).number("bytes", bytes as f64)],
        actions: vec![
            "Bind process and memory to one node: numactl --cpunodebind=0 --membind=0 inferscope run -- ...".into(),
            "With one worker per node: start each under its own numactl --cpunodebind=N --membind=N.".into(),
        ],
        verify: "Record again: the share of remote memory should fall to near 0; compare the steps' p50.".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const NODES: &str = "
        host numa 2
        track main
        step request 0..10s
        counter process numa_node0_bytes 1s=1000000000 5s=1000000000
        counter process numa_node1_bytes 1s=3000000000 5s=3000000000\n";

    #[test]
    fn most_memory_is_elsewhere() {
        let found =
            found(&WrongNumaNode, &format!("{NODES} counter process numa_remote_bytes 1s=3000000000 5s=3000000000"));
        assert_eq!(found[0].title, "75 % of the memory of app.py (2.79 GiB) is on a remote NUMA node");
        assert!(found[0].gain.is_none() && found[0].confidence() > 0.7);
    }

    #[test]
    fn silent_when_it_is_at_home() {
        silent(&WrongNumaNode, &format!("{NODES} counter process numa_remote_bytes 1s=100000000 5s=100000000"));
    }

    #[test]
    fn abstains_with_one_node_and_without_readings() {
        silent(&WrongNumaNode, "host numa 1\n track main\n step request 0..1s");
        abstains(&WrongNumaNode, "host numa 2\n track main\n step request 0..1s", "not recorded");
        abstains(&WrongNumaNode, "track main\n step request 0..1s", "number of NUMA nodes");
    }
}
