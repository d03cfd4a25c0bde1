//! `hot-line`: one function of the program takes much of every step, and this line of it most.

mod advice;
mod calls;

use crate::blame::{self, Blamed};
use crate::breakdown::{Part, PartKind};
use crate::finding::{Evidence, Finding, Gain, Place, Severity};
use crate::frames::is;
use crate::phrase;
use crate::proof;
use crate::rule::{Case, Rule, RuleDocs, Verdict};
use crate::seen::{Doing, Seen};
use crate::share::{Share, again};
use crate::steps::StepSource;
use calls::Calls;

pub struct HotLine;

/// A tenth of the step is worth a look, and a twentieth at the least favourable end of the interval.
const LEVEL: f64 = 0.10;
/// A function with so much of all that runs is not a hot spot of the step but the step.
const THE_STEP: f64 = 0.8;
/// More of them would not be hot.
const MOST: usize = 3;

impl Rule for HotLine {
    fn code(&self) -> &'static str {
        "hot-line"
    }

    fn docs(&self) -> RuleDocs {
        RuleDocs {
            summary: "One function takes a tenth of the step or more.",
            why: "Time is given to the deepest function of your own code that a sample shows, so that work inside a library \
                  counts for the line that asked for it, and a lambda or comprehension for the function around it. The gain \
                  is what the step would save without that function, waits for a core in it included: the most that any \
                  change to it can bring. It has no gain where nothing says that it could be saved: native code that computes \
                  without the GIL (the model, usually), and a function that is nearly all that the step runs.",
            needs: "Stack samples inside the steps (at least 20), or recorded calls (`--calls`).",
            example: "31 % of the step is in build_vocabulary (service.py:57)",
        }
    }

    fn look(&self, case: &Case) -> Verdict {
        match case.without_samples() {
            None => sampled(case),
            Some(_) if case.breakdown.by_calls => by_calls(case),
            Some(reason) => Verdict::Abstain(reason),
        }
    }
}

/// What `logging-in-step` looks at is left to it.
fn runs(case: &Case, one: &Seen) -> bool {
    matches!(one.doing, Doing::Python | Doing::Native) && !case.frames.on_path(case.sample(one).stack, is::LOGGING)
}

/// A function that takes much of the steps, however that is known.
struct Hot {
    place: Place,
    share: Share,
    gain: Gain,
    /// Most of it is native code that runs without the GIL.
    native: bool,
    /// Of all that runs in the steps, 0 to 1.
    of_running: f64,
    confidence: f64,
    evidence: Vec<Evidence>,
    calls: Calls,
}

fn sampled(case: &Case) -> Verdict {
    let runs = |one: &Seen| runs(case, one);
    let running = case.seen.all.iter().filter(|one| runs(one)).count() as f64;
    let functions = blame::functions(case, runs).into_iter().take(MOST);
    let found = functions.filter_map(|function| {
        let name = |one: &Seen| case.timeline.stacks.frame(case.blame().frame(case, one)).name;
        let fits = |one: &Seen| runs(one) && name(one) == function.name;
        let (share, _) = case.share(fits);
        let native = case.seen.all.iter().filter(|one| fits(one) && one.doing == Doing::Native).count() as u64;
        (share.mid >= LEVEL && share.low >= LEVEL / 2.0).then(|| Hot {
            place: function.lines.first().map_or_else(Place::default, |(frame, _)| case.place(*frame)),
            share,
            gain: case.gain_of_samples(fits, share),
            native: native * 2 > function.count,
            of_running: function.count as f64 / running.max(1.0),
            confidence: share.surely_above(LEVEL / 2.0) * case.coverage(),
            evidence: evidence(case, &function, fits),
            calls: Calls::default(),
        })
    });
    verdict(case, found.collect())
}

fn evidence(case: &Case, function: &Blamed, fits: impl Fn(&Seen) -> bool) -> Vec<Evidence> {
    let (count, of) = (phrase::count(function.count), phrase::count(case.breakdown.samples));
    let samples = Evidence::said(format!("{count} of {of} samples inside {}", case.the_steps()));
    let mut evidence = vec![samples.number("samples", function.count as f64)];
    evidence.extend(function.lines.iter().take(3).map(|(frame, count)| {
        let at = phrase::place(&case.place(*frame));
        Evidence::said(format!("{at}: {} samples", phrase::count(*count))).number("samples", *count as f64)
    }));
    let (with, all) = proof::windows_with(case, &fits);
    if all > 1 && case.steps.source != StepSource::Whole {
        let text = format!("seen in {with} of the {all} steps that were sampled");
        evidence.push(Evidence::said(text).number("steps", with as f64));
    }
    evidence.extend(proof::best_step(case, "it is on the stack", &fits));
    evidence
}

