//! The whole diagnosis on small timelines: which steps, where their time goes to the last nanosecond, and what is said.

use analysis::{PartKind, StepSource};
use diagnosis::{BottleneckKind, Diagnosis, HealthState, Options, diagnose};
use timeline::Timeline;

fn of(text: &str) -> Diagnosis {
    diagnose(&Timeline::from_text(text).unwrap(), &Options::default())
}

/// Parts add up exactly, in all steps and in the mean step.
fn check_sums(diagnosis: &Diagnosis) {
    let breakdown = &diagnosis.breakdown;
    assert_eq!(breakdown.parts.iter().map(|part| part.total_ns).sum::<u64>(), breakdown.total_ns);
    assert_eq!(breakdown.parts.iter().map(|part| part.ns).sum::<u64>(), breakdown.step_ns);
    let shares: f64 = breakdown.parts.iter().map(|part| part.share).sum();
    assert!(breakdown.parts.is_empty() || (shares - 1.0).abs() < 1e-9, "{shares}");
}

const SERVICE: &str = include_str!("../service.timeline");

#[test]
fn the_answer_names_the_line_and_the_number() {
    let diagnosis = of(SERVICE);
    let [time, what, first] = &diagnosis.answer;
    assert_eq!(
        time,
        "A request takes 40.0 ms (p50 of 160; p99 40.0 ms); 50 % of it runs Python, 25 % waits and 25 % runs native code."
    );
    // What the range is, measured fixes say.
    let range = "compile_pattern takes 50 % of the step (service.py); step 40.0 ms → 20.0 ms (−50 %, range ";
    assert!(what.starts_with(range), "{what}");
    assert_eq!(
        diagnosis.findings[0].gain.unwrap().derived.map(|derived| derived.map(f64::round)),
        Some([46.0, 50.0, 54.0])
    );
    assert!(first.starts_with("First: Vectorise compile_pattern"), "{first}");
    assert_eq!(diagnosis.bottleneck.kind, BottleneckKind::Cpu);
    assert!(diagnosis.bottleneck.confidence > 0.9);
    let codes: Vec<&str> = diagnosis.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(codes, ["hot-line", "waits-in-step", "hot-line"]);
    let gains: Vec<Option<i64>> =
        diagnosis.findings.iter().map(|finding| finding.gain.map(|gain| gain.mid.round() as i64)).collect();
    // The native code of `forward` is the model: nothing says that it could be saved.
    assert_eq!(gains, [Some(50), Some(25), None]);
}

#[test]
fn a_machine_without_a_gpu_is_never_told_that_its_gpu_is_idle() {
    let diagnosis = of(&format!("{SERVICE}\n collector gpu off\n collector launches off\n collector layers off"));
    assert!(diagnosis.gpu.is_none());
    let said = format!("{:?}", diagnosis).to_lowercase().replace("gpu: none", "");
    assert!(!said.contains("gpu"), "{said}");
}

#[test]
fn phases_come_in_order_with_their_mean() {
    let phases = of(SERVICE).breakdown.phases;
    let said: Vec<_> = phases.iter().map(|phase| (&*phase.name, phase.depth, phase.offset_ns, phase.ns)).collect();
    let encode = ("encode", 2, 5_000_000, 10_000_000);
    assert_eq!(said, [("tokenise", 1, 0, 20_000_000), encode, ("compute", 1, 20_000_000, 18_000_000)]);
}

