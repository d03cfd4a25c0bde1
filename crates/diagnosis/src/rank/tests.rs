//! The order of findings that were made by hand.

use super::*;
use crate::action::{Action, Precondition};
use crate::finding::Severity;
use crate::relation::Changes;
use crate::testing::finding;
use replay::gain::Gain;

/// What a recording would say of every two changes.
struct Recording {
    same_time: Option<bool>,
}

impl Changes for Recording {
    fn same_time(&self, _: &Gain, _: &Gain) -> Option<bool> {
        self.same_time
    }

    fn covered(&self, _: &Gain, _: &Gain) -> Option<f64> {
        None
    }

    fn is_of_everything(&self, _: &Gain) -> bool {
        false
    }
}

#[track_caller]
fn order(findings: Vec<Finding>, same_time: Option<bool>) -> Vec<&'static str> {
    let relations = Relations::of(&findings, &Recording { same_time });
    super::order(&findings, &relations).into_iter().map(|at| findings[at].code.as_str()).collect()
}

fn of(code: &'static str, gain: f64) -> Finding {
    finding(code, Some(Gain::recorded(gain, gain, gain)), Severity::Medium)
}

#[test]
fn what_is_known_to_be_changed_decides_and_not_how_much_it_gains() {
    let first = |same: Option<bool>| order(vec![of("hot-line", 60.0), of("gc-pauses", 40.0)], same)[0];
    assert_eq!([first(None), first(Some(true)), first(Some(false))], ["gc-pauses", "gc-pauses", "hot-line"]);
}

#[test]
fn most_to_gain_comes_first_and_a_cause_before_what_it_explains() {
    assert_eq!(order(vec![of("sync-api", 10.0), of("launch-bound", 30.0)], None), ["launch-bound", "sync-api"]);
    let loader =
        vec![of("hot-line", 62.0), of("preprocess-before-first-kernel", 60.0), of("single-threaded-loader", 55.0)];
    assert_eq!(order(loader, None), ["single-threaded-loader", "hot-line", "preprocess-before-first-kernel"]);
    for cause in ["pageable-async-copy", "many-small-copies", "sync-memcpy", "logits-to-host-each-step"] {
        assert_eq!(order(vec![of("copies-exposed", 40.0), of(cause, 30.0)], None), [cause, "copies-exposed"]);
    }
    // Another time: a tenth of it is logging.
    assert_eq!(order(vec![of("hot-line", 62.0), of("logging-in-step", 6.0)], None), ["hot-line", "logging-in-step"]);
}

/// The copies explain what the pageable ones take, and both what is exposed: through a chain, too, the first cause comes first.
#[test]
fn a_cause_of_a_cause_comes_before_both() {
    let chain = vec![of("copies-exposed", 40.0), of("pageable-async-copy", 30.0), of("many-small-copies", 20.0)];
    assert_eq!(order(chain, Some(true)), ["many-small-copies", "pageable-async-copy", "copies-exposed"]);
}

#[test]
fn what_is_less_sure_weighs_less_by_what_is_expected_of_it() {
    let unsure = |code, gain: f64, fix: f64| {
        let one = of(code, gain);
        Finding { certainty: crate::certainty::Certainty { fix, ..one.certainty }, ..one }
    };
    let two = |fix: f64| order(vec![unsure("host-wait", 40.0, fix), of("kernel-hotspot", 25.0)], Some(false))[0];
    assert_eq!([two(0.7), two(0.5)], ["host-wait", "kernel-hotspot"]);
    // What is open to all sides is expected in the middle as what is not.
    let wide = |mid| Finding { gain: Some(Gain::recorded(0.0, mid, 100.0)), ..of("host-wait", mid) };
    let first = |mid| order(vec![wide(mid), of("kernel-hotspot", 27.0)], Some(false))[0];
    assert_eq!([first(28.0), first(26.0)], ["host-wait", "kernel-hotspot"]);
    // However unsure it is, a cause comes before what it explains.
    let cause = unsure("gc-pauses", 40.0, 0.1);
    assert_eq!(order(vec![of("hot-line", 60.0), cause], Some(true))[0], "gc-pauses");
}

