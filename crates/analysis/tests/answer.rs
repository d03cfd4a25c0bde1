//! What the answer promises: times that are of the same kind as its gains, and no more than the blamed share without a word.

use analysis::{Diagnosis, Options, SlowSteps};
use std::path::Path;
use timeline::Timeline;

fn of(timeline: &Timeline) -> Diagnosis {
    analysis::diagnose(timeline, &Options::default())
}

fn recorded(name: &str) -> Diagnosis {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name);
    of(&timeline::open(&folder).unwrap())
}

/// A gain is of all steps together: taken from the median of unequal steps, it would promise less than the fastest takes.
#[test]
fn what_remains_is_said_of_the_mean() {
    let found = recorded("copies");
    assert!(
        found.answer[1].contains("; a step takes 871 µs on average, and would take 393 µs without it ("),
        "{:?}",
        found.answer
    );
    assert_eq!(found.findings[0].verify, "Record again: the mean of \"batch\" should fall from 871 µs towards 393 µs.");
    assert!(393_000 > found.steps.min());
}

/// A third of these samples were lost: what is blamed is what the gain is made of.
#[test]
fn the_blamed_share_is_no_less_than_the_gain() {
    for (name, code) in [("suite/recompile", "compile-in-request"), ("suite/logging_each_step", "logging-in-step")] {
        let found = recorded(name);
        let first = &found.findings[0];
        let share: f64 = first.title.split(' ').next().unwrap().parse().unwrap();
        assert_eq!(first.code, code);
        assert!(first.gain.is_some_and(|gain| share >= gain.mid.floor()), "{} {:?}", first.title, first.gain);
        assert!(first.evidence.iter().any(|one| one.text.contains("by samples alone")), "{:?}", first.evidence);
        assert!(found.answer[2].starts_with("First: "), "{:?}", found.answer);
    }
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
    for (name, said) in [("unaligned", "by what was seen elsewhere"), ("fp32_matmul", "within its bounds")] {
        let found = recorded(&format!("suite/{name}"));
        assert!(found.answer[1].ends_with(&format!(" % less, {said}).")), "{:?}", found.answer);
    }
    let found = recorded("suite/gc_in_loop");
    assert!(found.answer[1].ends_with(" % less)."), "{:?}", found.answer);
}