#[test]
fn every_nanosecond_has_one_part() {
    let diagnosis = of("
        track main
        repeat 7 every 100ms
          step r 0..33.333333ms
          gc 2 3ms..4.000001ms
          sample 1ms active gil f:1
          sample 2ms active f:1
          sample 3.5ms active gil f:1
          sample 6ms f:2
        end
        samples 700ms..2s every 2ms f:2
        counter runqueue_wait_ns 0..700ms every 100ms grows 1ms");
    check_sums(&diagnosis);
    let kinds: Vec<PartKind> = diagnosis.breakdown.kinds().iter().map(|kind| kind.0).collect();
    use PartKind::*;
    assert_eq!(kinds, [Python, Native, Waiting, Gc, Descheduled, Unknown]);
    let gc = diagnosis.breakdown.parts.iter().find(|part| part.kind == Gc).unwrap();
    assert_eq!(gc.total_ns, 7 * 1_000_001);
}

#[test]
fn a_hole_between_samples_is_unseen_and_pauses_in_it_are_not() {
    let diagnosis = of("
        track main
        step r 0..1s
        samples 0..400ms every 10ms active gil f:1
        samples 600ms..1s every 10ms active gil f:1
        gc 2 450ms..500ms");
    check_sums(&diagnosis);
    let of =
        |kind| diagnosis.breakdown.parts.iter().filter(|part| part.kind == kind).map(|part| part.total_ns).sum::<u64>();
    // From half a period after the last sample to half a period before the next, less the pause.
    assert_eq!((of(PartKind::Unknown), of(PartKind::Gc)), (150_000_000, 50_000_000));
}

#[test]
fn processes_are_looked_at_each_by_its_own_gil() {
    let process = |name: &str| {
        format!(
            "process {name} python 3.12\n track main
        repeat 30 every 50ms\n step r 0..40ms\n samples 1ms..40ms every 10ms active gil serve>work@{name}:7\n end\n"
        )
    };
    let diagnosis = of(&format!("{}{}", process("a.py"), process("b.py")));
    check_sums(&diagnosis);
    assert_eq!((diagnosis.steps.count(), diagnosis.breakdown.samples), (60, 240));
    assert_eq!(diagnosis.breakdown.share(PartKind::Python), 1.0);
    assert!(diagnosis.findings.iter().all(|finding| finding.code == "hot-line"), "{:?}", diagnosis.findings);
}

#[test]
fn recorded_calls_split_the_step_where_there_are_no_samples() {
    let diagnosis = of("
        track main
        call main@a.py:1 0..1s
        repeat 5 every 100ms
          step r 10ms..60ms
          call work@a.py:9 20ms..50ms
          ccall time.sleep 30ms..40ms
          gc 0 45ms..46ms
        end");
    check_sums(&diagnosis);
    let said: Vec<_> = diagnosis.breakdown.parts.iter().map(|part| (&*part.label, part.kind, part.ns)).collect();
    use PartKind::*;
    assert_eq!(
        said,
        [
            ("main", Python, 20_000_000),
            ("work", Python, 19_000_000),
            ("time.sleep", Waiting, 10_000_000),
            ("garbage collection", Gc, 1_000_000)
        ]
    );
}

#[test]
fn what_nothing_saw_is_said_to_be_unseen() {
    let diagnosis = of("track main\n step r 0..40ms");
    check_sums(&diagnosis);
    assert_eq!(diagnosis.breakdown.parts[0].kind, PartKind::Unknown);
    assert_eq!(diagnosis.answer[0], "The one r takes 40.0 ms; no breakdown available: stacks not sampled.");
    assert_eq!(diagnosis.bottleneck.kind, BottleneckKind::Unknown);
    assert!(diagnosis.abstentions.iter().any(|one| one.code == "hot-line" && one.reason == "stacks not sampled"));
}

#[test]
fn steps_come_from_steps_then_scopes_then_the_whole() {
    let steps = |text: &str| of(text).steps;
    let two = steps("track main\n step epoch 0..9s\n repeat 4 every 1s\n step batch 0..900ms\n end");
    assert_eq!((&*two.name, two.source, two.count()), ("batch", StepSource::Step, 4));
    let scopes = steps(
        "track main\n scope main 0..9s\n repeat 4 every 1s\n scope request 0..900ms\n scope inner 0..800ms\n end",
    );
    assert_eq!((&*scopes.name, scopes.source), ("request", StepSource::Scope));
    let whole = steps("track main\n scope main 0..9s\n scope once 1s..2s");
    assert_eq!((whole.source, whole.count(), whole.p50()), (StepSource::Whole, 1, 9_000_000_000));
}

#[test]
fn a_step_asked_for_by_name_is_taken_and_a_missing_one_is_said() {
    let timeline =
        Timeline::from_text("track main\n repeat 4 every 1s\n step a 0..900ms\n scope b 0..1ms\n end").unwrap();
    let named = |step: &str| diagnose(&timeline, &Options { step: Some(step.into()), ..Options::default() });
    assert_eq!(named("b").steps.source, StepSource::Scope);
    let missing = named("c");
    assert_eq!(missing.steps.name, "a");
    assert!(diagnosis::wording::steps::why(&missing.steps).contains("no step or scope named \"c\""));
    assert!(missing.findings.iter().any(|finding| finding.code == "no-steps-found"));
}

#[test]
fn recursion_is_one_step_and_tasks_that_interleave_are_many() {
    let nested = of("track main\n step r 0..9s id 1\n scope s 1s..8s id 2 parent 1\n step r 2s..3s id 3 parent 2");
    assert_eq!(nested.steps.count(), 1);
    let tasks = of(
        "track main\n step r 0..9s id 1\n step r 1s..2s id 2\n step r 3s..10s id 3\n samples 0..10s every 10ms active gil f:1",
    );
    assert_eq!((tasks.steps.count(), tasks.breakdown.overlapping), (3, true));
    check_sums(&tasks);
    assert_eq!(tasks.breakdown.total_ns, 10_000_000_000);
}

#[test]
fn health_says_what_is_missing_and_why() {
    let diagnosis = of("
        state recovered
        collector stacks failed not permitted: ptrace_scope is 2
        loss scopes 100 overwritten
        note no NUMA readings: not permitted
        track main
        repeat 10 every 1s
          step r 0..900ms
        end");
    let said: Vec<(HealthState, &str, &str)> =
        diagnosis.health.iter().map(|line| (line.state, line.label(), &*line.text)).collect();
    let line = |label: &str| said.iter().find(|line| line.1 == label).unwrap();
    assert!(line("recording").2.contains("killed") && line("recording").0 == HealthState::Warn);
    assert_eq!(
        (line("losses").0, line("losses").2),
        (HealthState::Bad, "100 records overwritten before they could be written to disk (scopes)")
    );
    assert_eq!(line("samples").2, "stacks not sampled: not permitted: ptrace_scope is 2");
    assert_eq!(line("not recorded").2, "stacks: not permitted: ptrace_scope is 2");
    assert_eq!(line("note").2, "no NUMA readings: not permitted");
    let overhead = ("overhead", "not measured");
    assert!(said.iter().any(|line| (line.1, line.2) == overhead), "without samples nothing is said of them: {said:?}");
    let lossy = of(&format!("{SERVICE}\n loss scopes 100000 overwritten"));
    let care = " Caution: losses: 100,000 records overwritten before they could be written to disk (scopes).";
    assert!(lossy.answer[2].starts_with("First: ") && lossy.answer[2].ends_with(care), "{:?}", lossy.answer);
}

#[test]
fn what_was_not_asked_for_is_neither_good_nor_a_warning() {
    let diagnosis = of("
        collector stacks off
        collector calls off
        track main
        repeat 10 every 1s
          step r 0..900ms
        end");
    for label in ["clock", "samples", "pace", "overhead", "not recorded"] {
        let line = diagnosis.health.iter().find(|line| line.label() == label).unwrap();
        assert_eq!(line.state, HealthState::Info, "{line:?}");
    }
    let fine = |label: &str| diagnosis.health.iter().find(|line| line.label() == label).unwrap().state;
    assert_eq!((fine("losses"), fine("steps")), (HealthState::Ok, HealthState::Ok));
    assert!(HealthState::Ok < HealthState::Info && HealthState::Info < HealthState::Warn);
}

#[test]
fn a_step_that_is_one_function_is_told_so_without_a_promise() {
    let diagnosis = of(
        "track main\n repeat 30 every 50ms\n step r 0..40ms\n samples 1ms..40ms every 10ms active gil main>work@a.py:7\n end",
    );
    assert_eq!(diagnosis.answer[1], "work takes 100 % of the step (a.py:7).");
    assert_eq!(diagnosis.findings[0].gain, None);
}

/// What could be saved of the function that has most of the step is not known: what is known to be saved beside it is little, and comes second.
#[test]
fn the_list_begins_with_what_the_answer_names() {
    let diagnosis = of("track main
        repeat 40 every 60ms
          step r 0..55ms
          samples 1ms..50ms every 1ms active gil main>work@a.py:7
          samples 50ms..55ms every 500us active gil main>rest@a.py:9
        end");
    let said: Vec<_> =
        diagnosis.findings.iter().map(|one| (one.place.function.as_deref(), one.gain.is_some())).collect();
    assert_eq!(said[..2], [(Some("work"), false), (Some("rest"), true)]);
    assert!(
        diagnosis.answer[1].starts_with("work takes 82 % of the step (a.py:7). Next: rest takes"),
        "{:?}",
        diagnosis.answer
    );
}

#[test]
fn the_answer_names_both_places_of_a_function_that_waits_in_two() {
    let diagnosis = of("track main
        repeat 40 every 100ms
          step request 0..100ms
          samples 0..50ms every 10ms serve>handle:14
          samples 50ms..80ms every 10ms serve>handle:21
          samples 80ms..100ms every 10ms active gil serve>work:5
        end");
    let what = &diagnosis.answer[1];
    assert!(what.starts_with("Blocked for 50 % of the step in handle (app.py:14); step 100 ms → 50.0 ms"), "{what}");
    assert!(what.ends_with(" Next: Blocked for 30 % of the step in handle (app.py:21)."), "{what}");
}

/// Two lines of one function wait for the device: the title has the time of both, and does not put it on one of them.
#[test]
fn a_wait_for_the_device_at_two_lines_says_which_has_most() {
    let wait = |from: u32, line: u32| {
        format!(
            "api cudaLaunchKernel {from}ms..{from}500us\n stream 7\n kernel gemm {from}500us..{}ms\n \
             api cudaStreamSynchronize {from}600us..{}ms\n samples {}ms..{}ms every 1ms active gil main>generate:{line}\n",
            from + 10,
            from + 10,
            from + 1,
            from + 9
        )
    };
    let of_lines = |lines: [u32; 3]| {
        let waits: String = lines.iter().zip([0, 14, 28]).map(|(line, from)| wait(from, *line)).collect();
        let diagnosis = of(&format!("track main\n repeat 40 every 50ms\n step request 0..40ms\n {waits} end"));
        let found = diagnosis.findings.iter().find(|finding| finding.code == "waits-in-step").unwrap();
        found.title.clone()
    };
    assert!(of_lines([12, 12, 12]).ends_with(" (app.py:12)"), "{}", of_lines([12, 12, 12]));
    assert!(of_lines([12, 19, 12]).ends_with(" (mostly app.py:12)"), "{}", of_lines([12, 19, 12]));
}
