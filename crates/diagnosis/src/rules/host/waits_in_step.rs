//! `waits-in-step`: the step's thread does not run but waits, and this is the line it waits at.

mod device;
mod holder;
mod others;
mod own_threads;
mod places;
mod scope;

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::proof;
use crate::rule::{Case, Rule, RuleDocs, Shown, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::host::event_loop_blocked;
use crate::threshold::{Threshold, Unit};
use crate::wording;
use analysis::frames::is;
use analysis::host::blame;
use analysis::host::breakdown::PartKind;
use analysis::host::step_samples::{Doing, StepSample};
use analysis::host::waits::{For, waits_for};
use analysis::origin::Outside;
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::Share;
use others::AtWork;
use places::{FunctionWaits, Places};
use replay::gain::Gain;
use timeline::StackIndex;

pub const CODE: RuleCode = RuleCode::new("waits-in-step");

pub struct WaitsInStep;

const MIN_SHARE: Threshold =
    Threshold::new(CODE, "min_share", 0.10, Unit::Share, "as for a hot function, a tenth of the step is worth a look");

const MIN_HOLDER_SAMPLES: Threshold = Threshold::new(
    CODE,
    "min_holder_samples",
    10.0,
    Unit::Count,
    "of another thread, in the waits and outside of them: fewer show no pattern",
);
const MAX_HOLDER_OUTSIDE: Threshold = Threshold::new(
    CODE,
    "max_holder_outside",
    0.5,
    Unit::Share,
    "who holds what is waited for is in that place at other times at most in this part of how often it is during the waits",
);

/// As many as somebody reads of one rule.
const MAX_FINDINGS: usize = 2;

impl Rule for WaitsInStep {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[MIN_SHARE, MIN_HOLDER_SAMPLES, MAX_HOLDER_OUTSIDE]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "The step spends {min_share} of its time or more blocked at one place.",
            why: "A sample shows a thread that sleeps in a call: on a lock, a queue, a socket, a child process, or a plain sleep. The thread that it waits for is named where one is in one place during these waits and hardly ever otherwise. Faster code does not help there; what it waits for can be started earlier, overlapped or left out. The gain is the share of the step that this wait takes; where other threads of the program run at the same time, that is the upper bound, and the lower bound is the wait in which none does. A function that waits at several lines has a finding for each, with the share and the gain of that line; short waits at many lines are one finding, whose evidence names each. Where the step waits inside a library and threads that run no Python compute at the same time (XLA, TensorFlow, ONNX Runtime), that is the work itself: it is named, and has no gain. A wait for the GPU is named with the call and the line that makes it, and has no gain: what a shorter wait would bring depends on the GPU.",
            needs: "Stack samples inside the steps (at least {stack_samples}), or recorded calls of C functions (`--calls=c`).",
            example: "Blocked for 62 % of the step in next_batch (service.py:131), on a lock, queue or another thread",
        }
    }

    fn without_torch(&self) -> &'static [&'static str] {
        &[
            "Wait less often: every copy to the host and every synchronisation drains the GPU, which is then idle until the next launch arrives.",
            "Copy results out with cudaMemcpyAsync into pinned memory, and read them one step later.",
        ]
    }

    fn shows(&self) -> Option<Shown> {
        Some(Shown::WaitForDevice)
    }

    fn sleeps(&self) -> bool {
        true
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
        for function in blame::functions(case, waits).into_iter().take(MAX_FINDINGS) {
            let frame = |one: &StepSample| case.timeline.stacks.frame(case.blame().frame(case, one));
            let of_function = |one: &StepSample| waits(one) && frame(one).name == function.name;
            let places = Places::of(case, &function, waits);
            for place in places.above_level(case, case.share(of_function).0) {
                let fits = |one: &StepSample| of_function(one) && place.at(frame(one).line);
                found.push(finding(case, &places, &place, fits));
            }
        }
        if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
    }
}