/// What covers a stretch and the line inside it that has most of it come to about the same: the whole is said first.
#[test]
fn of_one_function_the_whole_comes_before_its_part() {
    let named = |code, mid: f64, seen: f64| {
        let mut one = of(code, mid);
        one.certainty.seen *= seen;
        (one.place.file, one.place.function) = (Some("app.py".into()), Some("piece".into()));
        one
    };
    let both = || vec![named("hot-line", 56.0, 1.0), named("postprocess-tail", 65.0, 0.8)];
    assert_eq!(order(both(), Some(true))[0], "postprocess-tail");
    assert_eq!(order(both(), Some(false))[0], "hot-line");
}

#[test]
fn without_a_gain_what_sets_the_pace_comes_before_what_shows_it() {
    let of = |code| finding(code, None, Severity::Info);
    let all = vec![
        finding("hot-line", None, Severity::Low),
        of("kernel-hotspot"),
        of("compute-bound"),
        finding("host-wait", Some(Gain::recorded(2.0, 2.0, 2.0)), Severity::Low),
    ];
    assert_eq!(order(all, None), ["host-wait", "compute-bound", "hot-line", "kernel-hotspot"]);
}

#[test]
fn of_equal_gains_the_more_severe_one_and_then_the_surer_one_comes_first() {
    let without = |severity, seen| {
        let one = finding("hot-line", None, severity);
        Finding { certainty: crate::certainty::Certainty::seen(seen), ..one }
    };
    let all = vec![without(Severity::Low, 0.5), without(Severity::Low, 0.8), without(Severity::High, 0.1)];
    let relations = Relations::of(&all, &Recording { same_time: None });
    let seen: Vec<f64> = super::order(&all, &relations).into_iter().map(|at| all[at].certainty.seen).collect();
    assert_eq!(seen, [0.1, 0.8, 0.5]);
}

/// Whether others can be moved is not known, and does not push the finding down; whether another fix applies does.
#[test]
fn that_others_take_the_cores_comes_first_whether_or_not_they_can_be_stopped() {
    let doubtful = |code, gain| Finding {
        certainty: Certainty { fix: 0.5, ..Certainty::seen(0.9) },
        actions: vec![Action::new("Move it").needs([Precondition::Unknown("it can be moved".into())])],
        ..of(code, gain)
    };
    let first = |gain| order(vec![of("hot-line", 40.0), doubtful("launch-thread-descheduled", gain)], Some(false))[0];
    assert_eq!([first(50.0), first(30.0)], ["launch-thread-descheduled", "hot-line"]);
    let other = order(vec![of("hot-line", 40.0), doubtful("batchable-loop", 50.0)], Some(false));
    assert_eq!(other, ["hot-line", "batchable-loop"]);
}

/// A part of a function comes after the whole of it, however sure each is; what gains nothing after what gains little.
#[test]
fn the_whole_comes_before_its_part_and_a_gain_before_none() {
    let at = |code, gain, seen| {
        let mut one = of(code, gain);
        (one.place.file, one.place.function) = (Some("app.py".into()), Some("build".into()));
        Finding { certainty: Certainty::seen(seen), ..one }
    };
    let two = vec![at("kernel-hotspot", 30.0, 0.99), at("hot-line", 40.0, 0.5)];
    assert_eq!(order(two.clone(), Some(true)), ["hot-line", "kernel-hotspot"]);
    assert_eq!(order(two, Some(false)), ["kernel-hotspot", "hot-line"]);
    let none = finding("hot-line", None, Severity::High);
    assert_eq!(order(vec![none, of("gc-pauses", 0.1)], None), ["gc-pauses", "hot-line"]);
}
