//! How far the recording can be trusted: what is missing from it, how exact its times are, whether its steps are steady.

mod calls;
pub mod device;
mod layers;
mod memory;

use crate::finding::{Abstention, Finding};
use crate::health_topic::HealthTopic;
use crate::losses;
use crate::measures::own_load;
use crate::rule::Case;
use crate::rules::RULES;
use crate::wording;
use crate::wording::origin::{completeness, not_recorded};
use analysis::origin;
use analysis::phrase;
use analysis::steps::StepSource;
use analysis::steps::startup::Startup;
use std::collections::BTreeMap;
use timeline::{CollectorCode, CollectorState, Condition, Note, NoteCode, RecordedBy, State, Timeline};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HealthLine {
    pub state: HealthState,
    pub topic: HealthTopic,
    pub text: String,
    /// The collector that was off in every process and left no reason: what is missing for it says more than that.
    pub off: Option<CollectorCode>,
}

impl HealthLine {
    fn new(topic: HealthTopic, (state, text): (HealthState, String)) -> HealthLine {
        HealthLine { state, topic, text, off: None }
    }

    pub fn label(&self) -> &'static str {
        self.topic.label()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HealthState {
    Ok,
    /// Neither good nor bad: not recorded, not asked for, or nothing to compare with.
    Info,
    /// Read the numbers with it in mind.
    Warn,
    /// Numbers may mislead.
    Bad,
}

impl HealthState {
    pub fn name(self) -> &'static str {
        match self {
            HealthState::Ok => "ok",
            HealthState::Info => "info",
            HealthState::Warn => "warn",
            HealthState::Bad => "bad",
        }
    }

    fn above(value: f64, warn: f64, bad: f64) -> HealthState {
        match value {
            _ if value >= bad => HealthState::Bad,
            _ if value >= warn => HealthState::Warn,
            _ => HealthState::Ok,
        }
    }
}

use HealthState::{Bad, Info, Ok, Warn};
use HealthTopic as Topic;

/// Of some topics a rule speaks: what it found, or that it could not look.
pub fn lines(case: &Case, findings: &[Finding], abstentions: &[Abstention]) -> Vec<HealthLine> {
    let line = HealthLine::new;
    if analysis::memory::is_all(case.timeline) {
        return memory::lines(case);
    }
    let mut lines = vec![
        line(Topic::Recording, recording(case)),
        line(Topic::Losses, losses(case)),
        line(Topic::Clock, clock(case)),
        line(Topic::Steps, steps(case)),
        line(Topic::Samples, samples(case)),
    ];
    let unmeasured = match case.timeline.samples.is_empty() {
        true => "not measured",
        false => "not measured; stack samples are taken from outside the program",
    };
    let unmeasured = calls::overhead(case).unwrap_or(unmeasured);
    let rule = |topic: Topic| RULES.iter().find(|rule| rule.health_topic() == Some(topic));
    let said = |topic: Topic| {
        let code = rule(topic)?.code();
        findings.iter().find(|finding| finding.code == code).map(|finding| (Warn, finding.title.clone()))
    };
    let pace = rule(Topic::Pace).map(|rule| rule.code());
    let unseen = abstentions.iter().any(|one| Some(one.code) == pace);
    let off = pace.is_some_and(|code| case.settings().off(code).is_some());
    let pace = said(Topic::Pace).unwrap_or_else(|| match () {
        () if off => (Info, "not examined: the rule is switched off".into()),
        () if unseen => (Info, "too few steps to see a trend".into()),
        () => (Ok, "step time is stable".into()),
    });
    lines.push(line(Topic::Pace, pace));
    let overhead = device::overhead(case).or_else(|| said(Topic::Overhead));
    lines.push(line(Topic::Overhead, overhead.unwrap_or((Info, unmeasured.into()))));
    lines.extend(own_load(case).map(|said| line(Topic::Recorder, said)));
    lines.extend(changed_rules(case).map(|text| line(Topic::Rules, (Info, text))));
    lines.extend(device::lines(case));
    lines.extend(layers::line(case).map(|said| line(Topic::Layers, said)));
    lines.extend(collectors(case));
    lines.extend(case.timeline.notes.iter().map(|note| line(Topic::Note, (note_state(note), note.said()))));
    lines
}

/// What recording takes of the machine, where that was recorded.
fn own_load(case: &Case) -> Option<(HealthState, String)> {
    let cores = Some(own_load::cores(case)).filter(|cores| *cores > 0.0)?;
    let all = case.timeline.info.host.cpu_count.unwrap_or(1).max(1) as f64;
    let state = if cores > MIN_OWN_LOAD * all { HealthState::Warn } else { HealthState::Info };
    Some((state, own_load::text(cores)))
}

