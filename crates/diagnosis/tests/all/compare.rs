//! Two small timelines side by side: what is told of them, what is called noise, what gates and user rules make of it.

use analysis::{Metrics, measure};
use diagnosis::compare::gate::GateState;
use diagnosis::compare::{Comparison, Gate, Group, Side, compare};
use diagnosis::expression::Condition;
use diagnosis::named::noise::Noise;
use diagnosis::named::{METRICS, Named};
use diagnosis::user_rules::{UserRule, UserRules};
use diagnosis::{Diagnosis, Options, Severity, diagnose};
use timeline::Timeline;

fn of(text: &str) -> (Timeline, Metrics, Diagnosis) {
    let timeline = Timeline::from_text(text).unwrap();
    let (metrics, diagnosis) = (measure(&timeline), diagnose(&timeline, &Options::default()));
    (timeline, metrics, diagnosis)
}

fn side((timeline, metrics, diagnosis): &(Timeline, Metrics, Diagnosis)) -> Side<'_> {
    Side { timeline, metrics, diagnosis }
}

fn between(a: &str, b: &str) -> Result<Comparison, String> {
    compare(side(&of(a)), side(&of(b)))
}

/// Twenty steps of 8 ms: two kernels, a value that is read, Python between them.
const DECODE: &str = "
    device 0 NVIDIA_H200
    track main
    repeat 20 every 10ms
      step token 0..8ms
      stream 7
      api cudaLaunchKernel 0..10us
      kernel gemm 10us..3ms
      api cudaMemcpyAsync 20us..30us
      copy d2h 3ms..3.002ms 8 pageable
      api cudaStreamSynchronize 31us..3.02ms
      samples 3.1ms..5ms every 200us active gil main>decode@engine.py:44
      api cudaLaunchKernel 5ms..5.01ms
      kernel norm 5.01ms..5.51ms
    end";

fn value(named: &Named, name: &str) -> f64 {
    named.by_name(name).unwrap().as_ref().unwrap().value
}

#[test]
fn metrics_have_their_names_and_units() {
    let (timeline, metrics, diagnosis) = of(DECODE);
    let named = Named::new(&timeline, &metrics, diagnosis.figures());
    let close = |name: &str, wanted: f64| {
        let got = value(&named, name);
        assert!((got - wanted).abs() < 1e-9, "{name}: {got}, not {wanted}");
    };
    close("steps", 20.0);
    close("total_time", 8.0);
    close("step_p50", 8.0);
    close("kernels", 2.0);
    close("kernels_per_step", 2.0);
    close("kernel_time", 3.49);
    close("gpu_busy", 3.492 / 8.0);
    close("d2h_time", 0.002);
    close("h2d_time", 0.0);
    close("d2h_mib", 8.0 / 1024.0 / 1024.0);
    close("implicit_syncs", 1.0);
    close("syncs", 1.0);
    close("api_calls", 4.0);
    close("sync_time", 2.989);
    close("lost_records", 0.0);
    assert!(named.by_name("gpu_memory_mib").unwrap().as_ref().unwrap_err().contains("not recorded"));
    assert!(named.by_name("no_such_metric").is_none());
}

#[test]
fn without_a_device_nothing_is_zero() {
    let (timeline, metrics, diagnosis) = of("track main\n repeat 5 every 10ms\n step s 0..8ms\n end");
    let named = Named::new(&timeline, &metrics, diagnosis.figures());
    for name in ["gpu_busy", "kernels", "h2d_time", "implicit_syncs", "python_time", "memory_mib"] {
        assert!(named.by_name(name).unwrap().is_err(), "{name} has a value");
    }
    let (timeline, metrics, diagnosis) = of("");
    let named = Named::new(&timeline, &metrics, diagnosis.figures());
    assert!(METRICS.iter().all(|metric| metric.name == "lost_records" || named.by_name(metric.name).unwrap().is_err()));
}

#[test]
fn a_slower_kernel_is_found_and_named() {
    let slower = DECODE.replace("5.01ms..5.51ms", "5.01ms..7.01ms").replace("0..8ms", "0..9.5ms");
    let found = between(DECODE, &slower).unwrap();
    let kernel = found.changes.iter().find(|change| change.group == Group::Kernel).unwrap();
    assert_eq!((kernel.label.as_str(), kernel.delta(), kernel.noise), ("norm", 1_500_000.0, Noise::Real));
    assert_eq!(kernel.count, Some((1.0, 1.0)));
    assert_eq!(found.steps, (20, 20));
    let gate = |text: &str| Gate::parse(text).unwrap().judge(&found);
    assert_eq!(gate("step_p50 > +5%").state, GateState::Failed);
    assert_eq!(gate("step_p50 > +5%").said, "step_p50 went from 8.00 ms to 9.50 ms (+18.8 %)");
    assert_eq!(gate("step_p50 > +20%").state, GateState::Holds);
    assert_eq!(gate("step_p50 > 9").state, GateState::Failed);
    assert_eq!(gate("kernels_per_step > +0").state, GateState::Holds);
    assert_eq!(gate("gpu_busy < 60%").state, GateState::Failed);
    assert_eq!(gate("gpu_memory_mib > +5%").state, GateState::Undecided);
}

