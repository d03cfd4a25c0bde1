//! `memory-imbalance`: one rank of a distributed program takes far more of its device than the others do, and limits the batch of all.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::outside_memory::said;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::AllocatorMemory;
use analysis::memory::outside::OutsideMemory;
use analysis::memory::ranks::{self, PeakSource, RankPeak};
use analysis::phrase;
use analysis::place::Place;
use timeline::driver_memory::MemoryPlace;

pub const CODE: RuleCode = RuleCode::new("memory-imbalance");

pub struct MemoryImbalance;

const MIN_EXCESS: Threshold = Threshold::new(
    CODE,
    "min_excess",
    0.15,
    Unit::Share,
    "of the peak of the other ranks: uneven sequences and caches make some percent",
);
const MIN_EXCESS_BYTES: Threshold = Threshold::new(
    CODE,
    "min_excess_bytes",
    268_435_456.0,
    Unit::Bytes,
    "less is no reason to move anything to another rank",
);
const MIN_FILLED: Threshold = Threshold::new(
    CODE,
    "min_filled",
    0.5,
    Unit::Share,
    "of the device, by the fullest rank: with less in use every rank has room for twice the batch",
);

impl Rule for MemoryImbalance {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_EXCESS, MIN_EXCESS_BYTES, MIN_FILLED]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "At its peak one rank takes {min_excess} more than the median of the other ranks, and at least {min_filled} of its device.",
            why: "All ranks run with the same batch, so the fullest one sets it: what the others have free is lost. Rank 0 often holds more (a copy of the weights for saving, gathered results, contexts of other processes on its device); pipelines hold the embedding and the head in their first and last stage. Compared is what recorded calls took of the driver; where those are not recorded for all ranks, what PyTorch's allocator reserved or handed out.",
            needs: "Two or more ranks in one recording (torchrun, Open MPI or Slurm tell the rank), with their CUDA memory calls or allocator events.",
            example: "Rank 0 takes 71.2 GiB at its peak, the other 7 ranks 52.0 GiB: gather (eval.py:88) holds 17.1 GiB more",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let ranked = case.timeline.processes.iter().filter(|process| process.rank.is_some()).count();
        if ranked == 0 {
            return Verdict::Silent;
        }
        let Some(peaks) = ranks::measure(case.timeline, case.memory()) else {
            return Verdict::Abstain(match ranked {
                1 => "only one rank recorded: nothing to compare its memory with".into(),
                _ => "memory was not recorded in the same way for all ranks (record them with --memory-events gpu)"
                    .into(),
            });
        };
        let Some(most) = peaks.ranks.iter().max_by_key(|one| (one.peak, u32::MAX - one.rank)) else {
            return Verdict::Silent;
        };
        let mut others: Vec<&RankPeak> = peaks.ranks.iter().filter(|one| one.rank != most.rank).collect();
        others.sort_by_key(|one| (one.peak, one.rank));
        // Of an even number the fuller one: that is the harder comparison.
        let usual = others[others.len() / 2];
        let excess = most.peak.saturating_sub(usual.peak);
        let limits = |bytes: u64| most.peak as f64 >= case.threshold(MIN_FILLED) * bytes as f64;
        let size = case.timeline.gpu.device(most.process, most.device).and_then(|device| device.memory_bytes);
        let large = excess as f64 >= case.threshold(MIN_EXCESS_BYTES)
            && excess as f64 >= case.threshold(MIN_EXCESS) * usual.peak as f64;
        if !large || size.is_some_and(|bytes| bytes > 0 && !limits(bytes)) {
            return Verdict::Silent;
        }
        finding(case, peaks.source, &peaks.ranks, most, usual, size).into()
    }
}

fn finding(
    case: &Case,
    source: PeakSource,
    ranks: &[RankPeak],
    most: &RankPeak,
    usual: &RankPeak,
    size: Option<u64>,
) -> Finding {
    let cause = causes(case, most, usual).into_iter().max_by_key(|cause| cause.bytes);
    let (place, by) = match cause {
        Some(cause) => (cause.place, format!(": {} {} more", cause.said, phrase::bytes(cause.bytes))),
        None => (Place::default(), String::new()),
    };
    let others = match ranks.len() {
        2 => "rank".to_owned(),
        count => phrase::counted(count as u64 - 1, "rank"),
    };
    let of = match source {
        PeakSource::Driver => "taken of the driver",
        PeakSource::Reserved => "reserved by PyTorch's allocator",
        PeakSource::InUse => "handed out by PyTorch's allocator",
    };
    let each: Vec<String> =
        ranks.iter().take(16).map(|one| format!("rank {} {}", one.rank, phrase::bytes(one.peak))).collect();
    let more = if ranks.len() > 16 { ", ..." } else { "" };
    let mut evidence = vec![
        Evidence::new(format!("at most {of}: {}{more}", each.join(", ")))
            .number("bytes", most.peak as f64)
            .number("excess_bytes", (most.peak - usual.peak) as f64),
    ];
    match size.filter(|bytes| *bytes > 0) {
        Some(bytes) => evidence.push(Evidence::new(format!(
            "{} of its device's {}; the others leave {} free",
            phrase::percent(most.peak as f64 / bytes as f64),
            phrase::bytes(bytes),
            phrase::bytes(bytes.saturating_sub(usual.peak))
        ))),
        None => evidence.push(Evidence::new("the size of the device's memory was not recorded")),
    }
    Finding {
        code: CODE,
        title: format!(
            "Rank {} takes {} at its peak, the other {others} {}{by}",
            most.rank,
            phrase::bytes(most.peak),
            phrase::bytes(usual.peak)
        ),
        place,
        gain: None,
        severity: Severity::Medium,
        // Without the size it is not known whether that limits anything.
        certainty: Certainty::seen(if size.is_some() { 1.0 } else { 0.5 }),
        evidence,
        actions: Action::all([
            "Keep what only this rank needs on the CPU: gathered results, a copy of the weights for saving.",
            "Set the device before the first CUDA call in each process (one CUDA_VISIBLE_DEVICES per rank): a context on the first device is of every process that forgets it.",
            "Balance the stages or shards by bytes, not by layers.",
        ]),
        verify: "Record again: the peaks of all ranks are within some percent of each other.".into(),
    }
}

