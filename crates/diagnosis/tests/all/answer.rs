//! What the answer promises: times that are of the same kind as its gains, and no more than the blamed share without a word.

use analysis::SlowSteps;
use diagnosis::{Diagnosis, Options};
use std::path::Path;
use timeline::Timeline;

fn of(timeline: &Timeline) -> Diagnosis {
    diagnosis::diagnose(timeline, &Options::default())
}

fn recorded(name: &str) -> Diagnosis {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name);
    of(&timeline::open(&folder).unwrap())
}

/// A gain is of all steps together: taken from the median of unequal steps, it would promise less than the fastest takes.
#[test]
fn what_remains_is_said_of_the_mean() {
    let found = recorded("copies");
    assert!(found.answer[1].contains("; mean step 871 µs → 393 µs ("), "{:?}", found.answer);
    let again = "Record again: the mean of \"batch\" should fall from 871 µs to about 393 µs.";
    let switched = "Or try it without editing code: inferscope verify --fix pageable-async-copy -- COMMAND.";
    assert_eq!(found.findings[0].verify, format!("{again} {switched}"));
    assert!(393_000 > found.steps.min());
}

/// A third of these samples were lost: what is blamed is what the gain is made of.
#[test]
fn the_blamed_share_is_no_less_than_the_gain() {
    for (name, code) in [("suite/recompile", "compile-in-request"), ("suite/logging_each_step", "logging-in-step")] {
        let found = recorded(name);
        let first = &found.findings[0];
        let share: f64 = first.title.split(" % of").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
        assert_eq!(first.code, code);
        assert!(first.gain.is_some_and(|gain| share >= gain.mid.floor()), "{} {:?}", first.title, first.gain);
        assert!(first.evidence.iter().any(|one| one.text.contains("by samples alone")), "{:?}", first.evidence);
        assert!(found.answer[2].starts_with("First: "), "{:?}", found.answer);
    }
}

/// The line that compiles is the hot one, too: that is said once.
#[test]
fn a_hot_line_does_not_repeat_the_first_finding() {
    let found = recorded("suite/recompile");
    let at = |finding: &diagnosis::Finding| (finding.place.function.clone(), finding.place.file.clone());
    assert_eq!(found.findings[0].code, "compile-in-request");
    let again = found.findings.iter().find(|one| one.code == "hot-line" && at(one) == at(&found.findings[0]));
    assert_eq!(again, None);
}

/// Layers of a block are no sisters of each other, and steps that launch the same are not said to differ.
#[test]
fn the_small_model_has_no_odd_layer_and_as_many_kernels_in_slow_steps() {
    for name in ["decode", "graphs"] {
        let found = recorded(name);
        assert!(found.findings.iter().all(|finding| finding.code != "layer-outlier"), "{:?}", found.findings);
        let same = |slow: &SlowSteps| slow.counts.iter().all(|one| one.slow != one.usual);
        assert!(found.slow_steps.as_ref().is_none_or(same), "{:?}", found.slow_steps);
    }
}

/// A middle that the recording alone does not show is no promise without a word.
#[test]
fn a_prior_and_bounds_are_said_to_be_such() {
    for (name, said) in [("unaligned", "from measurements elsewhere"), ("fp32_matmul", "bounds only")] {
        let found = recorded(&format!("suite/{name}"));
        assert!(found.answer[1].ends_with(&format!(", {said}).")), "{:?}", found.answer);
    }
    let found = recorded("suite/gc_in_loop");
    assert!(found.answer[1].ends_with(").") && !found.answer[1].contains("bounds"), "{:?}", found.answer);
}

/// The GPU is at work in 60 % of a replay and idle in a third of it, for a launch: that is no pace of the GPU's.
#[test]
fn a_device_that_idles_for_long_does_not_set_the_pace() {
    let found = recorded("graphs");
    let said = &found.answer[1];
    assert!(
        said.starts_with("No single cause found: GPU busy 60 % of it; top idle cause (34 %): launch overhead"),
        "{said}"
    );
    assert!(said.contains("cudaGraphLaunch") && !said.contains("bottleneck"), "{said}");
    assert!(said.contains("its hottest kernel is gemmSN_TN_kernel (27 % of kernel time)"), "{said}");
    let told = found.findings.iter().flat_map(|finding| &finding.actions);
    assert!(told.clone().all(|action| !action.contains("is the bottleneck")), "{:?}", told.collect::<Vec<_>>());
}

/// The call brings pageable memory to where the device can reach it: no context is made.
#[test]
fn a_copy_call_that_takes_long_is_not_a_first_call() {
    let found = recorded("copies");
    let hot = found.findings.iter().find(|finding| finding.code == "hot-line").unwrap();
    assert_eq!(hot.place.function.as_deref(), Some("cudaMemcpyAsync"));
    assert!(hot.actions[0].contains("pageable memory"), "{:?}", hot.actions);
}

/// A script that has no steps begins with its imports.
#[test]
fn imports_are_said_to_be_start_up_and_are_not_blamed() {
    let import = "_find_and_load@/usr/lib/python3.12/importlib/_bootstrap.py:1360>get_data@/usr/lib/python3.12/importlib/_bootstrap_external.py:9";
    let script = |imports: u32| {
        let text = format!(
            "track main\n samples 0..{imports}ms every 10ms active gil <module>:1>{import}\n \
             samples {imports}ms..900ms every 10ms active gil <module>:12>normalise:8\n samples 900ms..1s every 10ms active gil <module>:13>show:2"
        );
        of(&Timeline::from_text(&text).unwrap())
    };
    let some = script(350);
    assert!(some.answer[0].starts_with("The recording lasts 990 ms, 350 ms of it imports; "), "{:?}", some.answer);
    assert!(
        some.answer[1].starts_with("normalise takes 86 % of the recording after start-up (app.py:8)"),
        "{:?}",
        some.answer
    );
    let words =
        some.findings.iter().flat_map(|finding| finding.actions.iter().map(|one| one.text()).chain([&*finding.title]));
    assert!(
        words.clone().all(|said| !said.contains("Line 1 ") && !said.contains("app.py:1)")),
        "{:?}",
        words.collect::<Vec<_>>()
    );
}
