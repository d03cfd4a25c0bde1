//! Memory that CUPTI keeps after a capture is said when it has become much, once, and how much it was at the end.

use super::super::kept::{Kept, Progress};

const SECOND: u64 = 1_000_000_000;

/// Recorded all the time, at a million launches a second.
fn at(counted: u64) -> Progress {
    Progress { counted, times: [counted * 1000, 0] }
}

#[test]
fn little_is_not_worth_a_word() {
    let mut kept = Kept::default();
    for counted in [0, 1, 1_999_999] {
        assert_eq!(kept.look(at(counted)), None);
    }
    assert_eq!(kept.total(at(1_999_999)), None);
}

#[test]
fn much_is_said_once_with_what_to_do() {
    let mut kept = Kept::default();
    let words = kept.look(at(2_000_000)).expect("64 MB").said();
    assert!(words.contains("61.0 MiB") && words.contains("inferscope.start()"), "{words}");
    assert_eq!(kept.look(at(2_000_001)), None);
    assert_eq!(kept.look(at(200_000_000)), None);
}

#[test]
fn the_end_tells_what_it_became() {
    let mut kept = Kept::default();
    kept.look(at(2_100_000));
    let words = kept.total(at(17_093_298)).expect("said before, so its end is said").said();
    assert!(words.contains("about 17093298 kernels") && words.contains("522 MiB"), "{words}");
}

#[test]
fn launches_between_windows_count_as_well() {
    let mut kept = Kept::default();
    // Recorded whole for ten seconds, of which the last followed a capture; from then on a tenth of the time.
    assert_eq!(kept.look(Progress { counted: 100_000, times: [10 * SECOND, 0] }), None);
    assert_eq!(kept.look(Progress { counted: 200_000, times: [11 * SECOND, 9 * SECOND] }), None);
    let now = Progress { counted: 300_000, times: [12 * SECOND, 18 * SECOND] };
    assert!(kept.look(now).is_some(), "2,100,000 launches, of which 300,000 were seen");
    let words = kept.total(now).expect("its end").said();
    assert!(words.contains("about 2100000 kernels") && words.contains("300000 were counted"), "{words}");
    assert!(words.contains("64.1 MiB"), "{words}");
}

#[test]
fn a_single_call_is_no_pace() {
    let mut kept = Kept::default();
    kept.look(Progress { counted: 1, times: [SECOND, 0] });
    assert_eq!(kept.look(Progress { counted: 2, times: [SECOND + 1000, 60 * SECOND] }), None);
}

#[test]
fn nothing_overflows() {
    let mut kept = Kept::default();
    kept.look(Progress { counted: 1, times: [0, 0] });
    assert!(kept.look(Progress { counted: u64::MAX, times: [SECOND, u64::MAX] }).is_some());
    assert!(kept.total(Progress { counted: u64::MAX, times: [SECOND, u64::MAX] }).is_some());
}
