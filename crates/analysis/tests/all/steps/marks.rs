//! A program's own marks win, unless they explain almost nothing.

use super::*;
use analysis::steps::reason::ChosenBy;

#[test]
fn a_programs_own_marks_win_over_what_explains_more() {
    let inside = format!("step request 0..4ms\n nvtx all 0..10ms\n entry model~Net 0..9ms\n {}", launch("a", 10, 20));
    let found = find(&rounds(20, &inside));
    assert_eq!((chosen(&found), found.confidence), ((StepSource::Step, "request", 20), 1.0));
    let scope = find(&rounds(20, &inside.replace("step", "scope")));
    assert_eq!(chosen(&scope), (StepSource::Scope, "request", 20));
    let next = scope.runner_up.unwrap();
    assert_eq!((&*next.name, next.differs, next.share > 0.9), ("all", Differs::Borders, true));
    assert!(scope.reason.has_rival);
}

#[test]
fn marks_that_explain_almost_nothing_make_way_and_are_named() {
    let inside = format!("step poll 0..1ms\n nvtx forward 1ms..10ms\n {}", launch("a", 20, 30));
    let found = find(&rounds(20, &inside));
    assert_eq!(chosen(&found), (StepSource::Nvtx, "forward", 20));
    let passed = found.passed_over.clone().unwrap();
    assert_eq!((&*passed.name, passed.source, passed.count, passed.share), ("poll", StepSource::Step, 20, 0.0));
    assert_eq!((passed.holds.kernels, passed.holds.running), (Some(0.0), Some(0.1)));
    assert_eq!(found.reason.chosen, ChosenBy::Nvtx);
    // Asked for by name they are the steps all the same.
    let asked = Steps::find(&text(&rounds(20, &inside)), Some("poll"));
    assert_eq!((chosen(&asked), &asked.passed_over), ((StepSource::Step, "poll", 20), &None));
}

#[test]
fn marks_that_explain_little_stay_where_nothing_explains_most() {
    let found = find(&rounds(20, "step poll 0..700us\n nvtx other 5ms..9ms"));
    assert_eq!(chosen(&found), (StepSource::Step, "poll", 20));
    assert!((found.confidence - 0.15).abs() < 0.01, "less than a tenth, of half: {:?}", found.reason);
    let most = find(&rounds(20, "step poll 0..700us\n nvtx other 3ms..9ms"));
    assert_eq!(chosen(&most), (StepSource::Nvtx, "other", 20));
}

#[test]
fn where_nothing_else_was_recorded_pauses_say_nothing_against_marks() {
    let found = find("track main\n repeat 3 every 1s\n scope r 0..40ms\n end");
    assert_eq!((chosen(&found), found.confidence, found.share), ((StepSource::Scope, "r", 3), 1.0, None));
}

#[test]
fn a_step_is_one_even_if_it_comes_once_and_a_scope_is_not() {
    assert_eq!(chosen(&find("track main\n step r 0..40ms")), (StepSource::Step, "r", 1));
    for (count, source) in [(2, StepSource::Whole), (3, StepSource::Scope)] {
        assert_eq!(find(&rounds(count, "scope r 0..9ms")).source, source);
    }
}

#[test]
fn steps_that_repeat_come_before_one_that_takes_longer() {
    let found = find(&format!(
        "{} step load 300ms..900ms\n samples 300ms..900ms every 10ms active gil main:1",
        rounds(20, "step request 0..9ms")
    ));
    assert_eq!(chosen(&found), (StepSource::Step, "request", 20));
}

/// A front end launches nothing: what its requests wait for is launched elsewhere meanwhile.
#[test]
fn requests_of_a_process_without_a_device_hold_what_others_launch() {
    let worker = format!("process worker of 1000\n track main\n repeat 20 every 10ms\n {} end", launch("a", 10, 30));
    let found = find(&format!("process front of 1\n {}{worker}", rounds(20, "step request 0..6ms")));
    assert_eq!(chosen(&found), (StepSource::Step, "request", 20));
    assert_eq!(found.reason.holds.unwrap().kernels, Some(1.0));
}