fn finding(case: &Case, places: &Places, waits: &FunctionWaits, fits: impl Fn(&StepSample) -> bool) -> Finding {
    let (frame, share) = (waits.frame, waits.share);
    let place = case.place(frame);
    let mut tops: std::collections::HashMap<StackIndex, u64> = Default::default();
    for one in case.samples.all.iter().filter(|one| fits(one)) {
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
        what = format!(", awaiting scope \"{scope}\" (event loop idle)");
        actions[0] =
            format!("Start what \"{scope}\" awaits earlier, batch its requests, or keep its connections open.");
    }
    if wait == For::Unknown && fits_on_loop(case, &fits) {
        actions.splice(..1, event_loop_blocked::actions(&place));
    }
    let at_work = if wait == For::Lock { others::at_work(case, &fits) } else { AtWork::default() };
    let count: u64 = tops.values().sum();
    if let Some(stack) = at_work.stack.filter(|_| 2 * at_work.count() > count) {
        let theirs = phrase::place(&case.place(stack));
        what = format!(", while other threads run {theirs}");
        actions[0] = format!(
            "Speed up {theirs}, or start it earlier, for the next step while this one runs: the step waits for it."
        );
    }
    let holder = if matches!(wait, For::Lock | For::Unknown) { holder::find(case, &fits) } else { None };
    // Who runs meanwhile is named already.
    if let Some(holder) = holder.as_ref().filter(|_| 2 * at_work.count() <= count) {
        let theirs = phrase::place(&holder.place);
        what = format!(", while another thread is in {theirs}");
        actions[0] = format!(
            "Hold the lock for less time in thread {}, in {theirs}: prepare outside it, or copy what is needed and release it.",
            holder.thread(case)
        );
    }
    let samples = Evidence::new(format!(
        "{} of {} samples inside {} are blocked; on top is {}",
        phrase::count(count),
        phrase::count(case.breakdown.samples),
        case.the_steps(),
        phrase::place(&case.place(top))
    ));
    let mut evidence = vec![samples.number("samples", count as f64)];
    let held = case.samples.all.iter().filter(|one| fits(one) && one.holder != 0).count() as u64;
    if held > 0 {
        let text = format!(
            "in {} of them another thread held the GIL, which may be the reason (calls of C functions tell: --calls=c)",
            phrase::count(held)
        );
        evidence.push(Evidence::new(text).number("samples", held as f64));
    }
    if at_work.count() > 0 {
        let text = format!("in {} of them another thread of the program runs", phrase::count(at_work.count()));
        evidence.push(Evidence::new(text).number("samples", at_work.count() as f64));
    }
    evidence.extend(holder.map(|holder| holder.evidence(case)));
    evidence.extend(places.evidence(case, &place));
    evidence.extend(proof::best_step(case, "blocked", &fits));
    let at = match waits.scattered() {
        true => format!("{} at {}", place.function.as_deref().unwrap_or("one function"), places.count()),
        false => phrase::place(&place),
    };
    let computed = own_threads::cores(case, wait, share, &fits);
    let gain = gain(case, share, fits, &at_work);
    let mut title = format!("Blocked for {} of {} in {at}{what}", phrase::percent(share.mid), case.the_step());
    if let Some(cores) = computed {
        title = format!(
            "Threads of a library compute for {} of {}, awaited in {at}",
            phrase::percent(share.mid),
            case.the_step()
        );
        let text =
            format!("threads that run no Python keep {cores:.1} cores busy in these waits: it is the work itself");
        evidence.push(Evidence::new(text).number("cores", cores));
        actions = ["Make the work itself smaller: a lower precision, fewer or smaller operations, one batch instead of several calls.".into(), "Start it earlier, and wait for its result only where that is used.".into()].to_vec();
    }
    let gain = Some(gain).filter(|_| computed.is_none());
    Finding {
        code: CODE,
        title,
        place,
        gain,
        severity: gain.map_or(Severity::Info, |gain| Severity::of(gain.share())),
        certainty: Certainty::seen(share.surely_above(case.threshold(MIN_SHARE) / 2.0) * case.coverage()),
        evidence,
        actions: Action::all(actions),
        verify: proof::verify(case, gain.map_or(0.0, |gain| gain.mid / 100.0)),
    }
}

/// Whether most of these waits are inside callbacks of an event loop, which runs nothing else meanwhile.
fn fits_on_loop(case: &Case, fits: &impl Fn(&StepSample) -> bool) -> bool {
    let (mut on_loop, mut all) = (0u64, 0u64);
    for one in case.samples.all.iter().filter(|one| fits(one)) {
        all += 1;
        on_loop += u64::from(case.frames.on_path(case.blame().frame(case, one), is::EVENT_LOOP));
    }
    2 * on_loop > all
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
        .take(MAX_FINDINGS);
    let found: Vec<Finding> = device
        .into_iter()
        .chain(waits.map(|part| {
            let (place, share) = (part.place(), Share::exactly(part.share));
            let text = format!("{} in {} (recorded calls)", phrase::duration(part.total_ns), case.the_steps());
            let at = phrase::place(&place);
            Finding {
                code: CODE,
                title: format!("Blocked for {} of {} in {at}", phrase::percent(share.mid), case.the_step()),
                actions: Action::all(what_to_do(case, For::Unknown, &place).1),
                place,
                gain: Some(share.into()),
                severity: Severity::of(share),
                // Laplace's rule, as for everything measured.
                certainty: Certainty::seen(case.windows.repeats()),
                evidence: vec![Evidence::new(text).number("ns", part.total_ns as f64)],
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
            ", on a lock, queue or another thread",
            vec![
                format!(
                    "Find who {line} waits for: the thread that holds the lock or fills the queue limits this step."
                ),
                "Hold the lock for less time (prepare outside it), or give each worker its own data.".into(),
                format!("If {line} waits for a batch to fill up, shorten that wait."),
            ],
        ),
        For::Io => (
            ", on a socket or pipe",
            vec![
                format!(
                    "Start what {line} waits for earlier, and overlap it with other work of the step (threads or asyncio)."
                ),
                "Batch the requests, and keep connections open.".into(),
            ],
        ),
        For::Child => (
            ", on a child process",
            vec![
                format!(
                    "Keep the child that {line} waits for alive: start it once and feed it through a pipe, or use a pool, instead of one child per request."
                ),
                "Do its work in this process with a library, or run several children in parallel.".into(),
                "Time a child that is not Python on its own: the recording does not show what it does.".into(),
            ],
        ),
        For::Nothing if !case.steps.source.is_marked() => (
            ", with the event loop idle",
            vec![
                Outside::of(case.timeline).map_or_else(
                    || {
                        format!(
                            "Mark the requests, to tell waiting for one from waiting inside one: {}",
                            wording::origin::marks(case.timeline)
                        )
                    },
                    |outside| wording::origin::instead(outside).to_owned(),
                ),
                "Await independent things together: await asyncio.gather(a, b).".into(),
            ],
        ),
        For::Nothing => (
            ", awaiting something outside this thread (event loop idle)",
            vec![
                "Put a scope around each await to see which one it is: the step awaits something outside this thread."
                    .into(),
                "Await independent things together: await asyncio.gather(a, b).".into(),
            ],
        ),
        For::Unknown => (
            "",
            vec![
                format!("Check what blocks in {line}: a sleep, a lock or native I/O."),
                "Record again with --calls=c: the C function that it waits in is then named.".into(),
            ],
        ),
    }
}

#[cfg(test)]
mod tests;
