//! `gc-pauses`: Python's garbage collector runs inside the steps and stops them.

use crate::action::{Action, Precondition};
use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::collections::{self, Collections};
use crate::measures::proof;
use crate::measures::recorded::{self, Recorded};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::hot_line;
use crate::rules::launch::host_wait;
use crate::rules::pipeline::{postprocess_tail, preprocess_before_first_kernel};
use crate::threshold::{Threshold, Unit};
use crate::wording::origin::not_recorded;
use analysis::host::blame;
use analysis::host::step_samples::Doing;
use analysis::phrase;
use analysis::place::Place;
use analysis::steps::StepSource;
use timeline::{CollectorCode, Condition, SliceKind};

pub const CODE: RuleCode = RuleCode::new("gc-pauses");

pub struct GcPauses;

const MIN_SHARE: Threshold = Threshold::new(CODE, "min_share", 0.02, Unit::Share, "of the steps, all pauses together");
const MIN_STEP_SHARE: Threshold = Threshold::new(
    CODE,
    "min_step_share",
    0.25,
    Unit::Share,
    "one pause that takes this much of the median step costs the tail, whatever the mean",
);
const MIN_SAMPLES: Threshold =
    Threshold::new(CODE, "min_samples", 3.0, Unit::Count, "of a line in which collections begin: two could be chance");

impl Rule for GcPauses {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_STEP_SHARE, MIN_SAMPLES]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Garbage collection takes {min_share} of the steps, or a single pause {min_step_share} of the median step.",
            why: "The collector traverses every live container object, so a service with a large heap pays for all of it again and again. Pauses are recorded exactly, on the thread they stop, with their generation and how many objects they freed. `gc.freeze()` is advised where most of the time goes through old generations and little of it frees anything; where the collector frees the program's own garbage, freezing does not help, and the gain is only bounded. A full collection that the younger ones before it did not make due was asked for: then the call of `gc.collect()` is what to remove, and thresholds change nothing. Else the gain is their share of the steps; the p99 gains more than the mean.",
            needs: "Garbage collector pauses (collector `gc`, on by default under `inferscope run`).",
            example: "Garbage collection takes 4.1 % of the step: 38 pauses, longest 61.0 ms",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[hot_line::CODE, host_wait::CODE, preprocess_before_first_kernel::CODE, postprocess_tail::CODE]
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Cpu)
    }

    fn fix(&self) -> Option<&'static str> {
        Some("gc-freeze")
    }

    fn look(&self, case: &Case) -> Verdict {
        if only_starts(case) {
            return Verdict::Abstain("little but start-up was recorded: its collections end with it".into());
        }
        let pauses = recorded::inside(case, |slice| slice.kind == SliceKind::Gc);
        if pauses.count == 0 {
            let states = || {
                case.timeline
                    .processes
                    .iter()
                    .flat_map(|process| &process.collectors)
                    .filter(|c| c.name == CollectorCode::Gc)
            };
            let on = states().any(|state| state.state == Condition::On);
            let any = (0..case.timeline.slices.len()).any(|index| case.timeline.slices.kind(index) == SliceKind::Gc);
            return match on || any {
                true => Verdict::Silent,
                false => {
                    Verdict::Abstain(not_recorded(case.timeline, CollectorCode::Gc, "garbage collection not recorded"))
                }
            };
        }
        let share = pauses.tally.measured();
        let longest = pauses.longest.first().map_or(0, |(_, slice)| slice.dur);
        let tail = case.steps.count() > 1 && longest as f64 >= case.threshold(MIN_STEP_SHARE) * case.steps.p50() as f64;
        if share.mid >= case.threshold(MIN_SHARE) || tail {
            return finding(case, &pauses, longest).into();
        }
        Verdict::Silent
    }
}

/// More than half is what "most" means, and no level to choose.
const MAJORITY: f64 = 0.5;

/// Without steps, and importing modules for most of the recording up to its end: else what comes after the imports is looked at alone.
fn only_starts(case: &Case) -> bool {
    let whole = case.steps.source == StepSource::Whole && case.steps.startup.is_none();
    whole && case.imports().is_some_and(|(share, _)| share.mid > MAJORITY)
}

