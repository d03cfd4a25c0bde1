//! Ranges made of measured fixes: what they hold, how kinds differ, and what a damaged table does.

use super::*;

fn fixes(kind: &str, promised: f64, measured: impl IntoIterator<Item = f64>) -> Vec<Fix> {
    let one = |measured| Fix { kind: kind.into(), promised: [promised; 3], measured, program: String::new() };
    measured.into_iter().map(one).collect()
}

fn range(fixes: &[Fix], kind: ChangeKind, [low, mid, high]: [f64; 3]) -> [f64; 3] {
    let gain = Gain { kind, ..Gain::recorded(low, mid, high) };
    let gain = corrected(gain, &Misses::of(fixes.to_vec()).unwrap());
    [gain.low, gain.mid, gain.high]
}

fn width(fixes: &[Fix], kind: ChangeKind, mid: f64) -> f64 {
    let [low, _, high] = range(fixes, kind, [mid; 3]);
    high - low
}

#[test]
fn the_range_holds_nine_of_ten_measured_gains_and_the_middle_stays() {
    let all = fixes("kernels", 50.0, (0..99).map(|at| 30.0 + f64::from(at) * 0.4));
    let [low, mid, high] = range(&all, ChangeKind::Kernels, [50.0; 3]);
    assert_eq!(mid, 50.0);
    let inside = all.iter().filter(|fix| low <= fix.measured && fix.measured <= high).count();
    assert!((89..=93).contains(&inside), "{inside}");
}

/// Kernels miss by a point, launches by twenty.
fn two_kinds(count: u32) -> Vec<Fix> {
    let mut all = fixes("kernels", 50.0, (0..count).map(|at| 49.0 + 2.0 * f64::from(at % 2)));
    all.extend(fixes("launches", 50.0, (0..count).map(|at| 30.0 + 40.0 * f64::from(at % 2))));
    all
}

#[test]
fn a_kind_has_a_range_of_its_own_the_more_the_more_is_known_of_it() {
    let ratio = |count| {
        let all = two_kinds(count);
        width(&all, ChangeKind::Launches, 50.0) / width(&all, ChangeKind::Kernels, 50.0)
    };
    assert!(1.0 < ratio(2) && ratio(2) < 2.0, "{}", ratio(2));
    assert!(ratio(2) < ratio(8) && ratio(8) < ratio(80) && ratio(80) > 5.0, "{} {}", ratio(8), ratio(80));
    // Of copies nothing is known: as wide as all are.
    let all = two_kinds(8);
    let of = |kind| width(&all, kind, 50.0);
    assert!(of(ChangeKind::Kernels) < of(ChangeKind::Copies) && of(ChangeKind::Copies) < of(ChangeKind::Launches));
}

#[test]
fn one_fix_that_went_wrong_does_not_widen_its_kind() {
    let mut without = two_kinds(20);
    without.extend(fixes("calls", 50.0, [45.0; 20]));
    let mut with = without.clone();
    with.extend(fixes("kernels", 50.0, [5.0]));
    let (wide, narrow) = (width(&with, ChangeKind::Kernels, 50.0), width(&without, ChangeKind::Kernels, 50.0));
    assert!((wide / narrow - 1.0).abs() < 0.1, "{wide} {narrow}");
}

#[test]
fn a_miss_weighs_the_same_at_both_ends_and_never_leaves_the_step() {
    let all = fixes("calls", 50.0, (0..21).map(|at| 30.0 + 2.0 * f64::from(at)));
    for mid in [0.5, 10.0, 50.0, 90.0, 99.5] {
        let [low, middle, high] = range(&all, ChangeKind::Calls, [mid; 3]);
        assert!(0.0 <= low && low <= middle && middle <= high && high <= 100.0, "{mid}: {low} {middle} {high}");
    }
    let width = |mid| width(&all, ChangeKind::Calls, mid);
    assert!(width(10.0) < 0.75 * width(50.0) && (width(10.0) - width(90.0)).abs() < 1.0);
}

/// Few samples leave a range open to both sides. That at worst nothing is gained was true of measured fixes, too, and is in what they missed by.
#[test]
fn what_is_known_less_of_is_promised_less_of() {
    let all = fixes("calls", 50.0, (0..39).map(|at| 31.0 + f64::from(at)));
    let width = |low, high| {
        let [low, _, high] = range(&all, ChangeKind::Calls, [low, 50.0, high]);
        high - low
    };
    let (exact, sampled, vague) = (width(50.0, 50.0), width(30.0, 70.0), width(10.0, 90.0));
    assert!(exact > 6.0 && exact < sampled && 1.2 * sampled < vague, "{exact} {sampled} {vague}");
    assert_eq!(width(0.0, 50.0), exact);
}

#[test]
fn what_was_derived_is_kept_and_what_promises_less_than_any_fix_is_left() {
    let misses = Misses::of(fixes("calls", 20.0, [18.0, 22.0, 23.0])).unwrap();
    assert_eq!(ranged(Gain::recorded(10.0, 20.0, 30.0), &misses).derived, Some([10.0, 20.0, 30.0]));
    assert_eq!(ranged(Gain::recorded(10.0, 19.9, 30.0), &misses).derived, None);
}

#[test]
fn bounds_stay_where_the_recording_does_not_show_what_a_fix_reaches() {
    let misses = Misses::of(fixes("calls", 50.0, [48.0, 52.0, 53.0])).unwrap();
    let range = |by| {
        let gain = corrected(Gain { by, ..Gain::recorded(0.0, 50.0, 51.0) }, &misses);
        (gain.low, gain.high)
    };
    let replayed = range(GainBy::Replay);
    assert!(40.0 < replayed.0 && 51.0 < replayed.1, "{replayed:?}");
    for by in [GainBy::Bounded, GainBy::Prior] {
        assert_eq!(range(by), (0.0, replayed.1));
    }
}

#[test]
fn without_measured_fixes_nothing_is_changed_and_a_damaged_table_is_no_panic() {
    assert_eq!(Misses::of(Vec::new()), None);
    let damaged = "change,low,promised,high,measured,program\nx\ncalls,1\ncalls,1,NaN,3,4,p\ncalls,1,2,inf,3,p\n,,\nodd,1,2,3,4,p\ncalls,1,2,3,4\n";
    assert!(read(damaged).is_empty());
    // Fixes that all came out as promised: then so will the next.
    assert_eq!(range(&fixes("calls", 20.0, [20.0; 3]), ChangeKind::Calls, [20.0; 3]).map(f64::round), [20.0; 3]);
}

#[test]
fn the_table_reads_whole_and_ranges_made_without_a_program_hold_what_it_measured() {
    let all = read(MEASURED);
    assert_eq!(all.len(), MEASURED.lines().count() - 1);
    let inside = |fix: &&Fix| {
        let others: Vec<Fix> = all.iter().filter(|other| other.program != fix.program).cloned().collect();
        let by = Misses::of(others).unwrap().at_most(&fix.kind, fix.promised);
        (angle(fix.measured) - angle(fix.promised[1])).abs() <= by
    };
    let inside = all.iter().filter(inside).count() as f64 / all.len() as f64;
    assert!((0.85..=0.95).contains(&inside), "{inside}");
}