#[test]
fn operators_are_compared_by_their_own_time() {
    let steps = |inner: &str| {
        format!(
            "track main\n repeat 10 every 10ms\n step s 0..8ms\n ccall aten::linear 1ms..5ms\n ccall aten::addmm 2ms..{inner}\n \
             ccall aten::add 6ms..7ms\n ccall built_in 7ms..8ms\n end"
        )
    };
    let found = between(&steps("3ms"), &steps("4ms")).unwrap();
    let ops: Vec<_> = found.changes.iter().filter(|change| change.group == Group::Op).collect();
    let of = |name: &str| ops.iter().find(|change| change.label == name).map(|change| (change.a.value, change.b.value));
    assert_eq!(of("aten::addmm"), Some((1e6, 2e6)));
    assert_eq!(of("aten::linear"), Some((3e6, 2e6)), "without what is inside it");
    assert_eq!(of("aten::add"), Some((1e6, 1e6)));
    assert_eq!(ops.len(), 3, "a built-in function of Python is no operator");
    assert_eq!(ops[0].count, Some((1.0, 1.0)));
}

#[test]
fn a_difference_within_the_spread_is_noise() {
    // Steps of 6 to 12 ms in both, one of them 4 % longer in the middle.
    let steps = |extra: u64| {
        let mut text = String::from("track main\n");
        for index in 0..30u64 {
            let long = 6000 + index * 7 % 30 * 200 + extra;
            text += &format!("step s {}us..{}us\n", index * 20_000, index * 20_000 + long);
        }
        text
    };
    let found = between(&steps(0), &steps(300)).unwrap();
    let p50 = found.metrics.iter().find(|change| change.name() == "step_p50").unwrap();
    assert_eq!(p50.noise, Some(Noise::Within), "{p50:?}");
    let result = Gate::parse("step_p50 > +1%").unwrap().judge(&found);
    assert!(result.state == GateState::Holds && result.said.contains("within the noise"), "{}", result.said);
    let found = between(&steps(0), &steps(6000)).unwrap();
    assert_eq!(Gate::parse("step_p50 > +1%").unwrap().judge(&found).state, GateState::Failed);
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let steps = "track main\n repeat 5 every 10ms\n step s 0..8ms\n end";
    assert_eq!(
        between(steps, &steps.replace("step s", "step other")).unwrap_err(),
        "the steps are \"s\" in A and \"other\" in B"
    );
    let whole = "track main\n call f 0..9ms";
    assert!(between(steps, whole).unwrap_err().starts_with("A has steps \"s\", B has none"));
    assert!(between(whole, steps).unwrap_err().starts_with("A has no steps"));
    assert!(between("", steps).unwrap_err().contains("no step that takes time"));
    assert!(between(whole, whole).unwrap().whole);
}

#[test]
fn what_only_one_recorded_is_not_taken_for_a_change() {
    let without: String =
        DECODE.lines().filter(|line| !line.contains("samples")).map(|line| format!("{line}\n")).collect();
    let found = between(DECODE, &without).unwrap();
    assert!(found.notes.iter().any(|note| note.contains("recorded in A only")), "{:?}", found.notes);
    assert!(!found.changes.iter().any(|change| change.group == Group::Function));
}

#[test]
fn differences_around_them_come_first() {
    let other = DECODE.replace("NVIDIA_H200", "NVIDIA_A100");
    let found = between(DECODE, &other).unwrap();
    let shown: Vec<_> = found.environment.iter().map(|one| (&*one.what, &*one.a, &*one.b)).collect();
    assert_eq!(shown, [("GPU", "NVIDIA H200", "NVIDIA A100")]);
    assert!(between(DECODE, DECODE).unwrap().environment.is_empty());
}

fn holds(text: &str) -> Result<bool, String> {
    let (timeline, metrics, diagnosis) = of(DECODE);
    let condition = Condition::parse(text).map_err(|wrong| wrong.why)?;
    condition.holds(&Named::new(&timeline, &metrics, diagnosis.figures())).map_err(|open| open.0)
}

