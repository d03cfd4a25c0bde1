//! `inferscope whatif` on a trace recorded on real hardware, and on expressions and traces that it has to refuse.

use crate::support::Place;
use std::path::Path;

fn recorded(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces").join(name);
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn it_says_now_then_gain_and_what_limits_the_step() {
    let place = Place::new("whatif");
    let told = place.run(["whatif", &recorded("decode"), "graph steps"]).fine();
    for text in
        ["What if    graph steps", "off by 0.0 %", "(mean)\nThen       ", "per step; low", "440 × cudaLaunchKernel"]
    {
        assert!(told.out.contains(text), "{text}: {}", told.out);
    }
    assert!(told.out.contains("Bottleneck CPU code between CUDA calls") && told.out.contains("After it   GPU kernels"));
    assert!(told.out.contains("Assumed\n- launches with no wait, allocation or copy"), "{}", told.out);
    let both = place.run(["whatif", &recorded("decode"), "graph steps; scale kernel:gemm* 0.5"]).fine();
    assert!(both.out.contains("143 × gemmSN_TN_kernel"), "{}", both.out);
}

#[test]
fn programs_get_the_answer_as_json() {
    let place = Place::new("whatif-json");
    let told = place.run(["whatif", &recorded("decode"), "graph steps", "--format", "json"]).fine();
    let document: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&document["changes"], &document["steps"]["count"]), (&"graph steps".into(), &11.into()));
    assert_eq!(document["changed"][0], serde_json::json!({"name": "cudaLaunchKernel", "count": 440}));
    let gain = |which: &str| document["gain_percent"][which].as_f64().unwrap();
    assert!(gain("low") < gain("mid") && gain("mid") < gain("high") && gain("high") < 100.0, "{document}");
    // No answer is no JSON.
    place.run(["whatif", &recorded("graphs"), "pin copies", "--format", "json"]).refused(5);
}

#[test]
fn every_sort_of_change_can_be_asked_for() {
    let place = Place::new("whatif-sorts");
    // In each step the host waits for a kernel, works, and launches another: without the wait the work is hidden.
    let mut waits = String::from("process 100 serve.py 3.12.1\nthread 0 100 MainThread\n");
    for index in 0..10 {
        let at = index * 20_000;
        for (call, from, to) in [
            ("cudaLaunchKernel", 10, 20),
            ("cudaDeviceSynchronize", 30, 2060),
            ("cudaLaunchKernel", 4000, 4010),
            ("cudaMemcpy", 4020, 6100),
        ] {
            waits += &format!("api 0 100 {}..{} {call} #{}\n", at + from, at + to, at + from);
        }
        waits += &format!("step 0 100 {at}..{} request #{}\n", at + 6110, 500 + index);
        waits += &format!("kernel 0 0 7 {}..{} flash_fwd #{}\n", at + 50, at + 2050, at + 10);
        waits += &format!("kernel 0 0 7 {}..{} flash_fwd #{}\n", at + 4040, at + 6040, at + 4000);
        waits += &format!("copy 0 0 7 {}..{} d2h #{} bytes 4\n", at + 6050, at + 6060, at + 4020);
    }
    timeline::fixture::Fixture::parse(&waits).write(&place.at("waits"));
    let waits = place.at("waits").to_str().unwrap().to_owned();
    for (trace, changes) in [
        (waits.clone(), "remove sync-api"),
        (waits, "scale kernel:flash* 0.5"),
        (recorded("copies"), "pin copies"),
        (recorded("decode"), "graph steps"),
    ] {
        let told = place.run(["whatif", &trace, changes]).fine();
        assert!(told.out.starts_with(&format!("What if    {changes}\n")), "{}", told.out);
        assert!(told.out.contains("\nGain       ") && !told.out.contains("Gain       0 ns"), "{}", told.out);
    }
    // Most of PyTorch's kernels stand in a namespace without a name, which nobody writes.
    let told = place.run(["whatif", &recorded("bert"), "scale kernel:vectorized_layer_norm_kernel 0.5"]).fine();
    assert!(told.out.contains("63 × at::native::vectorized_layer_norm_kernel\n"), "{}", told.out);
    // A name with a star that this trace has nothing of: understood, and refused for that.
    let error = place.run(["whatif", &recorded("decode"), "scale kernel:flash* 0.5"]).refused(5);
    assert!(error.contains("flash"), "{error}");
}

#[test]
fn a_wrong_expression_is_a_usage_error_with_its_position() {
    let place = Place::new("whatif-wrong");
    for (changes, said) in [
        ("remvoe sync-api", "column 1: unknown word \"remvoe\"; did you mean \"remove\"?"),
        ("pin copies; scale kernel:a", "column 27: expected a factor"),
        ("", "column 1: expected a change"),
    ] {
        // Refused before the trace is opened.
        let error = place.run(["whatif", "nowhere", changes]).refused(2);
        assert!(error.contains(said) && error.lines().count() == 1, "{error}");
    }
    place.run(["whatif", "nowhere", "pin copies"]).refused(5);
    place.run(["whatif", "nowhere"]).refused(2);
}

#[test]
fn what_the_trace_cannot_say_is_refused() {
    let place = Place::with_trace("whatif-none");
    let error = place.run(["whatif", &recorded("decode"), "scale kernel:gemmSM* 0.5"]).refused(5);
    assert!(error.contains("did you mean \"gemmSN_TN_kernel"), "{error}");
    let error = place.run(["whatif", &recorded("decode"), "remove kernel:nope"]).refused(5);
    assert!(error.contains("the longest are \"") && error.len() < 300, "{error}");
    let error = place.run(["whatif", &recorded("graphs"), "pin copies"]).refused(5);
    assert!(error.contains("no pageable copies"), "{error}");
    assert!(place.run(["whatif", "trace", "remove sync-api"]).refused(5).contains("no step has a wait"));
    assert!(place.run(["whatif", "trace", "graph steps", "--step", "nope"]).refused(5).contains("nope"));
    // Without a GPU the host's code can still be scaled.
    assert!(place.run(["whatif", "trace", "remove host:tokenise"]).fine().out.contains("slices of tokenise"));
}

#[test]
fn names_cannot_reach_the_terminal() {
    let place = Place::new("whatif-evil");
    let text = "process 100 a 3.12\nstep 0 100 0..90 \x1b]0;owned\x07 #1\nscope 0 100 3..9 \x1b[31mred #2";
    timeline::fixture::Fixture::parse(text).write(&place.at("trace"));
    let out = place.run(["whatif", "trace", "remove host:*red"]).fine().out;
    assert!(!out.contains('\x1b') && !out.contains('\x07'), "{out:?}");
}
