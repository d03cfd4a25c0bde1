//! What `check` and `whatif` write for programs has the fields that their schemas ask for and no others.

use super::analysis_json::check;
use super::timelines;
use serde_json::Value;

fn valid(schema: &str, document: &[u8], name: &str) -> Value {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let document = serde_json::from_slice(document).unwrap();
    check(&schema, &schema, &document, name);
    document
}

#[test]
fn limits_that_hold_fail_or_cannot_be_decided_are_told_apart() {
    for (name, timeline) in timelines::all() {
        let mut json = Vec::new();
        timelines::limits(&timeline, &mut json).unwrap();
        let document = valid(include_str!("../../../../schema/check.schema.json"), &json, name);
        let state = |place: usize| document["limits"][place]["state"].as_str().unwrap();
        let (total, steps) = (&document["state"], document["steps"]["count"].as_u64().unwrap());
        match name {
            "service" => assert_eq!((total, state(0), state(1), steps), (&"failed".into(), "failed", "passed", 160)),
            "nothing" => assert_eq!((total, state(0), steps), (&"undecided".into(), "undecided", 0)),
            _ => {}
        }
        // No kernel was counted: that is no zero.
        let kernels = &document["limits"][2];
        assert_eq!(kernels["value"].is_null(), kernels["state"] == "undecided", "{name}");
        assert_eq!(kernels["value"].is_null(), name != "gpu" && name != "hostile", "{name}");
    }
}

#[test]
fn an_answer_of_a_replay_is_complete() {
    let mut json = Vec::new();
    let timeline = timelines::parse(include_str!("../gpu/small.timeline"));
    timelines::whatif(&timeline, "scale kernel:* 0.5", &mut json).unwrap();
    let document = valid(include_str!("../../../../schema/whatif.schema.json"), &json, "gpu");
    let ns = |field: &str| document[field].as_i64().unwrap();
    assert_eq!(ns("now_ns") - ns("then_ns"), document["gain_ns"]["mid"].as_i64().unwrap());
    assert!(ns("then_ns") < ns("now_ns") && !document["changed"].as_array().unwrap().is_empty());
    let shares: f64 =
        document["limits_now"].as_array().unwrap().iter().map(|one| one["percent"].as_f64().unwrap()).sum();
    assert!((0.0..=100.001).contains(&shares), "{shares}");
}