fn finding(case: &Case, pauses: &Recorded, longest: u64) -> Finding {
    let share = pauses.tally.measured();
    let mut evidence = vec![
        Evidence::new(format!(
            "{} in {} of {} steps, {} in total",
            phrase::counted(pauses.count, "pause"),
            phrase::count(pauses.windows),
            phrase::count(pauses.tally.stretches),
            phrase::duration(pauses.tally.part as u64)
        ))
        .number("pauses", pauses.count as f64)
        .number("ns", pauses.tally.part),
    ];
    evidence.extend(pauses.longest.iter().map(|(track, slice)| {
        let text = format!("{} took {}", case.timeline.names.text(slice.name), phrase::duration(slice.dur));
        Evidence::at(text, Some(*track), slice.start, slice.end()).number("ns", slice.dur as f64)
    }));
    let triggers = blame::functions(case, |one| one.doing == Doing::Gc);
    let sampled: u64 = triggers.iter().map(|function| function.count).sum();
    let enough = |count: u64| count as f64 >= case.threshold(MIN_SAMPLES);
    let mut caller = None;
    let place = triggers.first().and_then(|function| {
        let (frame, count) = function.lines.first()?;
        let place = case.place(*frame);
        // What makes one due by itself may be any line.
        caller = (enough(*count) && count * 2 > sampled).then(|| place.clone());
        let text =
            format!("most often sampled in {}: {} samples", phrase::place(&place), phrase::count(function.count));
        evidence.push(Evidence::new(text).number("samples", function.count as f64));
        enough(function.count).then_some(place)
    });
    let place = Place { api: Some("gc".into()), ..place.unwrap_or_default() };
    // A pause that was measured is there; whether the next recording has it is what the steps with most of it say.
    let again = pauses.tally.repeats();
    let gain = case.gain_of_slices(|slice| slice.kind == SliceKind::Gc, share);
    let collections = collections::inside(case);
    let freezing = collections.freezing();
    if let Some(freed) = collections.freeing() {
        let text = format!("at most {} of it frees what the program threw away", phrase::percent(freed));
        evidence.push(Evidence::new(text).number("freeing", freed));
    }
    let asked = collections.asked();
    if let Some(asked) = asked {
        let text =
            format!("{} of them were asked for by gc.collect(): nothing else made them due", phrase::count(asked));
        evidence.push(Evidence::new(text).number("asked", asked as f64));
    }
    let garbage = matches!(freezing, Precondition::Fails(_));
    // Garbage is freed one way or the other: what goes is what the program no longer makes, or what is not looked for as often.
    let gain = if garbage { gain.at_most() } else { gain };
    Finding {
        code: CODE,
        title: format!(
            "Garbage collection takes {} of {}: {}, longest {}",
            phrase::percent(share.mid),
            case.the_step(),
            phrase::counted(pauses.count, "pause"),
            phrase::duration(longest)
        ),
        place,
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        certainty: Certainty::seen(again),
        evidence,
        actions: actions(case, &collections, freezing, caller.as_ref()),
        verify: proof::verify(case, gain.mid / 100.0),
    }
}

