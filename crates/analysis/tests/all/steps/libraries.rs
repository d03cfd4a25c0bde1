//! Ranges that libraries mark are never steps.

use super::*;
use analysis::steps::reason::{ChosenBy, Whole};

#[test]
fn ranges_in_a_librarys_domain_are_never_steps() {
    for domain in ["NCCL", "CCCL", "TSL", "cuDNN", "cuBLAS", "cuSPARSE", "TensorRT", "cuFile", "libcudf"] {
        let range = format!("nvtx work 0..9ms args {{\"domain\":\"{domain}\"}}");
        assert_eq!(find(&rounds(20, &range)).source, StepSource::Whole, "{domain}");
    }
    let own = find(&rounds(20, r#"nvtx work 0..9ms args {"domain":"serving"}"#));
    assert_eq!(chosen(&own), (StepSource::Nvtx, "work", 20));
}

#[test]
fn one_name_in_two_domains_is_two_things() {
    let both = r#"nvtx work 0..9ms args {"domain":"serving"}
        nvtx work 1ms..2ms args {"domain":"NCCL"}"#;
    let found = find(&rounds(20, both));
    assert_eq!((chosen(&found), found.p50()), ((StepSource::Nvtx, "work", 20), 9_000_000));
}

#[test]
fn a_marker_of_an_engine_counts_in_any_domain_but_a_librarys() {
    let marker =
        |domain: &str| format!("nvtx execute_context_0(0)_generation_8(8) 0..9ms args {{\"domain\":\"{domain}\"}}");
    assert_eq!(chosen(&find(&rounds(5, &marker("vllm")))), (StepSource::Step, "execute (decode)", 5));
    assert_eq!(find(&rounds(5, &marker("NCCL"))).source, StepSource::Whole);
}

/// Nobody knows all libraries: what holds little of the kernels and of the thread is no step, whoever marked it.
#[test]
fn a_range_of_an_unknown_library_explains_too_little() {
    let inside = format!(
        "nvtx plan 0..300us\n {}{} api cudaStreamSynchronize 8ms..9ms",
        launch("a", 10, 20),
        launch("b", 40, 30)
    );
    let found = find(&rounds(20, &inside));
    assert_eq!(found.source, StepSource::Sequence, "{:?}", found.reason);
    let alone = find(&rounds(20, "nvtx plan 0..300us"));
    assert_eq!(alone.source, StepSource::Whole, "{:?}", alone.reason);
    let ChosenBy::Whole(Whole { little: Some((name, holds)), .. }) = &alone.reason.chosen else {
        panic!("{:?}", alone.reason)
    };
    assert_eq!((&**name, holds.kernels, holds.running), ("plan", None, Some(0.05)));
    let tenth = find(&rounds(20, "nvtx plan 0..1200us"));
    assert_eq!(chosen(&tenth), (StepSource::Nvtx, "plan", 20));
    assert!(tenth.confidence < 0.5, "{:?}", tenth.reason);
}