/// What the fullest rank has more of than another one.
struct Cause {
    said: String,
    place: Place,
    bytes: u64,
}

fn causes(case: &Case, most: &RankPeak, usual: &RankPeak) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let (Some(ours), Some(theirs)) = (allocator(case, most), allocator(case, usual)) {
        for holder in ours.peak.by_place.iter().filter(|holder| holder.stack.0 != 0) {
            let same = theirs.peak.by_place.iter().find(|other| other.place == holder.place);
            let bytes = holder.bytes.saturating_sub(same.map_or(0, |other| other.bytes));
            causes.push(Cause {
                said: format!("{} holds", phrase::place(&holder.place)),
                place: holder.place.clone(),
                bytes,
            });
        }
        let parts = |one: &AllocatorMemory, name: &str| {
            let own = one.peak.by_category.iter().find(|(kind, _, _)| kind.name() == name);
            own.map_or(0, |(_, bytes, _)| *bytes)
        };
        // Lines name it better where their stacks were recorded.
        if causes.is_empty() {
            causes.extend(ours.peak.by_category.iter().map(|(kind, bytes, _)| Cause {
                said: format!("{} take", kind.name()),
                place: Place::default(),
                bytes: bytes.saturating_sub(parts(theirs, kind.name())),
            }));
        }
    }
    if let Some(ours) = outside(case, most).filter(|one| one.blocks_recorded) {
        let theirs = outside(case, usual).map_or(&[][..], |one| &one.at_peak);
        causes.extend(ours.at_peak.iter().map(|taken| {
            let same = theirs.iter().find(|other| other.site == taken.site);
            let bytes = taken.bytes.saturating_sub(same.map_or(0, |other| other.bytes));
            Cause { said: format!("{} takes", said(taken)), place: taken.site.place.clone(), bytes }
        }));
    }
    causes.retain(|cause| cause.bytes > 0);
    causes
}

fn allocator<'a>(case: &'a Case, rank: &RankPeak) -> Option<&'a AllocatorMemory> {
    case.memory().iter().find(|one| {
        let about = case.timeline.memory.allocator(one.allocator);
        (about.process, about.device) == (rank.process, Some(rank.device)) && one.history.allocs > 0
    })
}

fn outside<'a>(case: &'a Case, rank: &RankPeak) -> Option<&'a OutsideMemory> {
    let mut all = case.outside_memory().iter();
    all.find(|one| (one.process, one.place) == (rank.process, MemoryPlace::Device(rank.device)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn ranks(extra: &[&str]) -> String {
        let one = |(rank, extra): (usize, &&str)| {
            format!(
                "process run.py rank {rank}\n device 0 GPU memory 2G\n track main\n
                 block alloc 1us 700M at 1 main>load@model.py:3\n {extra}\n"
            )
        };
        extra.iter().enumerate().map(one).collect()
    }

    #[test]
    fn the_rank_that_holds_more_is_named_with_the_line() {
        let text = ranks(&["block alloc 2us 500M at 2G main>gather@eval.py:88", "", "", ""]);
        let found = found(&MemoryImbalance, &text);
        assert_eq!(
            found[0].title,
            "Rank 0 takes 1.17 GiB at its peak, the other 3 ranks 700 MiB: gather (eval.py:88) holds 500 MiB more"
        );
        assert!(found[0].evidence[1].text.starts_with("59 % of its device's 2.00 GiB"), "{:?}", found[0].evidence);
        silent(&MemoryImbalance, &text.replace("500M", "60M"));
        silent(&MemoryImbalance, &text.replace("memory 2G", "memory 80G"));
    }

    #[test]
    fn what_is_taken_outside_pytorch_is_compared_too() {
        let call = |mib: u64| format!("api cudaMalloc 3us..4us\n alloc 4us {} at 7", mib << 20);
        let found = found(&MemoryImbalance, &ranks(&[&call(10), &call(1100)]));
        assert_eq!(
            found[0].title,
            "Rank 1 takes 1.07 GiB at its peak, the other rank 10.0 MiB: cudaMalloc takes 1.06 GiB more"
        );
    }

    #[test]
    fn abstains_for_one_rank_and_is_silent_without_any() {
        abstains(&MemoryImbalance, &ranks(&[""]), "only one rank");
        abstains(&MemoryImbalance, &format!("{}process run.py rank 7\n track main", ranks(&["", ""])), "all ranks");
        silent(&MemoryImbalance, "block alloc 1us 60M at 1");
    }
}
