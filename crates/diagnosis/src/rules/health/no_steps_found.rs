//! `no-steps-found`: nothing in the program says where a request begins and ends, or what says so explains almost nothing of it.

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::wording;
use analysis::origin::Outside;
use analysis::phrase;
use analysis::place::Place;
use analysis::steps::StepSource;

pub const CODE: RuleCode = RuleCode::new("no-steps-found");

pub struct NoStepsFound;

impl Rule for NoStepsFound {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "No steps were marked and none were recognised, so percentages cover the whole recording; or the marked ones hold almost nothing of it, and others were used.",
            why: "A latency is the latency of something. Without steps, the busiest thread's recording is analysed: loading and waiting for requests count, and there is no p99. The imports that it begins with are start-up and left out. Marks that hold less than a tenth of kernel time and running time, where something else holds most, are named here and not used: use --step NAME to have them all the same.",
            needs: "Nothing.",
            example: "No steps marked: percentages cover the whole recording, start-up included",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let missing = case.steps.not_found.as_ref();
        let passed_over = case.steps.passed_over.as_ref().filter(|_| missing.is_none());
        if case.steps.source != StepSource::Whole && missing.is_none() && passed_over.is_none() {
            return Verdict::Silent;
        }
        let title = match missing {
            Some(name) => format!(
                "No step or scope named \"{name}\": {} was used",
                match case.steps.source {
                    StepSource::Whole => "the whole recording".to_owned(),
                    _ => format!("\"{}\"", case.steps.name),
                }
            ),
            None if let Some(marks) = passed_over => format!(
                "Marks \"{}\" hold only {} of the work: \"{}\" was used",
                marks.name,
                phrase::percent(marks.share),
                case.steps.name
            ),
            None => match Outside::of(case.timeline) {
                Some(Outside::Attached) => {
                    "`attach` cannot see step markers; percentages cover the whole recording".into()
                }
                Some(Outside::KeptOut) => {
                    "No steps recorded (collectors not loaded in the program): percentages cover the whole recording"
                        .into()
                }
                Some(Outside::Unknown) => {
                    "No steps recorded (nothing recorded inside the program): percentages cover the whole recording"
                        .into()
                }
                None if case.steps.startup.is_some() => {
                    "No steps marked: percentages cover the whole recording after start-up".into()
                }
                None => "No steps marked: percentages cover the whole recording, start-up included".into(),
            },
        };
        let mut evidence = vec![Evidence::new(wording::steps::why(&case.steps))];
        let imports = case.imports();
        if let Some((share, ns)) = imports {
            let text = format!(
                "imports take {}, {} of the recording: start-up, not part of a step",
                phrase::duration(ns),
                phrase::percent(share.mid)
            );
            evidence.push(Evidence::new(text).number("ns", ns as f64));
        }
        if case.steps.unfinished > 0 {
            evidence.push(Evidence::new("steps started but never ended").number("steps", case.steps.unfinished as f64));
        }
        let finding = Finding {
            code: CODE,
            title,
            place: Place::default(),
            gain: None,
            severity: Severity::Info,
            certainty: Certainty::seen(1.0), // What was recorded is known.
            evidence,
            actions: Action::all(match passed_over {
                Some(marks) => vec![
                    format!("Mark the whole request, batch or iteration: {}", wording::origin::marks(case.timeline)),
                    format!("Or analyse the marks all the same: inferscope analyze --step \"{}\"", marks.name),
                ],
                None => actions(case, imports.is_some()),
            }),
            verify: "Record again: the report should start with the latency of a step.".into(),
        };
        finding.into()
    }
}

fn actions(case: &Case, imports: bool) -> Vec<String> {
    let mut actions = match Outside::of(case.timeline) {
        Some(outside) => vec![wording::origin::instead(outside).to_owned()],
        None => vec![
            format!("Mark one request, batch or iteration as a step: {}", wording::origin::marks(case.timeline)),
            "Or use an existing scope: inferscope analyze --step NAME".into(),
        ],
    };
    if imports {
        actions.push("If start-up is too slow: python -X importtime shows which module takes the time.".into());
    }
    actions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, silent};

    #[test]
    fn says_that_there_are_none() {
        assert_eq!(found(&NoStepsFound, "track main\n samples 0..1s every 10ms active gil f:1").len(), 1);
        assert_eq!(found(&NoStepsFound, "").len(), 1);
        assert_eq!(found(&NoStepsFound, "track main\n step r 0..").len(), 1);
    }

    #[test]
    fn says_how_long_the_imports_take() {
        let import = "_find_and_load@/usr/lib/python3.12/importlib/_bootstrap.py:1360>get_data@/usr/lib/python3.12/importlib/_bootstrap_external.py:9";
        let text = format!(
            "track main\n samples 0..260ms every 10ms active gil <module>:1>{import}\n samples 260ms..1s every 10ms active gil <module>:7>f:2"
        );
        let said = found(&NoStepsFound, &text);
        let imports = "imports take 260 ms, 26 % of the recording: start-up, not part of a step";
        assert_eq!(said[0].evidence[1].text, imports);
        assert!(said[0].actions[2].contains("-X importtime"), "{:?}", said[0].actions);
    }

    /// The program may mark them: nothing could see that.
    #[test]
    fn a_program_that_was_not_looked_into_is_not_said_to_mark_none() {
        let seen = "track main\n samples 0..1s every 10ms active gil f:1";
        let attached = found(&NoStepsFound, &format!("attached\n {seen}"));
        assert_eq!(attached[0].title, "`attach` cannot see step markers; percentages cover the whole recording");
        assert!(attached[0].actions[0].contains("inferscope run"), "{:?}", attached[0].actions);
        assert!(
            attached[0].evidence[0].text.starts_with("`attach` records from outside only"),
            "{:?}",
            attached[0].evidence
        );
        let kept_out = found(&NoStepsFound, &format!("collector stacks on\n note not-injected -I\n {seen}"));
        assert!(kept_out[0].title.contains("collectors not loaded in the program"), "{}", kept_out[0].title);
        assert!(kept_out[0].actions.iter().all(|action| !action.contains("with step")), "{:?}", kept_out[0].actions);
    }

    #[test]
    fn marks_that_hold_almost_nothing_are_named_with_what_was_used_instead() {
        let text = "track main\n repeat 20 every 10ms\n step poll 0..1ms\n api cudaLaunchKernel 2ms..3ms\n stream 7\n kernel a 3ms..5ms\n \
             api cudaLaunchKernel 4ms..5ms\n kernel b 5ms..9ms\n api cudaStreamSynchronize 6ms..9ms\n end";
        let said = found(&NoStepsFound, text);
        assert_eq!(said[0].title, "Marks \"poll\" hold only 0 % of the work: \"iteration\" was used");
        assert!(said[0].actions[1].text().contains("--step \"poll\""), "{:?}", said[0].actions);
    }

    #[test]
    fn silent_with_steps_or_a_scope_that_repeats() {
        silent(&NoStepsFound, "track main\n step r 0..40ms");
        silent(&NoStepsFound, "track main\n repeat 3 every 1s\n scope r 0..40ms\n end");
    }
}
