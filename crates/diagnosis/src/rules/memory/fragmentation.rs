//! `fragmentation`: much of what the allocator has reserved is free, but in pieces that requests do not fit.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::allocators;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::AllocatorMemory;
use analysis::memory::map::BlockMap;
use analysis::phrase;

pub const CODE: RuleCode = RuleCode::new("fragmentation");

pub struct Fragmentation;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.1,
    Unit::Share,
    "of the reserved memory: the allocator's own rounding of segments leaves some percent",
);
const MIN_BYTES: Threshold =
    Threshold::new(CODE, "min_bytes", 67_108_864.0, Unit::Bytes, "three segments may always be half empty");
const MIN_SPLIT: Threshold = Threshold::new(
    CODE,
    "min_split",
    0.5,
    Unit::Share,
    "of the free memory is outside the largest free block: else one request could have it",
);
const MIN_HIGH_SHARE: Threshold = Threshold::new(
    CODE,
    "min_high_share",
    0.25,
    Unit::Share,
    "a quarter of what is reserved is a larger model or batch: high severity",
);
const MIN_SAVED: Threshold =
    Threshold::new(CODE, "min_saved", allocators::MIN_SAVING, Unit::Share, "less is no reason to change a setting");

impl Rule for Fragmentation {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_BYTES, MIN_SPLIT, MIN_HIGH_SHARE]
    }

    fn fixed(&self) -> &'static [Threshold] {
        &[MIN_SAVED]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "At least {min_share} of the reserved memory is not in use even at the peak, and is split into holes.",
            why: "PyTorch reserves memory in segments and splits them. Blocks that live long keep a segment from being given back, and the holes between them are too small for larger requests: the process runs out of memory while gigabytes are free. Memory that is free at the moment of the snapshot but in use at the peak is not counted. The recorded events are replayed under the rules of the allocator (its unchanged peak must come out within 1 %), and a setting is advised only where the replay reserves at least {min_saved} less with it.",
            needs: "The allocator's segments at one moment, as a memory snapshot of PyTorch has them, or its blocks (`--memory-events gpu`) beside the driver's allocations: then the moment is the end of the last step. With events, the peak is known too.",
            example: "GPU 0: 2.41 GiB of 9.20 GiB reserved is free in 340 holes, largest 40.0 MiB",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        if case.timeline.memory.cut {
            return Verdict::Abstain(allocators::EVENTS_MISSING.into());
        }
        if !case.memory().iter().any(|one| one.last_map().is_some()) {
            return allocators::not_recorded(case, "the allocator's segments not recorded");
        }
        let found: Vec<Finding> = case.memory().iter().filter_map(|one| of(case, one)).collect();
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

/// Free memory that stays free at the peak, as far as that is known.
fn wasted(one: &AllocatorMemory, map: &BlockMap) -> u64 {
    match one.history.allocs {
        0 => map.pinned,
        // What the peak uses is not wasted; and neither more than what is free beside blocks.
        _ => one.history.reserved_peak.unwrap_or(map.reserved).saturating_sub(one.history.peak).min(map.free),
    }
}

