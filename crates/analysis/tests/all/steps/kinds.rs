//! Other kinds of steps are kept apart.

use super::*;
use analysis::steps::reason::ChosenBy;

const TWO: &str = "track main\n samples 0..400ms every 1ms active gil main:1\n repeat 20 every 10ms\n step decode 0..9ms\n end\n \
    repeat 4 every 40ms\n step prefill 200ms..230ms\n end";

#[test]
fn of_two_kinds_one_is_chosen_and_the_other_listed() {
    let found = find(TWO);
    assert_eq!(chosen(&found), (StepSource::Step, "decode", 20));
    assert_eq!(found.max(), 9_000_000, "no step of the other kind");
    let [other] = &found.kinds[..] else { panic!("{:?}", found.kinds) };
    assert_eq!((&*other.name, other.count, other.p50_ns), ("prefill", 4, 30_000_000));
    assert!((other.share - 0.3).abs() < 0.05, "{other:?}");
    assert_eq!(found.reason.chosen, ChosenBy::KindOfStep(2));
}

#[test]
fn a_part_of_a_step_and_what_hardly_ever_comes_are_no_kinds() {
    assert_eq!(find(&rounds(20, "step request 0..9ms\n step inner 2ms..8ms")).kinds, []);
    assert_eq!(find(&TWO.replace("200ms..230ms", "200ms..201ms")).kinds, []);
    assert_eq!(find(&rounds(20, "step request 0..9ms\n scope other 9ms..10ms")).kinds, [], "of another source");
}