/// Too few samples: recorded calls, each by the time that no call inside it takes.
fn by_calls(case: &Case) -> Verdict {
    let running = case.breakdown.share(PartKind::Python) + case.breakdown.share(PartKind::Native);
    let runs = |part: &Part| matches!(part.kind, PartKind::Python | PartKind::Native) && part.share >= LEVEL;
    let found: Vec<Part> = case.breakdown.functions().into_iter().filter(runs).take(MOST).collect();
    if found.is_empty() {
        return Verdict::Silent;
    }
    let stretches = calls::stretches(case);
    let hot = |part: Part| {
        let calls = calls::of(case, &part, &stretches);
        let each = phrase::duration(calls.each_ns);
        let own = format!("{} of its own in {}, by recorded calls", phrase::duration(part.total_ns), case.the_steps());
        let evidence = match calls.count {
            0 => Evidence::said(own),
            1 => Evidence::said(format!("{own}: one call")),
            count => Evidence::said(format!("{own}: {}, {each} each", phrase::counted(count, "call"))),
        };
        let evidence = evidence.number("ns", part.total_ns as f64);
        Hot {
            share: Share::exactly(part.share),
            gain: case.gain_of_host(Share::exactly(part.share)),
            native: part.kind == PartKind::Native,
            of_running: part.share / running.max(part.share),
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

fn verdict(case: &Case, found: Vec<Hot>) -> Verdict {
    let found: Vec<Finding> = found.into_iter().map(|hot| finding(case, hot)).collect();
    if found.is_empty() { Verdict::Silent } else { Verdict::Found(found) }
}

fn finding(case: &Case, hot: Hot) -> Finding {
    let Hot { place, share, gain, native, of_running, confidence, mut evidence, calls } = hot;
    let saves = !native && of_running < THE_STEP;
    if !saves {
        let why = match native {
            true => "it is native code: what of it could be saved is not in the recording",
            false => "it is nearly all that the step runs: what of it could be saved is not in the recording",
        };
        evidence.push(Evidence::said(why));
    }
    if saves {
        evidence.extend(proof::unseen(share, &gain));
    }
    let part = if saves { proof::blamed(share, &gain) } else { share.mid };
    Finding {
        code: HotLine.code(),
        title: format!("{} of {} is in {}", phrase::percent(part), case.the_step(), phrase::place(&place)),
        actions: advice::actions(case, &place, native, calls),
        place,
        gain: saves.then_some(gain),
        severity: Severity::of(share),
        confidence,
        evidence,
        verify: proof::verify(case, if saves { gain.mid / 100.0 } else { 0.0 }),
    }
}

#[cfg(test)]
mod tests {
    use super::advice::could_be_kept;
    use super::*;
    use crate::testing::{abstains, found, silent};

    /// The pieces of one function (a lambda here) are one, and library code counts for the line that called it.
    #[test]
    fn names_the_function_of_the_program_and_its_hottest_line() {
        let found = found(
            &HotLine,
            "
            track main
            repeat 40 every 50ms
              step request 0..40ms
              sample 2ms active gil serve>encode:20>build:57><lambda>:57
              sample 12ms active gil serve>encode:20>build:58
              sample 22ms active gil serve>forward:80>matmul@/usr/lib/python3.12/site-packages/np.py:9
              sample 32ms active gil serve>decode:90
            end",
        );
        assert_eq!(found[0].title, "50 % of the step is in build (app.py:57)");
        assert_eq!(
            found.iter().map(|f| f.place.function.clone().unwrap()).collect::<Vec<_>>(),
            ["build", "forward", "decode"]
        );
        let kept = |finding: &Finding| finding.actions.iter().any(|action| action.contains("functools"));
        assert_eq!(found.iter().map(kept).collect::<Vec<_>>(), [true, false, true]);
        let gain = found[0].gain.unwrap();
        assert!(gain.low > 40.0 && gain.high < 60.0 && found[0].confidence > 0.99);
        assert!(found[0].evidence.iter().any(|one| one.track.is_some() && one.start.is_some()));
    }

    #[test]
    fn recorded_calls_serve_where_there_are_no_samples() {
        let found = found(
            &HotLine,
            "
            track main
            repeat 10 every 50ms
              step request 0..40ms
              call serve@svc.py:3 0..40ms
              call build@svc.py:44 0..30ms
              call sort@svc.py:60 0..10ms
            end",
        );
        assert_eq!(found[0].title, "50 % of the step is in build (svc.py:44)");
        assert_eq!(found.len(), 3);
        // Ten steps show it.
        assert!((found[0].confidence - 11.0 / 12.0).abs() < 1e-9, "{}", found[0].confidence);
    }

    /// An operator that is called often is cheap to launch fewer times; one call that takes milliseconds does something else.
    #[test]
    fn what_an_operator_costs_the_host_is_the_number_of_its_calls() {
        let step = |calls: &str| {
            format!(
                "track main\n step r 0..10ms\n {calls}\n api cudaLaunchKernel 9ms..9.01ms\n stream 7\n kernel k 9.1ms..9.2ms"
            )
        };
        let many: String =
            (0..40).map(|at| format!("ccall aten::addmm {}us..{}us\n", at * 100, at * 100 + 50)).collect();
        let often = found(&HotLine, &step(&many));
        assert!(often[0].evidence[0].text.ends_with("40 calls, 50.0 µs each"), "{:?}", often[0].evidence);
        assert!(often[0].actions[0].contains("launch fewer"));
        let takes = found(&HotLine, &step("ccall aten::empty 0..6ms\n api cudaMalloc 1us..5999us"));
        assert!(takes[0].title.ends_with("cudaMalloc") && takes[0].actions[0].contains("takes memory"), "{takes:?}");
        let once = found(&HotLine, &step("ccall aten::empty 0..6ms"));
        assert!(once[0].actions[0].contains("longer than any launch"), "{:?}", once[0].actions);
    }

    /// The calls of the thread that the step waits for are counted as their time is.
    #[test]
    fn calls_of_the_thread_that_the_step_waits_for_are_counted() {
        let text =
            "track main\n step r 0..20ms\n ccall aten::linear 0..2ms\n ccall aten::item 18ms..20ms\n track autograd\n";
        let calls: String =
            (0..50).map(|at| format!("ccall MmBackward0 {}us..{}us\n", 3000 + at * 300, 3290 + at * 300)).collect();
        let found = found(&HotLine, &format!("{text}{calls}"));
        assert!(found[0].title.ends_with("MmBackward0"), "{}", found[0].title);
        assert!(found[0].evidence[0].text.ends_with("50 calls, 290 µs each"), "{:?}", found[0].evidence);
    }

    /// Long in every step and without a launch is work, not a first call.
    #[test]
    fn an_operator_that_computes_on_the_host_is_told_from_a_first_call() {
        let first = |calls: &str| {
            let step = format!(
                "track main\n repeat 10 every 20ms\n step r 0..20ms\n {calls}\n ccall aten::linear 16ms..16.1ms\n \
                 api cudaLaunchKernel 16ms..16.01ms\n stream 7\n kernel k 17ms..18ms\n end"
            );
            found(&HotLine, &step)[0].actions[0].clone()
        };
        let sorts = "ccall aten::sort 0..5ms\n ccall aten::sort 5ms..10ms";
        assert!(first(sorts).contains("computes on the host"), "{}", first(sorts));
        let launches = "ccall aten::sort 0..10ms\n api cudaLaunchKernel 9ms..9.01ms\n kernel s 9.1ms..9.2ms";
        assert!(first(launches).contains("in most steps"), "{}", first(launches));
        // In one of six steps: what that one did.
        let mut rare = String::from("track main\n stream 7\n");
        for (step, us) in [20, 20, 20, 18_000, 20, 20].into_iter().enumerate() {
            let at = step * 20_000;
            rare += &format!("step r {at}us..{}us\n ccall aten::sort {at}us..{}us\n", at + 20_000, at + us);
            rare += &format!(
                "api cudaLaunchKernel {}us..{}us\n kernel k {}us..{}us\n",
                at + 18_500,
                at + 18_510,
                at + 18_600,
                at + 18_700
            );
        }
        let rare = found(&HotLine, &rare);
        assert!(rare[0].actions[0].contains("takes memory, loads code"), "{:?}", rare[0]);
    }

    /// Every layer has a `forward`: those of one file are not one function.
    #[test]
    fn recorded_calls_of_one_name_are_told_apart_by_where_they_are_defined() {
        let found = found(
            &HotLine,
            "
            track main
            repeat 10 every 50ms
              step request 0..40ms
              call forward@model.py:3 0..40ms
              call forward@model.py:44 0..15ms
              call forward@model.py:60 15ms..30ms
            end",
        );
        assert_eq!(found[0].title, "38 % of the step is in forward (model.py:44)");
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn silent_when_nothing_stands_out_and_when_the_step_only_waits() {
        silent(
            &HotLine,
            "
            track main
            repeat 30 every 20ms
              step request 0..20ms
              sample 2ms active gil serve>a:1
              sample 4ms active gil serve>b:1
              sample 6ms active gil serve>c:1
              sample 8ms active gil serve>d:1
              sample 10ms active gil serve>e:1
              sample 12ms active gil serve>f:1
              sample 14ms active gil serve>g:1
              sample 16ms active gil serve>h:1
              sample 18ms active gil serve>i:1
              sample 18.5ms active gil serve>j:1
              sample 19ms active gil serve>k:1
            end",
        );
        silent(
            &HotLine,
            "
            track main
            step request 0..1s
            samples 0..1s every 10ms serve>get:5",
        );
    }

    #[test]
    fn only_functions_of_the_program_are_advised_to_be_kept() {
        let place = |function: &str, file: &str| Place {
            function: Some(function.into()),
            file: Some(file.into()).filter(|file: &String| !file.is_empty()),
            ..Place::default()
        };
        assert!(could_be_kept(&place("Vocabulary.build", "/srv/app.py")));
        for (function, file) in [
            ("Block.forward", "/srv/model.py"),
            ("<module>", "/srv/app.py"),
            ("aten::linear", ""),
            ("dumps", "/usr/lib/python3.12/json/__init__.py"),
        ] {
            assert!(!could_be_kept(&place(function, file)), "{function}");
        }
    }

    #[test]
    fn abstains_without_enough_samples() {
        abstains(&HotLine, "track main\n step request 0..1s", "stacks were not sampled");
        abstains(&HotLine, "track main\n step request 0..1s\n sample 5ms active gil f:1", "only 1");
    }
}