fn of(case: &Case, one: &AllocatorMemory) -> Option<Finding> {
    let map = one.last_map().filter(|map| map.reserved > 0)?;
    let wasted = wasted(one, map);
    let share = wasted as f64 / map.reserved as f64;
    let enough = share >= case.threshold(MIN_SHARE) && wasted as f64 >= case.threshold(MIN_BYTES);
    if !enough || map.pinned < wasted / 2 || map.fragmentation() < case.threshold(MIN_SPLIT) {
        return None;
    }
    let name = allocators::name(case, one.allocator);
    let mut evidence = vec![
        Evidence::new(format!(
            "{} free beside blocks in use, {} in segments that are wholly free",
            phrase::bytes(map.pinned),
            phrase::bytes(map.releasable)
        ))
        .number("pinned_bytes", map.pinned as f64)
        .number("releasable_bytes", map.releasable as f64),
    ];
    if one.history.allocs > 0 {
        evidence.push(Evidence::new(format!(
            "at the peak {} of {} reserved were in use",
            phrase::bytes(one.history.peak),
            phrase::bytes(one.history.reserved_peak.unwrap_or(map.reserved))
        )));
    }
    let splits = map.pinning.iter().find(|holder| holder.stack.0 != 0);
    evidence.extend(splits.map(|holder| {
        let (bytes, blocks) = (phrase::bytes(holder.bytes), phrase::counted(holder.blocks, "block"));
        Evidence::new(format!("{blocks} of {} keep {bytes} beside them", phrase::place(&holder.place)))
    }));
    evidence.push(allocators::expandable_evidence(case, one.allocator));
    let mut actions: Vec<Action> = Vec::new();
    actions.extend(allocators::expandable_action(case, one.allocator).map(Action::from));
    actions.extend(Action::all([
        "Allocate what lives long (weights, caches, static buffers) before the first step, and keep temporaries out of that phase.",
        "Reuse buffers of a few fixed sizes: pad inputs to buckets instead of a new size for every request.",
    ]));
    Some(Finding {
        code: CODE,
        title: format!(
            "{name}: {} of {} reserved is free in {}, largest {}",
            phrase::bytes(wasted),
            phrase::bytes(map.reserved),
            phrase::counted(map.free_blocks, "hole"),
            phrase::bytes(map.largest_free)
        ),
        place: splits.map(|holder| holder.place.clone()).unwrap_or_default(),
        gain: None,
        severity: if share >= case.threshold(MIN_HIGH_SHARE) { Severity::High } else { Severity::Medium },
        certainty: Certainty::seen(map.fragmentation() * (map.pinned as f64 / wasted as f64).min(1.0)),
        evidence,
        actions,
        verify: "Take another snapshot at the same point: reserved memory is lower, and the largest hole is a larger part of what is free.".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    /// Segments of 20 MiB with a long-lived block of 2 MiB in each; nothing larger than 18 MiB fits.
    fn holes(count: u64) -> String {
        (0..count)
            .map(|at| {
                format!("reserved 20M at {}M\n holds 2M active main>keep@cache.py:8\n holds 18M free\n", 100 * (at + 1))
            })
            .collect()
    }

    #[test]
    fn holes_beside_long_lived_blocks_are_found_with_who_splits() {
        let found = found(&Fragmentation, &holes(10));
        assert_eq!(found[0].title, "GPU 0: 180 MiB of 200 MiB reserved is free in 10 holes, largest 18.0 MiB");
        assert_eq!((found[0].place.line, found[0].severity), (Some(8), Severity::High));
        assert!(found[0].actions.iter().all(|action| !action.contains("expandable_segments")), "nothing was simulated");
    }

    /// The setting is advised where the replay says that it helps, with what it says.
    #[test]
    fn expandable_segments_are_advised_where_they_help() {
        let (mut events, mut state) = (String::new(), String::new());
        // Each round asks for a little more than the holes of the rounds before.
        for round in 0..20u64 {
            let (size, at) = (9216 + 50 * round, 102_400 * (round + 1));
            let left = 20_480 - 2 * size;
            events += &format!(
                "segment alloc {round}us 20M at {at}K\n block alloc {round}us {size}K at {at}K main>run@a.py:3\n"
            );
            events += &format!("block alloc {round}us {size}K at {}K main>keep@cache.py:8\n", at + size);
            events += &format!("block free {round}us {size}K at {at}K\n");
            state +=
                &format!("reserved 20M at {at}K\n holds {size}K free\n holds {size}K active main>keep@cache.py:8\n");
            state += &format!("holds {left}K free\n");
        }
        let found = found(&Fragmentation, &format!("{events}{state}"));
        let first = found[0].actions[0].text();
        assert!(first.starts_with("Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True: simulated"), "{first}");
        assert!(first.ends_with("reserves 20.0 MiB less (−5.0 %)."), "{first}");
    }

    /// Memory that the peak needs is free at the end of every step.
    #[test]
    fn silent_where_the_peak_uses_it() {
        let text =
            "block alloc 1us 18M at 102M main>run@a.py:3\n block free 2us 18M at 102M\n block alloc 3us 18M at 102M\n";
        let more = "block free 4us 18M at 102M\n reserved 20M at 100M\n holds 2M active\n holds 18M free";
        silent(&Fragmentation, &format!("{text}{more}"));
        silent(&Fragmentation, "reserved 400M at 100M\n holds 100M active\n holds 300M free");
    }

    /// Of a recording the segments are what the driver handed out, and the moment is the end of its last step.
    #[test]
    fn a_recording_that_ends_with_everything_freed_had_holes_in_its_last_step() {
        let (mut text, mut end) = (String::from("device 0 GPU\n track main\n"), String::new());
        for round in 0..20u64 {
            let (at, us) = (100 * (round + 1), 1000 * round);
            text += &format!("step request {us}us..{}us\n alloc {}us 20971520 at {}\n", us + 900, us + 1, at << 20);
            text += &format!("block alloc {}us 2M at {at}M main>keep@cache.py:8\n", us + 2);
            text += &format!("block alloc {}us 10M at {}M main>run@a.py:3\n", us + 3, at + 2);
            text += &format!("block free {}us 10M at {}M\n", us + 4, at + 2);
            end += &format!("block free 30ms 2M at {at}M\n");
        }
        let found = found(&Fragmentation, &format!("{text}{end}"));
        assert_eq!(found[0].title, "GPU 0: 350 MiB of 400 MiB reserved is free in 20 holes, largest 18.0 MiB");
        assert_eq!(found[0].place.line, Some(8));
    }

    #[test]
    fn abstains_without_segments() {
        abstains(&Fragmentation, "track main\n step request 0..40ms\n stream 7\n kernel gemm 1ms..2ms", "not recorded");
    }
}