#[test]
fn conditions_bind_as_people_read_them() {
    for text in [
        "steps == 20",
        "1 + 2 * 3 == 7",
        "(1 + 2) * 3 == 9",
        "10 - 4 - 3 == 3",
        "-2 * -3 == 6",
        "d2h_time / total_time < 1%",
        "not steps < 20",
        "steps < 1 or kernels == 2 and step_p50 >= 8",
        "!(steps < 1) && true || false",
        "1e-3 < .5",
        // One side decides, whatever the other would say.
        "steps == 20 or gpu_memory_mib > 1",
        "not (steps == 1 and gpu_memory_mib > 1)",
    ] {
        assert_eq!(holds(text), Ok(true), "{text}");
    }
    assert!(holds("gpu_memory_mib > 1").unwrap_err().starts_with("gpu_memory_mib: GPU memory not recorded"));
    assert_eq!(holds("1 / h2d_time > 1"), Err("it divides by zero".into()));
    assert!(holds("1e300 * 1e300 > 1").unwrap_err().contains("overflows"));
    for text in [
        "steps",
        "1 <",
        "1 < 2 < 3",
        "steps and true",
        "not steps",
        "-true",
        "(steps > 1",
        "steps > 1)",
        "1 2",
        "",
        "5ms > 1",
        "§",
    ] {
        assert!(Condition::parse(text).is_err(), "{text}");
    }
}

fn rule(name: &str, text: &str, confidence_weight: f64) -> UserRule {
    UserRule {
        name: name.into(),
        text: text.into(),
        condition: Condition::parse(text).unwrap(),
        suggestions: vec!["do something".into()],
        severity: Severity::High,
        confidence_weight,
        origin: "r.yaml:3".into(),
    }
}

#[test]
fn user_rules_find_stay_silent_or_abstain() {
    let (timeline, metrics, diagnosis) = of(DECODE);
    let rules = [
        rule("fires", "gpu_busy < 50%", 0.5),
        rule("silent", "gpu_busy > 50%", 1.0),
        rule("cannot_look", "gpu_memory_mib > 1", 1.0),
        rule("sure", "steps > 1", 10.0),
    ];
    let before = diagnosis.findings.len();
    let user = Some(UserRules { rules: &rules, metrics: &metrics });
    let diagnosis = diagnose(&timeline, &Options { user, ..Options::default() });
    let find = |code: &str| diagnosis.findings.iter().find(|finding| finding.code == code);
    let found = find("fires").unwrap();
    assert_eq!(found.title, "fires holds: gpu_busy < 50% (gpu_busy = 43.6 %)");
    assert_eq!((found.actions.as_slice(), found.severity), (["do something".into()].as_slice(), Severity::High));
    assert!((found.confidence() - 0.5 * 21.0 / 22.0).abs() < 1e-9 && find("sure").unwrap().confidence() == 1.0);
    assert!(find("silent").is_none() && find("cannot_look").is_none());
    assert_eq!(diagnosis.findings.len(), before + 2);
    assert!(diagnosis.abstentions.iter().any(|one| one.code == "cannot_look"));
}

/// What the user calls severe is in the answer: as the cause where nothing is known to gain as much, else after it.
#[test]
fn a_severe_user_rule_reaches_the_answer() {
    let said = |text: &str, severity: Severity| {
        let (timeline, metrics, _) = of(text);
        let rules = [UserRule { severity, ..rule("too_slow", "step_p50 > 1", 1.0) }];
        let user = Some(UserRules { rules: &rules, metrics: &metrics });
        diagnose(&timeline, &Options { user, ..Options::default() })
    };
    let quiet = "track main\n repeat 20 every 10ms\n step r 0..10ms\n end";
    let diagnosis = said(quiet, Severity::High);
    assert!(diagnosis.answer[1].starts_with("too_slow holds: step_p50 > 1"), "{:?}", diagnosis.answer);
    assert!(diagnosis.answer[2].starts_with("First: do something"), "{:?}", diagnosis.answer);
    assert!(diagnosis.bottleneck.primary_cause.starts_with("too_slow holds"), "{:?}", diagnosis.bottleneck);
    assert!(!said(quiet, Severity::Medium).answer[1].contains("too_slow"));
    let decode = said(DECODE, Severity::High);
    let first = &decode.findings[0];
    assert!(first.gain.is_some() && decode.answer[1].contains("Next: too_slow holds"), "{:?}", decode.answer);
}