/// A twentieth of the machine is more than most differences worth looking for.
const MIN_OWN_LOAD: f64 = 0.05;

/// What the user changed of our rules: it decides what is found.
fn changed_rules(case: &Case) -> Option<String> {
    let said = case.settings().changes();
    let (first, more) = (said.iter().take(MOST_CHANGES), said.len().saturating_sub(MOST_CHANGES));
    let first: Vec<&str> = first.map(String::as_str).collect();
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    (!said.is_empty()).then(|| format!("changed: {}{rest}", first.join("; ")))
}

/// As many as fit a line; `inferscope rules list` shows all.
const MOST_CHANGES: usize = 5;

/// What a note means for the numbers: a program that has nothing to sample lacks nothing.
pub fn note_state(note: &Note) -> HealthState {
    if note.code == NoteCode::NoPython { Info } else { Warn }
}

fn recording(case: &Case) -> (HealthState, String) {
    let took = phrase::duration(case.timeline.duration());
    match case.timeline.info.state {
        _ if case.timeline.duration() == 0 => (Bad, "no timed events recorded".into()),
        _ if !case.timeline.info.damaged.is_empty() => {
            let damaged = damaged(case.timeline).unwrap_or_default();
            (Bad, format!("{took}; {damaged}: important data may be missing"))
        }
        state @ State::Complete => (Ok, format!("{}, {took}", completeness(state))),
        State::Unknown => (Info, format!("{took}; {}", completeness(State::Unknown))),
        state => (Warn, format!("{took}; {}", completeness(state))),
    }
}

/// Files of the trace that are damaged.
fn damaged(timeline: &Timeline) -> Option<String> {
    match timeline.info.damaged.as_slice() {
        [] => None,
        [one] => Some(format!("trace file {one} is damaged")),
        [first, more @ ..] => Some(format!("{} trace files are damaged ({first}, ...)", more.len() + 1)),
    }
}

/// Said before everything else of what could not be read to its end.
pub fn cut(case: &Case) -> Option<String> {
    if let Some(damaged) = damaged(case.timeline) {
        return Some(format!("Caution: {damaged}; its data is missing below."));
    }
    match case.timeline.info.state {
        State::Cut { events: Some(events) } => {
            let events = phrase::counted(events, "event");
            Some(format!("Only the beginning of the file is readable: this covers its first {events}."))
        }
        State::Cut { events: None } => {
            Some("Only the beginning of some files is readable: this covers that part.".into())
        }
        _ => None,
    }
}

/// A larger part that was lost is bad.
pub const MAX_LOST_SHARE: f64 = 0.05;

fn losses(case: &Case) -> (HealthState, String) {
    let losses = losses::totals(case.timeline);
    let lost = losses.iter().fold(0u64, |sum, loss| sum.saturating_add(loss.count));
    let cut = match case.timeline.info.state {
        State::Cut { events: Some(events) } => {
            Some(format!("everything after the first {} of the file", phrase::counted(events, "event")))
        }
        State::Cut { events: None } => Some("the end of some of the files".into()),
        _ => damaged(case.timeline).map(|_| "the content of the damaged files".into()),
    };
    if lost == 0 {
        let mut collectors = case.timeline.processes.iter().flat_map(|process| &process.collectors);
        if let Some(failed) = collectors.find(|collector| collector.state == Condition::Failed) {
            let name = &failed.name;
            return (Warn, format!("none counted, but collector {name} failed: what it missed is not counted"));
        }
        let nothing = match case.timeline.info.recorded_by {
            RecordedBy::InferScope => (Ok, "no losses".into()),
            other => (Info, format!("the {other} file does not report any")),
        };
        return cut.map_or(nothing, |cut| (Warn, cut));
    }
    let each: Vec<String> = cut.into_iter().chain(losses.iter().take(3).map(|loss| loss.text())).collect();
    (HealthState::above(losses::worst_share(case.timeline, &losses), 0.0, MAX_LOST_SHARE), each.join(", "))
}

