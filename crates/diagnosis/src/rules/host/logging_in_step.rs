//! `logging-in-step`: the step writes log records, and waits until they are formatted and written.

use crate::bottleneck_kind::BottleneckKind;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::measures::recorded;
use crate::rule::{Case, Edit, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::{hot_line, waits_in_step};
use crate::rules::launch::host_wait;
use crate::rules::pipeline::{postprocess_tail, preprocess_before_first_kernel};
use crate::threshold::{Threshold, Unit};
use analysis::frames::is;
use analysis::host::step_samples::StepSample;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use replay::gain::Gain;
use std::collections::HashMap;
use timeline::{Slice, SliceKind, StackIndex};

pub const CODE: RuleCode = RuleCode::new("logging-in-step");

pub struct LoggingInStep;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.02,
    Unit::Share,
    "a service that logs spends some time on it; a fiftieth of every step is too much",
);

impl Rule for LoggingInStep {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "Logging calls inside the step take {min_share} of it or more.",
            why: "A handler formats and writes on the calling thread, under a lock that all threads share, and flushes after every record. Samples show it under `logging` (or loguru); the line named is the one in your code that logs. `print` is a built-in that samples do not see: recorded calls (`--calls=c`) do.",
            needs: "Stack samples inside the steps (at least {stack_samples}), or recorded calls.",
            example: "Logging takes 9.4 % of the step, from handle (service.py:71)",
        }
    }

    fn explains(&self) -> &'static [RuleCode] {
        &[
            hot_line::CODE,
            host_wait::CODE,
            preprocess_before_first_kernel::CODE,
            postprocess_tail::CODE,
            waits_in_step::CODE,
        ]
    }

    fn bottleneck(&self) -> Option<BottleneckKind> {
        Some(BottleneckKind::Cpu)
    }

    fn edit(&self) -> Option<Edit> {
        Some(Edit { what: "log every hundredth step, or through a queue", whatif: None })
    }

    fn look(&self, case: &Case) -> Verdict {
        let mut found = Vec::new();
        let reason = case.without_samples();
        if reason.is_none() {
            found.extend(sampled(case));
        }
        let calls = case.timeline.info.settings.calls == Some(true);
        let wanted = |slice: &Slice| {
            let bits = case.frames.bits(slice.name);
            match slice.kind {
                SliceKind::CCall => matches!(case.timeline.names.text(slice.name), "print" | "builtins.print"),
                SliceKind::Call => found.is_empty() && reason.is_some() && bits & is::LOGGING != 0,
                _ => false,
            }
        };
        let called = recorded::inside(case, wanted);
        found.extend(by_calls(case, &called));
        match (found.is_empty(), reason) {
            (false, _) => Verdict::Found(found),
            (true, Some(reason)) if !calls && called.count == 0 => Verdict::Abstain(reason),
            _ => Verdict::Silent,
        }
    }
}

fn sampled(case: &Case) -> Option<Finding> {
    let logs = |one: &StepSample| case.frames.on_path(case.sample(one).stack, is::LOGGING);
    let (share, tally) = case.share(logs);
    if share.mid < case.threshold(MIN_SHARE) || share.low < case.threshold(MIN_SHARE) / 2.0 {
        return None;
    }
    let mut callers: HashMap<StackIndex, u64> = HashMap::new();
    let mut known: HashMap<StackIndex, StackIndex> = HashMap::new();
    for one in case.samples.all.iter().filter(|one| logs(one)) {
        let stack = case.sample(one).stack;
        *callers.entry(*known.entry(stack).or_insert_with(|| caller(case, stack))).or_default() += 1;
    }
    let mut callers: Vec<_> = callers.into_iter().filter(|(stack, _)| stack.0 != 0).collect();
    callers.sort_by_key(|(stack, count)| (u64::MAX - count, *stack));
    let count = tally.part as u64;
    let text = format!(
        "{} of {} samples inside the steps are under logging",
        phrase::count(count),
        phrase::count(case.breakdown.samples)
    );
    let mut evidence = vec![Evidence::new(text).number("samples", count as f64)];
    for (stack, count) in callers.iter().take(3) {
        let text = format!("{} logs: {} samples", phrase::place(&case.place(*stack)), phrase::count(*count));
        evidence.push(Evidence::new(text).number("samples", *count as f64));
    }
    let gain = case.gain_of_samples(logs, share);
    evidence.extend(proof::unseen(share, &gain));
    evidence.extend(proof::best_step(case, "logging", logs));
    let place = callers.first().map_or_else(Place::default, |(stack, _)| case.place(*stack));
    Some(finding(
        case,
        place,
        (share, gain),
        share.surely_above(case.threshold(MIN_SHARE) / 2.0) * case.coverage(),
        evidence,
    ))
}

