//! `hot-line`: one function of the program takes much of every step, and this line of it most.

mod advice;
mod calls;
mod model_work;
mod operators;
mod own_time;

use crate::action::Action;
use crate::certainty::Certainty;
use crate::finding::{Evidence, Finding, Severity};
use crate::measures::element_reads;
use crate::measures::proof;
use crate::measures::recorded;
use crate::rule::{Case, Rule, RuleDocs, Shown, Verdict};
use crate::rule_code::RuleCode;
use crate::rules::health::no_steps_found;
use crate::threshold::{Threshold, Unit};
use analysis::frames::{NativeFunction, is, native_function};
use analysis::host::blame::{self, Blamed};
use analysis::host::breakdown::{Part, PartKind};
use analysis::host::model_calls::ModelCalls;
use analysis::host::step_samples::{Doing, StepSample};
use analysis::phrase;
use analysis::place::Place;
use analysis::stats::share::{Share, again};
use analysis::steps::StepSource;
use calls::Calls;
use operators::HotOperators;
use replay::gain::Gain;

pub const CODE: RuleCode = RuleCode::new("hot-line");

pub struct HotLine;

const MIN_SHARE: Threshold = Threshold::new(
    CODE,
    "min_share",
    0.10,
    Unit::Share,
    "a tenth of the step is worth a look; at the low end of the interval half of that is enough",
);
const MAX_SHARE: Threshold = Threshold::new(
    CODE,
    "max_share",
    0.8,
    Unit::Share,
    "a function that is nearly everything that runs is the work itself, unless the calls of models are seen to lie elsewhere: then no gain is given",
);

const MAX_FUNCTIONS: Threshold =
    Threshold::new(CODE, "max_functions", 3.0, Unit::Count, "what comes after three others is not hot");
const MAX_MODEL_SHARE: Threshold = Threshold::new(
    CODE,
    "max_model_share",
    0.1,
    Unit::Share,
    "a function with no more of its samples in calls of models lies beside them: a stack that is read late shows the next call",
);
const MIN_CALLS: Threshold = Threshold::new(
    CODE,
    "min_calls",
    3.0,
    Unit::Count,
    "of an operator that takes long: fewer may be what only the first steps do",
);
const MIN_LONG_CALL: Threshold = Threshold::new(
    CODE,
    "min_long_call",
    1_000_000.0,
    Unit::Nanoseconds,
    "no operator takes this long to launch what it launches",
);
const MIN_COMPUTING_CALL: Threshold = Threshold::new(
    CODE,
    "min_computing_call",
    100_000.0,
    Unit::Nanoseconds,
    "an operator that launches nothing and takes this long computes",
);
const MIN_CALLEE_SAMPLES: Threshold = Threshold::new(
    CODE,
    "min_callee_samples",
    3.0,
    Unit::Count,
    "two samples in a function that it calls could be chance",
);
const MIN_READS: Threshold = Threshold::new(
    CODE,
    "min_reads",
    8.0,
    Unit::Count,
    "elements of a tensor read in a call of the function: fewer are no loop",
);
const MIN_SMALL_OPERATORS: Threshold =
    Threshold::new(CODE, "min_small_operators", 50.0, Unit::Count, "fewer in a step cost nothing, however small");
const MAX_SMALL_OPERATOR: Threshold = Threshold::new(
    CODE,
    "max_small_operator",
    20_000.0,
    Unit::Nanoseconds,
    "an operator that takes less spends most of its time in PyTorch's own call: no kernel does much in it",
);
const MAX_BUSY_CORES: Threshold = Threshold::new(
    CODE,
    "max_busy_cores",
    0.6,
    Unit::Share,
    "with more of the cores busy in the steps, more threads get in each other's way",
);

impl Rule for HotLine {
    fn code(&self) -> RuleCode {
        CODE
    }