/// Conditions and gates of words in any order: read or refused, never a panic; the words repeat.
#[test]
fn any_words_are_read_or_refused() {
    let words = [
        "steps", "step_p50", "(", ")", "-", "+", "*", "/", "<", ">", "<=", "==", "!=", "and", "or", "not", "!", "&&",
        "%", "1", "0.5", "1e9", "1e999", "30%", "true", "§", "\0", ".", "..", "1e", "_", "é", "gpu_busy",
    ];
    let mut state = 0x1234_5678_9abc_def1u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit
    };
    let (timeline, metrics, diagnosis) = of(DECODE);
    let named = Named::new(&timeline, &metrics, diagnosis.figures());
    let found = between(DECODE, DECODE).unwrap();
    let mut read = 0;
    for _ in 0..20_000 {
        let text: String = (0..1 + below(9)).map(|_| words[below(words.len())].to_owned() + " ").collect();
        if let Ok(condition) = Condition::parse(&text) {
            _ = condition.holds(&named);
            read += 1;
        }
        if let Ok(gate) = Gate::parse(&text) {
            _ = gate.judge(&found);
            read += 1;
        }
    }
    assert!(read > 20, "only {read} made sense");
}

/// Three requests are open at a time on one thread: a step takes three times the time that there is for it.
#[test]
fn parts_of_steps_that_overlap_make_up_the_step() {
    let of = |step: u64| {
        let steps: String =
            (0..60).map(|n| format!(" step r {}ms..{}ms id {}\n", 10 * n, 10 * n + step, n + 1)).collect();
        format!("track main\n{steps} samples 0..{}ms every 1ms active gil f@a.py:1", 590 + step)
    };
    let found = between(&of(30), &of(50)).unwrap();
    let sum = |of: fn(&diagnosis::compare::Change) -> f64| {
        found.changes.iter().filter(|change| change.group == Group::Kind).map(of).sum::<f64>() / 1e6
    };
    let (a, b) = (sum(|change| change.a.value), sum(|change| change.b.value));
    assert!((a - 30.0).abs() < 0.1 && (b - 50.0).abs() < 0.1, "{a} {b}");
    let f = found.changes.iter().find(|change| change.group == Group::Function).unwrap();
    assert!((f.delta() / 1e6 - 20.0).abs() < 1.0, "{f:?}");
    assert!(found.notes.iter().any(|note| note.starts_with("steps overlap on a thread")), "{:?}", found.notes);
}

#[test]
fn memory_is_the_most_at_one_time() {
    let text =
        "process a\n track main\n step s 0..10ms\n counter process gpu_process_memory_bytes 0=1048576 5ms=3145728
        process b\n track main\n counter process gpu_process_memory_bytes 1ms=2097152 4ms=0";
    let (timeline, metrics, diagnosis) = of(text);
    assert_eq!(value(&Named::new(&timeline, &metrics, diagnosis.figures()), "gpu_memory_mib"), 3.0);
}

/// Steps without length, overlapping, on many threads, without an end, as long as a clock can count; work from nowhere.
#[test]
fn odd_recordings_give_numbers_or_reasons() {
    let odd = [
        "",
        "track main\n step s 0..0",
        "track main\n step s 0..1ns\n step s 1ns..2ns",
        "track main\n repeat 9 every 1ms\n step s 0..5ms\n end",
        "track main\n step s 0..18000000s\n step s 1ms..2ms",
        "track main\n step s 0..\n end 1ms",
        "stream 7\n kernel k 0..5ms corr 0\n kernel k 1ms..9ms corr 0",
        "process a\n track main\n step s 0..5ms\n process b\n track main\n step s 1ms..9ms\n stream 7\n kernel k 2ms..20ms corr 0",
        "track main\n step s 0..1ms\n api cudaMemcpyAsync 0..1us\n stream 7\n copy d2h 5ms..5ms 0 pageable",
        DECODE,
    ];
    let all: Vec<_> = odd.iter().filter_map(|text| Timeline::from_text(text).ok()).collect();
    assert!(all.len() > 6, "only {} could be written", all.len());
    let all: Vec<_> = all
        .into_iter()
        .map(|timeline| {
            let (metrics, diagnosis) = (measure(&timeline), diagnose(&timeline, &Options::default()));
            (timeline, metrics, diagnosis)
        })
        .collect();
    for a in &all {
        for b in &all {
            let Ok(found) = compare(side(a), side(b)) else { continue };
            for (x, y) in found.metrics.iter().filter_map(|change| change.values()) {
                assert!(x.is_finite() && y.is_finite() && x >= 0.0 && y >= 0.0, "{found:?}");
            }
            assert!(found.changes.iter().all(|change| change.delta().is_finite()));
            _ = Gate::parse("step_p50 > +5%").unwrap().judge(&found);
        }
    }
}