fn actions(case: &Case, collections: &Collections, freezing: Precondition, caller: Option<&Place>) -> Vec<Action> {
    let garbage = matches!(freezing, Precondition::Fails(_));
    let remove = collections.asked().map(|_| {
        let at = caller.map(|place| format!(" in {}", phrase::place(place))).unwrap_or_default();
        let instead = if case.steps.source == StepSource::Whole {
            "call it less often"
        } else {
            "call it between steps, while nothing waits"
        };
        Action::new(format!("Remove gc.collect(){at}, or {instead}: Python collects by itself what it has to."))
            .by_hand()
    });
    let rest = [
        Action::new("Freeze the heap after loading, before the first step")
            .by("import gc; gc.collect(); gc.freeze() (frozen objects are never traversed again).")
            .needs([freezing]),
        match garbage {
            true => "Create fewer objects that refer to each other in cycles: break the cycles, or reuse the objects; what has no cycle is freed at once.",
            false => "Create fewer long-lived container objects (arrays or bytes instead of lists of objects).",
        }
        .into(),
        Action::new("Collect less often")
            .by("gc.set_threshold(50_000, 50, 100), or gc.disable() and gc.collect() between steps.")
            .needs([collections.by_thresholds()]),
    ];
    remove.into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    #[test]
    fn counts_pauses_exactly_and_shows_the_longest() {
        let found = found(
            &GcPauses,
            "
            track main
            repeat 20 every 50ms
              step request 0..40ms
              gc 2 10ms..14ms
            end
            gc 2 1s..2s      # Outside the steps: no part of them.",
        );
        assert_eq!(found[0].title, "Garbage collection takes 10 % of the step: 20 pauses, longest 4.00 ms");
        let gain = found[0].gain.unwrap();
        assert!((gain.low - 10.0).abs() < 1e-6 && (gain.high - 10.0).abs() < 1e-6, "{gain:?}");
    }

    /// The collector frees what the steps throw away: freezing the heap would change nothing.
    #[test]
    fn freezing_is_not_advised_for_garbage() {
        let of = |collected: u64, generation: u64| {
            let args = format!("{{\"generation\":{generation},\"collected\":{collected},\"uncollectable\":0}}");
            let text = "track main\n repeat 20 every 50ms\n step request 0..40ms\n gc 1 9ms..9001us args {\"generation\":1}\n gc 2 10ms..14ms args ARGS\n end";
            found(&GcPauses, &text.replace("ARGS", &args)).remove(0)
        };
        let (old, garbage, young) = (of(10, 2), of(6_000, 2), of(10, 0));
        assert!(old.actions[0].contains("gc.freeze") && old.actions[0].applies() == 1.0, "{:?}", old.actions);
        for one in [&garbage, &young] {
            assert_eq!((one.actions[0].applies(), one.gain.unwrap().low), (0.0, 0.0));
            assert!(one.actions[1].contains("cycles"), "{:?}", one.actions);
        }
        let gain = garbage.gain.unwrap();
        assert!((gain.high - 10.0).abs() < 0.1 && (gain.mid - 5.0).abs() < 0.1, "{gain:?}");
        let said = |one: &Finding, text: &str| one.evidence.iter().any(|one| one.text.starts_with(text));
        assert!(
            said(&garbage, "at most 75 % of it frees") && said(&old, "at most 0.1 % of it frees"),
            "{:?}",
            garbage.evidence
        );
        assert!((old.gain.unwrap().mid - 10.0).abs() < 0.1);
    }

    /// `gc.collect()` after every request: no collection of the middle generation was due.
    #[test]
    fn a_call_of_the_collector_is_to_be_removed() {
        let of = |before: u64| {
            let text = "track main\n repeat 20 every 50ms\n step request 0..40ms\n gc 0 5ms..5010us args {\"generation\":BEFORE}\n
                samples 0..40ms every 1ms active gil serve:4>clean_up@app.py:9\n gc 2 10ms..14ms args {\"generation\":2}\n end";
            found(&GcPauses, &text.replace("BEFORE", &before.to_string())).remove(0)
        };
        let (asked, due) = (of(0), of(1));
        assert!(
            asked.actions[0].starts_with("Remove gc.collect() in clean_up (app.py:9), or call it between steps"),
            "{:?}",
            asked.actions
        );
        assert!(asked.actions[1].contains("gc.freeze"), "{:?}", asked.actions);
        let fails = |one: &Finding| one.actions.last().unwrap().fails().is_some();
        assert!(fails(&asked) && !fails(&due), "{:?}", asked.actions);
        assert!(due.actions[0].contains("gc.freeze"), "{:?}", due.actions);
    }

    /// A program that ends while it imports: freezing its heap afterwards changes nothing.
    #[test]
    fn collections_of_imports_are_nothing_to_fix() {
        let import = "_find_and_load@/usr/lib/python3.12/importlib/_bootstrap.py:1360>\
            <module>@/usr/lib/python3.12/site-packages/numpy/__init__.py:114";
        let text = |stack: &str| {
            format!(
                "track main\n samples 0..600ms every 10ms active gil <module>:1>{stack}\n gc 2 100ms..150ms\n end 600ms"
            )
        };
        abstains(&GcPauses, &text(import), "little but start-up was recorded");
        found(&GcPauses, &text("work:5"));
    }

    #[test]
    fn one_pause_that_makes_the_tail_is_found() {
        let steps = "track main\n repeat 200 every 50ms\n step request 0..40ms\n end\n";
        let found = found(&GcPauses, &format!("{steps} gc 2 110ms..130ms"));
        assert!(found[0].gain.unwrap().mid < 1.0 && found[0].confidence() < 0.7);
        silent(&GcPauses, &format!("{steps} gc 2 110ms..112ms"));
    }

    /// Short pauses in every step, and one that is nearly all of their time: it was seen once.
    #[test]
    fn one_long_pause_is_not_seen_in_all_steps() {
        let with = |long: &str| {
            let text =
                format!("track main\n repeat 14 every 50ms\n step request 0..40ms\n gc 0 1ms..1100us\n end\n {long}");
            found(&GcPauses, &text)[0].confidence()
        };
        assert!(with("gc 2 205ms..239ms") < 0.7, "{}", with("gc 2 205ms..239ms"));
        let each: String = (0..14).map(|at| format!("gc 2 {}ms..{}ms\n", 50 * at + 5, 50 * at + 9)).collect();
        assert!(with(&each) > 0.9);
    }

    #[test]
    fn silent_when_the_collector_was_on_and_nothing_paused() {
        silent(&GcPauses, "collector gc on\n track main\n step request 0..40ms");
    }

    #[test]
    fn abstains_when_pauses_were_not_recorded() {
        abstains(
            &GcPauses,
            "collector gc failed no callbacks here\n track main\n step request 0..40ms",
            "no callbacks here",
        );
        abstains(&GcPauses, "track main\n step request 0..40ms", "not recorded");
    }
}
