//! Calls into entry points, and the turns of the loop around them.

use super::*;
use analysis::steps::reason::ChosenBy;

#[test]
fn the_turn_of_the_loop_is_the_step_where_the_loop_works_between_the_calls() {
    let found = find(&rounds(20, "entry model~Net 0..6ms"));
    assert_eq!((chosen(&found), found.p50()), ((StepSource::Turn, "iteration (model Net)", 19), 10_000_000));
    assert!(found.confidence > 0.9 && found.reason.chosen == ChosenBy::Turn, "{:?}", found.reason);
    let asked = |name: &str| Steps::find(&text(&rounds(20, "entry model~Net 0..6ms")), Some(name));
    assert_eq!(chosen(&asked("model Net")), (StepSource::Entry, "model Net", 20));
    assert_eq!(chosen(&asked("iteration (model Net)")), (StepSource::Turn, "iteration (model Net)", 19));
}

#[test]
fn the_call_is_the_step_where_the_thread_only_waits_between() {
    let text = "track main\n repeat 20 every 10ms\n samples 0..6ms every 1ms active gil main:1\n samples 6ms..10ms every 1ms wait:2\n entry model~Net 0..6ms\n end";
    let found = find(text);
    assert_eq!((chosen(&found), found.p50()), ((StepSource::Entry, "model Net", 20), 6_000_000));
}

#[test]
fn from_one_request_to_the_next_is_no_step() {
    let found = find(&rounds(20, "entry request 0..6ms"));
    assert_eq!(found.source, StepSource::Entry, "{:?}", found.reason);
}

#[test]
fn a_turn_in_which_the_loop_is_left_ends_with_its_call() {
    // Ten rounds of training, an evaluation of five, ten more.
    let rounds = |name: &str, at: u32, count: u32| {
        format!("repeat {count} every 10ms\n entry {name} {at}ms..{}ms\n end\n", at + 6)
    };
    let text = format!(
        "track main\n samples 0..400ms every 1ms active gil main:1\n {}{}{}",
        rounds("train", 0, 12),
        rounds("eval", 120, 8),
        rounds("train", 200, 20)
    );
    let found = find(&text);
    assert_eq!((found.source, &*found.name, found.p50()), (StepSource::Turn, "iteration (train)", 10_000_000));
    assert_eq!(found.max(), 10_000_000, "the one before the evaluation has only its call");
    assert_eq!((found.min(), found.steps.len()), (6_000_000, 31));
    // The evaluation is a kind of its own, and no rival.
    let kinds: Vec<_> = found.kinds.iter().map(|kind| (&*kind.name, kind.count, kind.p50_ns)).collect();
    assert_eq!((kinds, &found.runner_up), (vec![("iteration (eval)", 7, 10_000_000)], &None));
    assert_eq!(found.confidence, 1.0, "{:?}", found.reason);
}

#[test]
fn a_turn_goes_on_through_what_every_turn_enters() {
    let found = find(&rounds(20, "entry encoder 0..5ms\n entry decoder 5ms..6ms\n entry decoder 7ms..8ms"));
    assert_eq!(
        (chosen(&found), found.p50()),
        ((StepSource::Turn, "iteration (encoder)", 19), 10_000_000),
        "{:?}",
        found.reason
    );
}

#[test]
fn a_range_that_explains_as_much_is_a_rival() {
    let alone = find(&rounds(20, "nvtx forward 0..10ms"));
    let rival = find(&rounds(20, "nvtx forward 0..10ms\n nvtx shifted 1ms..10500us"));
    assert_eq!((&*alone.name, &*rival.name, alone.confidence), ("forward", "forward", 1.0));
    assert!((0.5..0.6).contains(&rival.confidence), "{:?}", rival.reason);
    let part = find(&rounds(20, "nvtx forward 0..10ms\n nvtx shifted 1ms..9ms"));
    assert_eq!((part.confidence, part.runner_up.unwrap().differs), (1.0, analysis::steps::Differs::Part));
}

#[test]
fn calls_that_overlap_on_a_thread_go_round_no_loop() {
    let found = find(
        "track main\n samples 0..200ms every 1ms active gil main:1\n repeat 20 every 10ms\n entry model 0..15ms\n end",
    );
    assert_eq!(chosen(&found), (StepSource::Entry, "model", 20));
}

#[test]
fn turns_are_of_one_thread() {
    let thread = |name: &str| {
        format!(
            "track {name}\n repeat 5 every 10ms\n samples 0..10ms every 1ms active gil {name}:1\n entry model 0..6ms\n end\n"
        )
    };
    let found = find(&(thread("one") + &thread("two")));
    assert_eq!((chosen(&found), found.p50()), ((StepSource::Turn, "iteration (model)", 8), 10_000_000));
}
