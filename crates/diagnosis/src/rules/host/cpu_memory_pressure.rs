//! `cpu-memory-pressure`: the machine is short of memory, and steps wait for pages to come back from disk.

use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use crate::wording::origin::not_recorded;
use analysis::host::series::{Growth, Nature};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use analysis::steps::windows::{StepSpans, of_process};
use replay::gain::{Gain, GainBy};
use timeline::{CollectorCode, Counter, TrackIndex, counters as counter_names};

pub const CODE: RuleCode = RuleCode::new("cpu-memory-pressure");

pub struct CpuMemoryPressure;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.01,
    Unit::Share,
    "a healthy machine shows none; a hundredth of the time means memory is short",
);

impl Rule for CpuMemoryPressure {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "While steps run, tasks on this machine stall for memory, or the process reads its own pages from disk.",
            why: "Linux counts how long any task (some) and how long all tasks with work (full) stalled for memory. The step lost at least what all lost and at most what any lost: that is the range of the gain, with its midpoint. Page faults that read from disk are counted for the process, but not their cost, so without pressure counters they come without a gain.",
            needs: "Pressure counters (PSI) or page faults (collector `memory`).",
            example: "Memory pressure stalls the machine for 8.2 % of step time; 4,211 page faults from disk",
        }
    }

    fn bottleneck_behind_running(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Memory)
    }

    fn is_of_others(&self) -> bool {
        true
    }

    fn look(&self, case: &Case) -> Verdict {
        let steps = case.windows.across(|_| true);
        let inside = |counter: &Counter, steps: &StepSpans, nature: Nature| {
            case.readings.inside(counter, steps, TrackIndex(0), &nature)
        };
        let psi = |name: &str| inside(case.readings.host(name)?, &steps, Nature::Micros);
        let (some, full) = (psi(counter_names::PSI_MEMORY_SOME_US), psi(counter_names::PSI_MEMORY_FULL_US));
        let mut faults: Option<Growth> = None;
        for process in (0..case.timeline.processes.len() as u32).map(timeline::ProcessIndex) {
            let Some(counter) = case.readings.process(process, counter_names::MAJOR_FAULTS) else { continue };
            let own = case.windows.across(of_process(case.timeline, process));
            if let Some(growth) = inside(counter, &own, Nature::Count) {
                faults.get_or_insert_default().join(&growth);
            }
        }
        if some.is_none() && faults.is_none() {
            return Verdict::Abstain(not_recorded(
                case.timeline,
                CollectorCode::Memory,
                "neither memory pressure nor page faults recorded",
            ));
        }
        let stalled = some.as_ref().is_some_and(|growth| {
            let level = case.threshold(MIN_SHARE);
            // A few stalls in few steps are as likely chance: that is no finding.
            growth.tally.mid() >= level && growth.tally.measured().surely_above(level / 2.0) >= 0.5
        });
        // One a step: then it is part of what the steps do, and not of loading.
        let often = faults.as_ref().is_some_and(|growth| growth.tally.part >= case.steps.count().max(10) as f64);
        if stalled || some.is_none() && often {
            return finding(case, some, full, faults).into();
        }
        Verdict::Silent
    }
}

fn finding(case: &Case, some: Option<Growth>, full: Option<Growth>, faults: Option<Growth>) -> Finding {
    let mid = |growth: &Option<Growth>| growth.as_ref().map(|growth| growth.tally.mid());
    let share = mid(&some).map(|high| {
        let low = mid(&full).unwrap_or(0.0).min(high);
        Share { low, mid: low.midpoint(high), high }
    });
    let mut said = Vec::new();
    let mut evidence = Vec::new();
    if let Some(growth) = &some {
        said.push(format!(
            "memory pressure stalls the machine for {} of step time",
            phrase::percent(growth.tally.mid())
        ));
        evidence.extend(growth.most.iter().map(|(start, end, grown)| {
            let text = format!("stalled for {} of {}", phrase::duration(*grown), phrase::duration(end - start));
            Evidence::at(text, None, *start, *end).number("ns", *grown as f64)
        }));
    }
    if let Some(growth) = faults.as_ref().filter(|growth| growth.tally.part >= 1.0) {
        said.push(format!("{} from disk", phrase::counted(growth.tally.part.round() as u64, "page fault")));
        evidence.extend(growth.most.iter().map(|(start, end, grown)| {
            let text = format!("{} in {}", phrase::counted(*grown, "page fault"), phrase::duration(end - start));
            Evidence::at(text, None, *start, *end).number("faults", *grown as f64)
        }));
    }
    let tally = some.as_ref().or(faults.as_ref()).map(|growth| growth.tally).unwrap_or_default();
    let sure = if some.is_some() { tally.measured().surely_above(case.threshold(MIN_SHARE) / 2.0) } else { 1.0 };
    let mut title = said.join("; ");
    if let Some(first) = title.get(..1) {
        title = first.to_uppercase() + &title[1..];
    }
    Finding {
        code: CODE,
        title,
        place: Place::default(),
        // Only its ends are counted.
        gain: share.map(|share| Gain { by: GainBy::Bounded, ..case.gain_of_host(share) }),
        severity: share.map_or(Severity::Low, |share| Severity::of(share).max(Severity::Medium)),
        certainty: Certainty::seen(sure * tally.repeats()),
        evidence,
        actions: vec![
            "Find what uses the memory: the rss_bytes curves of this report, or ps -eo rss,comm --sort -rss | head.".into(),
            "Give the process more memory (the container's limit), or use less: fewer workers, smaller batches, float16 weights.".into(),
            "Load weights without memory-mapping them from a slow disk, and touch them before the first step.".into(),
        ],
        verify: proof::verify(case, share.map_or(0.0, |share| share.mid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    const STEPS: &str = "track main\n repeat 20 every 100ms\n step request 0..80ms\n end\n";

    #[test]
    fn pressure_is_between_what_all_and_what_any_lost() {
        let found = found(
            &CpuMemoryPressure,
            &format!(
                "{STEPS}
            counter host psi_memory_some_us 0..2s every 100ms grows 10000
            counter host psi_memory_full_us 0..2s every 100ms grows 2000
            counter process major_faults 0..2s every 100ms grows 50"
            ),
        );
        assert_eq!(
            found[0].title,
            "Memory pressure stalls the machine for 10 % of step time; 800 page faults from disk"
        );
        let gain = found[0].gain.unwrap();
        assert!((gain.low - 2.0).abs() < 0.1 && (gain.high - 10.0).abs() < 0.1, "{gain:?}");
        assert_eq!(gain.by, GainBy::Bounded);
    }

    #[test]
    fn faults_alone_have_no_gain() {
        let found =
            found(&CpuMemoryPressure, &format!("{STEPS} counter process major_faults 0..2s every 100ms grows 50"));
        assert_eq!(found[0].gain, None);
    }

    #[test]
    fn silent_without_pressure() {
        silent(&CpuMemoryPressure, &format!("{STEPS} counter host psi_memory_some_us 0=77"));
        silent(&CpuMemoryPressure, &format!("{STEPS} counter process major_faults 0=1 50ms=9"));
    }

    #[test]
    fn abstains_without_counters() {
        abstains(&CpuMemoryPressure, STEPS, "neither memory pressure nor page faults");
    }
}