    fn thresholds(&self) -> &'static [Threshold] {
        &[
            MIN_SHARE,
            MAX_SHARE,
            MAX_FUNCTIONS,
            MAX_MODEL_SHARE,
            MIN_CALLS,
            MIN_LONG_CALL,
            MIN_COMPUTING_CALL,
            MIN_CALLEE_SAMPLES,
            MIN_READS,
            MIN_SMALL_OPERATORS,
            MAX_SMALL_OPERATOR,
            MAX_BUSY_CORES,
        ]
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "One function takes {min_share} of the step or more.",
            why: "Time is attributed to the deepest function of your own code on the stack, so that work inside a library counts for the line that called it, and a lambda or comprehension for the function around it. The gain is what the step would save without that function, including its waits for a core: the most that any change to it can bring. No gain is given where nothing shows that time could be saved: native code that computes without the GIL and operators of a tensor framework (usually the model), what a library does inside a call of its model unless one function of it has most of that, and a function that is nearly everything the step runs, unless the step is seen to call its models elsewhere. The share is the function's; where one of several lines clearly leads, it is named with its own share. Where the line calls a model on the CPU, the operators it runs, with their shapes and modules, come from the steps in which operators were recorded, and the advice is by what leads among them. What a queue or a lock needs to pass things between threads counts for nobody. A function that reads tensors element by element, by recorded C calls (`--calls=c`) or by operators (`--ops`), is advised to be vectorised, with how often it does; caching is advised only where operators do not show that its inputs change from step to step. Vectorising is advised where most samples are in the function's own lines; else the function that it calls is named. In a recording without steps imports count as start-up: `{rule}` gives their time.",
            needs: "Stack samples inside the steps (at least {stack_samples}), or recorded calls (`--calls`).",
            example: "build_vocabulary takes 31 % of the step (hottest line service.py:57, 18 %)",
        }
    }

    fn shows(&self) -> Option<Shown> {
        Some(Shown::HostCode)
    }

    fn mentions(&self) -> &'static [RuleCode] {
        &[no_steps_found::CODE]
    }

    fn look(&self, case: &Case) -> Verdict {
        match case.without_samples() {
            None => sampled(case),
            Some(_) if case.breakdown.by_calls => by_calls(case),
            Some(reason) => Verdict::Abstain(reason),
        }
    }
}

/// What `logging-in-step` looks at is left to it, and what only starts the program to `no-steps-found`. What a queue needs to wake the other thread is no
/// code of who takes something from it.
fn runs(case: &Case, one: &StepSample) -> bool {
    matches!(one.doing, Doing::Python | Doing::Native)
        && !case.frames.hands_over(case.sample(one).stack)
        && !case.frames.on_path(case.sample(one).stack, is::LOGGING)
        && !case.starts_up(one)
}

/// A function that takes much of the steps, however that is known.
struct HotFunction {
    place: Place,
    share: Share,
    gain: Gain,
    /// Most of it is native code that runs without the GIL, or operators of a framework.
    native: bool,
    /// The native function that most of it is in.
    function: Option<NativeFunction>,
    /// The operators that it runs, where it runs little else.
    operators: Option<HotOperators>,
    /// Most of it is the import of a module.
    imports: bool,
    /// What its hottest line has of it, 0 to 1.
    of_line: f64,
    /// Of all that runs in the steps, 0 to 1.
    of_running: f64,
    /// Models are called in the steps, and hardly any of it lies in such a call.
    is_beside_models: bool,
    confidence: f64,
    evidence: Vec<Evidence>,
    calls: Calls,
}