fn clock(case: &Case) -> (HealthState, String) {
    let clock = &case.timeline.info.clock;
    // A recorder that was killed had not measured it.
    let killed = matches!(case.timeline.info.state, State::Recording | State::Recovered);
    if clock.residual_ns == 0 && (clock.source.is_empty() || killed) {
        return (Info, "the trace does not give its clock error".into());
    }
    let state = match case.steps.p50() {
        0 => Ok,
        step => HealthState::above(clock.residual_ns as f64 / step as f64, 0.01, 0.1),
    };
    match clock.residual_ns {
        0 => (Ok, "no error seen".into()),
        error => (state, format!("timestamps accurate to {}", phrase::duration(error))),
    }
}

/// Steps that are as likely as not are not to be relied on.
const MIN_STEPS_CONFIDENCE: f64 = 0.5;

fn steps(case: &Case) -> (HealthState, String) {
    let steps = &case.steps;
    let mut text = match steps.source {
        StepSource::Whole => "none".to_owned(),
        _ => format!("{} \"{}\"", phrase::count(steps.count() as u64), steps.name),
    };
    text += &format!(": {}", wording::steps::why(steps));
    let outliers = steps.steps.iter().filter(|step| step.outlier).count();
    for (count, what) in [
        (steps.warmups() as u64, "excluded as warm-up"),
        (steps.unfinished, "never ended"),
        (outliers as u64, "far above the median"),
    ] {
        if count > 0 {
            text += &format!("; {} {what}", phrase::count(count));
        }
    }
    if case.windows.overlapping && steps.source != StepSource::Whole {
        text += "; they overlap on a thread, so shares are of the time in which any step was open";
    }
    for kind in &steps.kinds {
        text += &format!("; another kind: {}", wording::steps::kind(kind));
    }
    let notable = |startup: &Startup| steps.source != StepSource::Whole && startup.is_notable(case.timeline);
    if let Some(startup) = steps.startup.filter(notable) {
        text += &format!("; start-up before them: {}", wording::steps::startup(&startup));
    }
    let marked = steps.not_found.is_none() && steps.passed_over.is_none();
    let fine = steps.source != StepSource::Whole && marked && steps.confidence >= MIN_STEPS_CONFIDENCE;
    (if fine { Ok } else { Warn }, text)
}

fn samples(case: &Case) -> (HealthState, String) {
    let count = case.samples.all.len() as u64;
    if let Some(few) = case.too_few_samples() {
        return (Bad, few.reason(case));
    }
    if count == 0 {
        let (state, plain) = match case.timeline.samples.is_empty() {
            true if origin::failed(case.timeline, CollectorCode::Stacks) => (Warn, "stacks not sampled"),
            true => (Info, "stacks not sampled"),
            false => return (Warn, format!("no stack samples inside {}", case.the_steps())),
        };
        return (state, not_recorded(case.timeline, CollectorCode::Stacks, plain));
    }
    if let Some(reason) = case.without_samples() {
        return match case.breakdown.by_calls {
            true => (Warn, format!("{reason}; recorded calls are used instead")),
            false => (Bad, reason),
        };
    }
    let state = HealthState::above(1.0 - case.coverage(), 0.1, 0.5);
    let every = phrase::duration(case.samples.period_ns);
    let seen = phrase::percent(case.coverage());
    let inside = case.the_steps();
    (state, format!("{} inside {inside}, one every {every}, covering {seen} of the time", phrase::count(count)))
}

/// Collectors that were not on, each with its reason and in how many processes.
fn collectors(case: &Case) -> Vec<HealthLine> {
    let mut all: BTreeMap<(&str, &str, &str), (u64, &CollectorState)> = BTreeMap::new();
    for collector in case.timeline.processes.iter().flat_map(|process| &process.collectors) {
        // A machine without a device is not told that nothing recorded one.
        let of_device = losses::is_of_device(&collector.name);
        let unasked = of_device && collector.state == Condition::Off && case.timeline.gpu.is_empty();
        if collector.state != Condition::On && !unasked {
            all.entry((&collector.name, &collector.state, &collector.reason)).or_insert((0, collector)).0 += 1;
        }
    }
    let processes = case.timeline.processes.len() as u64;
    let said = |((name, state, reason), (count, collector)): ((&str, &str, &str), (u64, &CollectorState))| {
        let mut text = format!("{name}: {}", if reason.is_empty() { state } else { reason });
        if processes > 1 {
            text += &format!(" (in {count} of {processes} processes)");
        }
        let state = if collector.state == Condition::Failed { Warn } else { Info };
        let off = collector.state == Condition::Off && reason.is_empty() && count == processes;
        HealthLine { off: collector.name.known().filter(|_| off), ..HealthLine::new(Topic::NotRecorded, (state, text)) }
    };
    all.into_iter().map(said).collect()
}
