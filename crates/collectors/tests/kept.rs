//! Memory that CUPTI keeps after a capture is said when it has become much, once, and how much it was at the end.

#[path = "../src/gpu/kept.rs"]
mod kept;

use kept::Kept;

#[test]
fn little_is_not_worth_a_word() {
    let mut kept = Kept::default();
    for launched in [0, 1, 1_999_999] {
        assert_eq!(kept.explain(launched), None);
    }
    assert_eq!(kept.total(1_999_999), None);
}

#[test]
fn much_is_said_once_with_what_to_do() {
    let mut kept = Kept::default();
    let words = kept.explain(2_000_000).expect("64 MB");
    assert!(words.contains("64 MB") && words.contains("inferscope.start()"), "{words}");
    assert_eq!(kept.explain(2_000_001), None);
    assert_eq!(kept.explain(u64::MAX), None);
}

#[test]
fn the_end_tells_what_it_became() {
    let mut kept = Kept::default();
    kept.explain(2_100_000);
    let words = kept.total(17_093_298).expect("said before, so its end is said");
    assert!(words.contains("17093298 kernels") && words.contains("546 MB"), "{words}");
}