/// The frame that called into logging: the one around the outermost logging frame.
fn caller(case: &Case, stack: StackIndex) -> StackIndex {
    let logging = |frame: &timeline::Frame| case.frames.bits(frame.name) & is::LOGGING != 0;
    let outermost = case.timeline.stacks.walk(stack).filter(|(_, frame)| logging(frame)).last();
    outermost.map_or(StackIndex(0), |(_, frame)| case.frames.home(frame.parent))
}

fn by_calls(case: &Case, called: &recorded::Recorded) -> Option<Finding> {
    let share = called.tally.measured();
    if share.mid < case.threshold(MIN_SHARE) || share.low < case.threshold(MIN_SHARE) / 2.0 {
        return None;
    }
    let (_, first) = called.longest.first()?;
    let name = case.timeline.names.get(first.name);
    let place = Place {
        file: Some(name.file.to_string()).filter(|file| !file.is_empty()),
        line: Some(name.line).filter(|line| *line > 0),
        function: Some(name.text.to_string()),
        ..Place::default()
    };
    let text = format!("{} in {} steps", phrase::counted(called.count, "recorded call"), phrase::count(called.windows));
    let mut evidence = vec![Evidence::new(text).number("calls", called.count as f64)];
    evidence.extend(called.longest.iter().map(|(track, slice)| {
        let text = format!("{} took {}", case.timeline.names.text(slice.name), phrase::duration(slice.dur));
        Evidence::at(text, Some(*track), slice.start, slice.end()).number("ns", slice.dur as f64)
    }));
    let gain = case.gain_of_host(share);
    Some(finding(
        case,
        place,
        (share, gain),
        share.surely_above(case.threshold(MIN_SHARE) / 2.0) * called.tally.repeats(),
        evidence,
    ))
}

fn finding(
    case: &Case,
    place: Place,
    (share, gain): (Share, Gain),
    confidence: f64,
    evidence: Vec<Evidence>,
) -> Finding {
    let at = phrase::place(&place);
    Finding {
        code: CODE,
        title: format!(
            "Logging takes {} of {}, from {at}",
            phrase::percent(proof::blamed(share, &gain)),
            case.the_step()
        ),
        place,
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        certainty: Certainty::seen(confidence),
        evidence,
        actions: vec![
            format!(
                "Log less at {at}: once per batch, or only what is slow or wrong (logger.isEnabledFor before building the text)."
            ).into(),
            "Write from another thread: logging.handlers.QueueHandler in the step, a QueueListener beside it.".into(),
            "Raise the level of chatty libraries: logging.getLogger(\"name\").setLevel(logging.WARNING).".into(),
        ],
        verify: proof::verify(case, gain.mid / 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{abstains, found, silent};

    #[test]
    fn names_the_line_that_logs() {
        let found = found(&LoggingInStep, "
            track main
            repeat 50 every 50ms
              step request 0..40ms
              sample 1ms active gil serve>handle:71>info@/usr/lib/python3.12/logging/__init__.py:1539>emit@/usr/lib/python3.12/logging/__init__.py:1163
              samples 11ms..41ms every 10ms active gil serve>handle:80
            end");
        assert_eq!(found[0].title, "Logging takes 25 % of the step, from handle (app.py:71)");
        assert!(found[0].gain.unwrap().low > 18.0);
    }

    #[test]
    fn recorded_calls_show_print() {
        let found = found(
            &LoggingInStep,
            "
            calls on
            track main
            repeat 10 every 50ms
              step request 0..40ms
              ccall print 5ms..9ms
            end",
        );
        assert_eq!(found[0].title, "Logging takes 10 % of the step, from print");
        assert_eq!(found[0].evidence[1].start, Some(5_000_000));
    }

    #[test]
    fn silent_when_it_logs_elsewhere_or_rarely() {
        silent(
            &LoggingInStep,
            "
            track main
            repeat 50 every 100ms
              step request 0..40ms
              samples 1ms..41ms every 10ms active gil serve>handle:80
              sample 60ms active gil serve>handle:71>info@/usr/lib/python3.12/logging/__init__.py:1539
            end",
        );
        silent(&LoggingInStep, "calls on\n track main\n step request 0..1s\n ccall print 5ms..6ms");
    }

    #[test]
    fn abstains_without_samples_or_calls() {
        abstains(&LoggingInStep, "track main\n step request 0..1s", "stacks not sampled");
    }
}