fn sampled(case: &Case) -> Verdict {
    let runs = |one: &StepSample| runs(case, one);
    let running = case.samples.all.iter().filter(|one| runs(one)).count() as f64;
    let functions = blame::functions(case, runs).into_iter().take(case.threshold(MAX_FUNCTIONS) as usize);
    let models = ModelCalls::inside_steps(case);
    let found = functions.filter_map(|function| {
        let name = |one: &StepSample| case.timeline.stacks.frame(case.blame().frame(case, one)).name;
        let fits = |one: &StepSample| runs(one) && name(one) == function.name;
        let (share, _) = case.share(fits);
        let imports = case.samples.all.iter().filter(|one| fits(one) && case.frames.imports(case.sample(one).stack));
        let imports = imports.count() as u64 * 2 > function.count;
        let in_model = models
            .as_ref()
            .map(|models| case.samples.all.iter().filter(|one| fits(one) && models.holds(case, one)).count() as u64);
        // A tensor that is made of Python's values is Python's work: it is no native function that could be called less.
        let of_values = |one: &StepSample| case.frames.on_top(case.sample(one).stack) & is::FROM_VALUES != 0;
        let values = case.samples.all.iter().filter(|one| fits(one) && of_values(one)).count() as u64;
        let of_model = models.as_ref().and_then(|models| model_work::of(case, models, fits));
        let is_work = |one: &StepSample| is_native(case, one) || of_model.as_ref().is_some_and(|of| of.has(case, one));
        let native = case.samples.all.iter().filter(|one| fits(one) && is_work(one)).count() as u64;
        (share.mid >= case.threshold(MIN_SHARE) && share.low >= case.threshold(MIN_SHARE) / 2.0).then(|| HotFunction {
            place: place(case, &function),
            share,
            gain: case.gain_of_samples(fits, share),
            native: native * 2 > function.count && !imports,
            function: native_function_of(case, fits).filter(|_| values * 2 <= function.count),
            operators: HotOperators::find(case, fits),
            imports,
            of_line: function.lines.first().map_or(1.0, |(_, count)| *count as f64 / function.count as f64),
            of_running: function.count as f64 / running.max(1.0),
            is_beside_models: in_model
                .is_some_and(|count| (count as f64) < case.threshold(MAX_MODEL_SHARE) * function.count as f64),
            confidence: share.surely_above(case.threshold(MIN_SHARE) / 2.0) * case.coverage(),
            evidence: evidence(case, &function, fits),
            calls: Calls::default(),
        })
    });
    verdict(case, found.collect())
}

/// Without the GIL; or in an operator that keeps it, as small ones do. Making a tensor of a list, value by value, is Python's work.
fn is_native(case: &Case, one: &StepSample) -> bool {
    let top = case.frames.on_top(case.sample(one).stack) & (is::OPERATOR | is::FROM_VALUES);
    one.doing == Doing::Native || top == is::OPERATOR
}

fn native_function_of(case: &Case, fits: impl Fn(&StepSample) -> bool) -> Option<NativeFunction> {
    let stacks = case.samples.all.iter().filter(|one| fits(one)).map(|one| case.sample(one).stack);
    native_function(case.timeline, &case.frames, stacks)
}

/// Its hottest line, if that leads so clearly that another recording would name the same; else the function without a line.
fn place(case: &Case, function: &Blamed) -> Place {
    let Some((frame, first)) = function.lines.first() else { return Place::default() };
    let place = case.place(*frame);
    let next = function.lines.get(1).map_or(0, |(_, count)| *count);
    // A count of samples varies by its square root. Twice that is exceeded by chance once in twenty recordings: statistics, and no level to choose.
    let leads = first.saturating_sub(next).pow(2) >= 4 * (first + next);
    if next == 0 || leads { place } else { Place { line: None, ..place } }
}

fn evidence(case: &Case, function: &Blamed, fits: impl Fn(&StepSample) -> bool) -> Vec<Evidence> {
    let (count, of) = (phrase::count(function.count), phrase::count(case.breakdown.samples));
    let samples = Evidence::new(format!("{count} of {of} samples inside {}", case.the_steps()));
    let mut evidence = vec![samples.number("samples", function.count as f64)];
    evidence.extend(function.lines.iter().take(3).map(|(frame, count)| {
        let at = phrase::place(&case.place(*frame));
        Evidence::new(format!("{at}: {} samples", phrase::count(*count))).number("samples", *count as f64)
    }));
    let (with, all) = proof::windows_with(case, &fits);
    if all > 1 && case.steps.source != StepSource::Whole {
        let text = format!("seen in {with} of the {all} sampled steps");
        evidence.push(Evidence::new(text).number("steps", with as f64));
    }
    evidence.extend(proof::best_step(case, "on the stack", &fits));
    evidence
}

