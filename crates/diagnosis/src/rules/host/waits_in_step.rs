//! `waits-in-step`: the step's thread does not run but waits, and this is the line it waits at.

mod device;
mod others;
mod places;
mod scope;

use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::rule_code::RuleCode;
use crate::threshold::{Threshold, Unit};
use analysis::host::blame;
use analysis::host::breakdown::PartKind;
use analysis::host::seen::{Doing, StepSample};
use analysis::host::waits::{For, waits_for};
use analysis::origin::{self, Outside};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use others::AtWork;
use places::{Places, Waits};
use replay::gain::Gain;
use timeline::StackIndex;

pub const CODE: RuleCode = RuleCode::new("waits-in-step");

pub struct WaitsInStep;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.10,
    Unit::Share,
    "as for a line that runs, a tenth of the step is worth a look",
);

const MOST: usize = 2;

impl Rule for WaitsInStep {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The step spends {min_share} of its time or more waiting at one place.",
            why: "A sample shows a thread that sleeps in a call: for a lock, a queue, a socket, a child, or a plain sleep. \
                  Making the code faster cannot help there; what it waits for can be started earlier, done at the same time \
                  or left out. The gain is the share of the step that this wait takes; where other threads of the program run meanwhile, \
                  that is the most, and the least is the wait in which none does. A function that waits at several lines has a finding for each \
                  of them, with the share and the gain of that line; short waits at many lines of it are one, which names each. A wait for the GPU is named with the call \
                  and the line that makes it, and has no gain: what it would bring to wait less depends on the device.",
            needs: "Stack samples inside the steps (at least 20), or recorded calls of C functions (`--calls=c`).",
            example: "62 % of the step is spent waiting in next_batch (service.py:131), for a lock, a queue or another thread",
        }
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Wait less often: every copy to the host and every synchronisation drains the device, which is then idle until the next launch arrives.",
            "Copy results out with cudaMemcpyAsync into pinned memory, and read them one step later.",
        ]
    }

    fn look(&self, case: &Case) -> Verdict {
        let device = device::finding(case);
        match case.without_samples() {
            Some(_) if case.breakdown.by_calls => return by_calls(case, device),
            Some(reason) => return device.map_or(Verdict::Abstain(reason), Verdict::from),
            None => {}
        }
        let waits = |one: &StepSample| one.doing == Doing::Waiting && !case.starts_up(one);
        let mut found = Vec::from_iter(device);
        for function in blame::functions(case, waits).into_iter().take(MOST) {
            let frame = |one: &StepSample| case.timeline.stacks.frame(case.blame().frame(case, one));
            let of_function = |one: &StepSample| waits(one) && frame(one).name == function.name;
            let places = Places::of(case, &function, waits);
            for place in places.worth(case, case.share(of_function).0) {
                let fits = |one: &StepSample| of_function(one) && place.at(frame(one).line);
                found.push(finding(case, &places, &place, fits));
            }
        }
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn finding(case: &Case, places: &Places, waits: &Waits, fits: impl Fn(&StepSample) -> bool) -> Finding {
    let (frame, share) = (waits.frame, waits.share);
    let place = case.place(frame);
    let mut tops: std::collections::HashMap<StackIndex, u64> = Default::default();
    for one in case.seen.all.iter().filter(|one| fits(one)) {
        *tops.entry(case.sample(one).stack).or_default() += 1;
    }
    let top = tops.iter().max_by_key(|(stack, count)| (**count, stack.0)).map_or(frame, |(stack, _)| *stack);
    let wait = waits_for(case.timeline, &case.frames, top);
    // Lines that wait for different things have no one reason.
    let alike = |stack: &StackIndex| waits_for(case.timeline, &case.frames, *stack) == wait;
    let wait = if waits.scattered() && !tops.keys().all(alike) { For::Unknown } else { wait };
    let (what, mut actions) = what_to_do(case, wait, &place);
    let mut what = what.to_owned();
    if let Some(scope) = scope::of(case, &fits).filter(|_| wait == For::Nothing && case.steps.source.is_marked()) {
        what = format!(", where it awaits what is in the scope \"{scope}\" and the event loop has nothing else to run");
        actions[0] = format!(
            "Start what \"{scope}\" awaits earlier, ask once for all instead of once for each, or keep its connections open."
        );
    }
    let at_work = if wait == For::Lock { others::at_work(case, &fits) } else { AtWork::default() };
    let count: u64 = tops.values().sum();
    if let Some(stack) = at_work.stack.filter(|_| 2 * at_work.count() > count) {
        let theirs = phrase::place(&case.place(stack));
        what = format!(", for other threads of the program, which run {theirs} meanwhile");
        actions[0] = format!(
            "Make {theirs} faster, or let it begin earlier, for the next step while this one runs: it sets this step's pace."
        );
    }
    let samples = Evidence::said(format!(
        "{} of {} samples inside {} do not run; on top is {}",
        phrase::count(count),
        phrase::count(case.breakdown.samples),
        case.the_steps(),
        phrase::place(&case.place(top))
    ));
    let mut evidence = vec![samples.number("samples", count as f64)];
    let held = case.seen.all.iter().filter(|one| fits(one) && one.holder != 0).count() as u64;
    if held > 0 {
        let text = format!(
            "in {} of them another thread held the GIL: it may wait for that; --native tells",
            phrase::count(held)
        );
        evidence.push(Evidence::said(text).number("samples", held as f64));
    }
    if at_work.count() > 0 {
        let text = format!("in {} of them another thread of the program runs", phrase::count(at_work.count()));
        evidence.push(Evidence::said(text).number("samples", at_work.count() as f64));
    }
    evidence.extend(places.evidence(case, &place));
    evidence.extend(proof::best_step(case, "it waits", &fits));
    let at = match places.said(case).filter(|_| waits.scattered()) {
        Some(lines) => format!("{} ({lines})", place.function.as_deref().unwrap_or("one function")),
        None => phrase::place(&place),
    };
    let gain = gain(case, share, fits, &at_work);
    Finding {
        code: CODE,
        title: format!("{} of {} is spent waiting in {at}{what}", phrase::percent(share.mid), case.the_step()),
        place,
        gain: Some(gain),
        severity: Severity::of(gain.share()),
        confidence: share.surely_above(case.threshold(MIN_SHARE) / 2.0) * case.coverage(),
        evidence,
        actions,
        verify: proof::verify(case, gain.mid / 100.0),
    }
}

/// What somebody does meanwhile has to be done: surely gained is only the wait in which nobody runs, and at best all of it.
fn gain(case: &Case, share: Share, waits: impl Fn(&StepSample) -> bool, at_work: &AtWork) -> Gain {
    let all = case.gain_of_samples(&waits, share);
    if at_work.count() == 0 {
        return all;
    }
    let idle = |one: &StepSample| waits(one) && !at_work.meanwhile(one);
    let idle = case.gain_of_samples(idle, case.share(idle).0);
    Gain { low: idle.low.min(all.low), mid: idle.mid.min(all.mid), ..all }
}

/// Too few samples: recorded calls whose name says that they wait.
fn by_calls(case: &Case, device: Option<Finding>) -> Verdict {
    let functions = case.breakdown.functions();
    let waits = functions
        .iter()
        .filter(|part| part.kind == PartKind::Waiting && part.share >= case.threshold(MIN_SHARE))
        .take(MOST);
    let steps = case.windows.all().len() as f64;
    let found: Vec<Finding> = device
        .into_iter()
        .chain(waits.map(|part| {
            let (place, share) = (part.place(), Share::exactly(part.share));
            let text = format!("{} in {}, by recorded calls", phrase::duration(part.total_ns), case.the_steps());
            let at = phrase::place(&place);
            Finding {
                code: CODE,
                title: format!("{} of {} is spent waiting in {at}", phrase::percent(share.mid), case.the_step()),
                actions: what_to_do(case, For::Unknown, &place).1,
                place,
                gain: Some(share.into()),
                severity: Severity::of(share),
                // Laplace's rule, as for everything measured.
                confidence: (steps + 1.0) / (steps + 2.0),
                evidence: vec![Evidence::said(text).number("ns", part.total_ns as f64)],
                verify: proof::verify(case, share.mid),
            }
        }))
        .collect();
    if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
}

fn what_to_do(case: &Case, wait: For, place: &Place) -> (&'static str, Vec<String>) {
    let line = place.line.map_or_else(|| "this call".to_owned(), |line| format!("line {line}"));
    match wait {
        For::Lock => (
            ", for a lock, a queue or another thread",
            vec![
                format!(
                    "Look at who answers {line}: the thread that holds the lock or fills the queue sets this step's pace."
                ),
                "Hold the lock for less (prepare outside it), or give each worker its own data.".into(),
                format!("If {line} waits for a batch to fill up, shorten that wait."),
            ],
        ),
        For::Io => (
            ", for a socket or a pipe",
            vec![
                format!(
                    "Start what {line} waits for earlier, and do other work of the step meanwhile (threads or asyncio)."
                ),
                "Ask once for all instead of once for each, and keep connections open.".into(),
            ],
        ),
        For::Child => (
            ", for a child process",
            vec![
                format!(
                    "The child that {line} waits for sets the pace: start it once and feed it through a pipe, or keep a pool of them, instead of starting one for each."
                ),
                "Do its work inside this process, by a library, or run several children at the same time.".into(),
                "What a child that is not Python does is not in the recording: time it alone, or record it by itself."
                    .into(),
            ],
        ),
        For::Nothing if !case.steps.source.is_marked() => (
            ", where the event loop has nothing to run",
            vec![
                Outside::of(case.timeline).map_or_else(
                    || {
                        format!(
                            "Mark the requests, so that waiting for one can be told from waiting inside one: {}",
                            origin::marks(case.timeline)
                        )
                    },
                    |outside| outside.instead().to_owned(),
                ),
                "Await independent things together: await asyncio.gather(a, b).".into(),
            ],
        ),
        For::Nothing => (
            ", where it awaits something and the event loop has nothing else to run",
            vec![
                "The step awaits something outside this thread: see which await with a scope around each.".into(),
                "Await independent things together: await asyncio.gather(a, b).".into(),
            ],
        ),
        For::Unknown => (
            "",
            vec![
                format!("See what {line} calls: a sleep, a lock, or input and output through native code."),
                "Record again with --native: the native frames say what it waits for.".into(),
            ],
        ),
    }
}

#[cfg(test)]
mod tests;
