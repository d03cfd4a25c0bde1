//! `graph-breaks`: compiled code comes in several pieces a step, with plain Python between them.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::confidence;
use crate::measures::gap;
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Tally;
use replay::gain::Gain;
use timeline::{NameIndex, SliceKind};

pub const CODE: RuleCode = RuleCode::new("graph-breaks");

pub struct GraphBreaks;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.03, Unit::Share, "calling a compiled region costs about this much anyway");
const MIN_REGIONS: Threshold =
    Threshold::new(CODE, "min_regions", 2.0, Unit::Count, "one compiled region has no break");

impl Rule for GraphBreaks {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_REGIONS]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "A step runs {min_regions} or more compiled regions, and the code between them on the same thread takes {min_share} of it or more.",
            why: "torch.compile stops at code it cannot trace (a print, .item(), an unknown library) and starts a new graph after it: a graph break. Nothing is fused across it, and a CUDA graph ends there. Regions are those that PyTorch itself marks. The gain is at most the time between the first and the last region of a step outside all of them, at least nothing (some of that code has to run anyway), and half of it in the middle.",
            needs: "Compiled regions (torch.profiler records them as `Torch-Compiled Region`).",
            example: "Graph breaks: 14 compiled regions per step, 22 % of it spent between them",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let names = &case.timeline.names;
        let region: Vec<bool> =
            (0..names.len() as u32).map(|name| names.text(NameIndex(name)).starts_with("Torch-Compiled")).collect();
        if !region.contains(&true) {
            let compiled = (0..names.len() as u32)
                .any(|name| names.get(NameIndex(name)).file.ends_with("torch/_dynamo/eval_frame.py"));
            return if compiled {
                Verdict::NeedsTorch("compiled regions not recorded (torch.profiler marks them)".into())
            } else {
                Verdict::Silent
            };
        }
        let (mut tally, mut count, mut widest) = (Tally::default(), 0u64, None::<(u64, u64)>);
        for (track, windows) in case.windows.tracks() {
            let slices = case.timeline.tracks[track.0 as usize].slices.clone();
            let fits = |index: &usize| {
                region[case.timeline.slices.name[*index] as usize]
                    && case.timeline.slices.kind(*index) != SliceKind::ApiCall
            };
            let regions: Vec<(u64, u64)> = slices
                .filter(fits)
                .map(|index| (case.timeline.slices.start[index], case.timeline.slices.get(index).end()))
                .collect();
            for window in &case.windows.all()[windows] {
                let first = regions.partition_point(|region| region.0 < window.start);
                let (mut between, mut done) = (0, None::<u64>);
                for (start, end) in regions[first..].iter().take_while(|region| region.0 < window.end) {
                    // Regions inside a region are its own.
                    if done.is_some_and(|done| *start < done) {
                        continue;
                    }
                    if let Some(done) = done {
                        between = u64::saturating_add(between, start - done);
                        if widest.is_none_or(|(from, to)| to - from < start - done) {
                            widest = Some((done, *start));
                        }
                    }
                    count += 1;
                    done = Some(*end);
                }
                tally.add(between as f64, (window.end - window.start) as f64);
            }
        }
        let each = count as f64 / case.steps.count().max(1) as f64;
        let share = tally.mid();
        if share < case.threshold(MIN_SHARE) || each < case.threshold(MIN_REGIONS) {
            return Verdict::Silent;
        }
        let gain = Gain::up_to(100.0 * share);
        let finding = Finding {
            code: CODE,
            title: format!(
                "Graph breaks: {} compiled regions per step, {} of it spent between them",
                gap::each(each),
                phrase::percent(share)
            ),
            place: Place::default(),
            gain: Some(gain),
            severity: Severity::of_gain(&gain),
            certainty: Certainty::seen(confidence::of(&tally, case.threshold(MIN_SHARE))),
            evidence: widest
                .map(|(start, end)| {
                    Evidence::at(
                        format!("longest stretch between two regions, {}", phrase::duration(end - start)),
                        None,
                        start,
                        end,
                    )
                })
                .into_iter()
                .collect(),
            actions: vec![
                Action::torch(
                    "Find the graph breaks: TORCH_LOGS=graph_breaks <command>, or torch._dynamo.explain(model)(inputs).",
                ),
                Action::torch("Turn breaks into errors while fixing them: torch.compile(model, fullgraph=True)."),
            ],
            verify: proof::verify(case, share / 2.0),
        };
        finding.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    fn steps(regions: &[(u64, u64)]) -> String {
        let mut text = String::from("track main\n repeat 20 every 10ms\n step r 0..10ms\n");
        for (start, end) in regions {
            text += &format!("ccall Torch-Compiled {start}ms..{end}ms\n");
        }
        text + "end"
    }

    #[test]
    fn code_between_compiled_regions() {
        let found = found(&GraphBreaks, &steps(&[(0, 3), (1, 2), (5, 7), (8, 9)]));
        assert_eq!(found[0].title, "Graph breaks: 3 compiled regions per step, 30 % of it spent between them");
        assert_eq!(found[0].gain.map(|gain| (gain.low, gain.mid.round(), gain.high.round())), Some((0.0, 15.0, 30.0)));
    }

    #[test]
    fn silent_for_one_region_and_for_programs_that_are_not_compiled() {
        silent(&GraphBreaks, &steps(&[(0, 9)]));
        silent(&GraphBreaks, &steps(&[]));
    }

    #[test]
    fn abstains_when_regions_were_not_recorded() {
        let text = "track main\n step r 0..1s\n samples 0..1s every 10ms active gil main>_fn@/x/site-packages/torch/_dynamo/eval_frame.py:5";
        abstains(&GraphBreaks, text, "regions not recorded");
    }
}
