//! `no-steps-found`: nothing in the program says where a request begins and ends.

use crate::advice;
use crate::finding::{Evidence, Finding, Place, Severity};
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::steps::StepSource;

pub struct NoStepsFound;

impl Rule for NoStepsFound {
    fn code(&self) -> &'static str {
        "no-steps-found"
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "No step and no repeating scope was recorded, so shares are of the whole recording, start-up included.",
            why: "A latency is the latency of something. Without steps the busiest thread's whole recording is looked at: loading \
                  and waiting for requests count, and there is no p99.",
            needs: "Nothing.",
            example: "No steps were marked: all shares are of the whole recording, start-up included",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        let missing = case.steps.not_found.as_ref();
        if case.steps.source != StepSource::Whole && missing.is_none() {
            return Verdict::Silent;
        }
        let title = match missing {
            Some(name) => format!(
                "No step or scope is called \"{name}\": {} was used",
                match case.steps.source {
                    StepSource::Whole => "the whole recording".to_owned(),
                    _ => format!("\"{}\"", case.steps.name),
                }
            ),
            None => "No steps were marked: all shares are of the whole recording, start-up included".into(),
        };
        let mut evidence = vec![Evidence::said(case.steps.why.clone())];
        if case.steps.unfinished > 0 {
            evidence.push(
                Evidence::said("steps were begun that never ended").number("steps", case.steps.unfinished as f64),
            );
        }
        let finding = Finding {
            code: self.code(),
            title,
            place: Place::default(),
            gain: None,
            severity: Severity::Info,
            confidence: 1.0, // What was recorded is known.
            evidence,
            actions: vec![
                format!("Mark what one request, batch or iteration is: {}", advice::marks(case.timeline)),
                "Or name a scope that is there: inferscope analyze --step NAME".into(),
            ],
            verify: "Record again: the report should begin with the latency of a step.".into(),
        };
        finding.into()
    }
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
    fn silent_with_steps_or_a_scope_that_repeats() {
        silent(&NoStepsFound, "track main\n step r 0..40ms");
        silent(&NoStepsFound, "track main\n repeat 3 every 1s\n scope r 0..40ms\n end");
    }
}