/// Too few samples: recorded calls, each by the time that no call inside it takes.
fn by_calls(case: &Case) -> Verdict {
    let running = case.breakdown.share(PartKind::Python) + case.breakdown.share(PartKind::Native);
    let starts_up = |part: &Part| case.steps.source == StepSource::Whole && part.file.starts_with("<frozen importlib");
    let runs = |part: &Part| {
        matches!(part.kind, PartKind::Python | PartKind::Native)
            && part.share >= case.threshold(MIN_SHARE)
            && !starts_up(part)
    };
    let most = case.threshold(MAX_FUNCTIONS) as usize;
    let found: Vec<Part> = case.breakdown.functions().into_iter().filter(runs).take(most).collect();
    if found.is_empty() {
        return Verdict::Silent;
    }
    let stretches = recorded::call_stretches(case);
    let hot = |part: Part| {
        let calls = calls::of(case, &part, &stretches);
        let each = phrase::duration(calls.each_ns);
        let own = format!("{} of its own in {} (recorded calls)", phrase::duration(part.total_ns), case.the_steps());
        let evidence = match calls.count {
            0 => Evidence::new(own),
            1 => Evidence::new(format!("{own}: one call")),
            count => Evidence::new(format!("{own}: {}, {each} each", phrase::counted(count, "call"))),
        };
        let evidence = evidence.number("ns", part.total_ns as f64);
        HotFunction {
            share: Share::exactly(part.share),
            gain: case.gain_of_host(Share::exactly(part.share)),
            native: part.kind == PartKind::Native,
            function: None,
            operators: None,
            imports: false,
            // The line of a recorded call is where its function is defined.
            of_line: 1.0,
            of_running: part.share / running.max(part.share),
            is_beside_models: false,
            confidence: again(case.windows.all().len()),
            evidence: vec![match calls.count {
                0 => evidence,
                count => evidence.number("calls", count as f64),
            }],
            place: part.place(),
            calls,
        }
    };
    verdict(case, found.into_iter().map(hot).collect())
}

fn verdict(case: &Case, found: Vec<HotFunction>) -> Verdict {
    let found: Vec<Finding> = found.into_iter().map(|hot| finding(case, hot)).collect();
    if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
}

fn finding(case: &Case, hot: HotFunction) -> Finding {
    let HotFunction {
        place,
        share,
        gain,
        native,
        function,
        operators,
        imports,
        of_line,
        of_running,
        is_beside_models,
        confidence,
        mut evidence,
        calls,
    } = hot;
    let operators = operators.filter(|_| native);
    evidence.extend(operators.iter().flat_map(|operators| operators.evidence(case)));
    if let Some(function) = &function {
        let part = phrase::percent(function.share);
        evidence.push(Evidence::new(format!("native function: {} ({part} of these samples)", function.said())));
    }
    let element_reads = if imports { None } else { element_reads::of(case, &place, case.threshold(MIN_READS)) };
    // What reads a tensor element by element has a fix, though each read is an operator.
    // Of what reads tensors element by element, `per-element-loop` says the gain.
    let is_the_work = of_running >= case.threshold(MAX_SHARE) && (!is_beside_models || element_reads.is_some());
    let saves = (!native || element_reads.is_some()) && !is_the_work;
    if !saves {
        let why = match native {
            true => "native code: the recording does not show how much of it could be saved",
            false if case.steps.source == StepSource::Whole => {
                "nearly everything the program runs: the recording does not show how much of it could be saved"
            }
            false => "nearly everything the step runs: the recording does not show how much of it could be saved",
        };
        evidence.push(Evidence::new(why));
    }
    if saves {
        evidence.extend(proof::unseen(share, &gain));
    }
    if let Some(reads) = &element_reads {
        evidence.push(Evidence::new(format!("{} in it", reads.text())).number("reads", reads.count as f64));
    }
    let part = if saves { proof::blamed(share, &gain) } else { share.mid };
    let share_said = format!("{} of {}", phrase::percent(part), case.the_step());
    Finding {
        code: CODE,
        title: phrase::takes(&place, &share_said, part, part * of_line),
        actions: match imports {
            true => Action::all(advice::of_import(&place)),
            false => match (&element_reads, operators.map(|operators| operators.actions(case))) {
                (Some(reads), _) => Action::all(advice::of_elements(case, &place, reads)),
                (None, Some(actions)) if !actions.is_empty() => Action::all(actions),
                _ => Action::all(advice::actions(case, &place, native, function.as_ref(), calls)),
            },
        },
        place,
        gain: saves.then_some(gain),
        severity: Severity::of(share),
        certainty: Certainty::seen(confidence),
        evidence,
        verify: proof::verify(case, if saves { gain.mid / 100.0 } else { 0.0 }),
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod work_tests;
