//! Causes before effects: programs in which one finding is only another one's time, or in which the obvious advice cannot be followed.

use diagnosis::{Diagnosis, Finding, Options, diagnose};
use timeline::Timeline;

fn of(text: &str) -> Diagnosis {
    diagnose(&Timeline::from_text(text).unwrap(), &Options::default())
}

#[track_caller]
fn finding<'a>(diagnosis: &'a Diagnosis, code: &str) -> &'a Finding {
    let found = diagnosis.findings.iter().find(|finding| finding.code == code);
    found.unwrap_or_else(|| {
        panic!("no {code} among {:?}", diagnosis.findings.iter().map(|one| one.code).collect::<Vec<_>>())
    })
}

/// Thirty steps of so many layers, each two short kernels launched every 40 µs; `after` stands after each layer, at its end in µs.
fn layers(count: u64, stack: &str, after: impl Fn(u64) -> String) -> String {
    let length = 80 * count + 20;
    let mut text = format!("track main\n repeat 30 every {}us\n step token 0..{length}us\n stream 7\n", 2 * length);
    for layer in 0..count {
        for (place, name) in ["gemm", "relu"].iter().enumerate() {
            let at = 80 * layer + 40 * place as u64;
            text += &format!("api cudaLaunchKernel {at}us..{}us\n kernel {name} {}us..{}us\n", at + 5, at + 8, at + 11);
        }
        text += &after(80 * layer + 51);
    }
    text + &format!("samples 0..{length}us every 100us active gil {stack}\n end")
}

/// Layers that feed each other: no rule may be sure that they are a loop to batch, and a graph launches them at once.
#[test]
fn a_chain_of_layers_is_launch_bound_and_not_surely_a_loop() {
    let container = "main@app.py:3>forward@/usr/lib/python3/site-packages/torch/nn/modules/container.py:250";
    for stack in [container, "main@app.py:3>forward@model.py:12", "main>route@moe.py:31"] {
        let diagnosis = of(&layers(60, stack, |_| String::new()));
        assert_eq!(diagnosis.findings[0].code, "launch-bound", "{stack}");
        assert!(diagnosis.answer[2].contains("CUDA graph"), "{:?}", diagnosis.answer);
        let batch = finding(&diagnosis, "python-loop-over-tensors");
        assert_eq!(batch.certainty.fix, 0.5);
        assert!(
            batch.actions[0].starts_with("If the iterations are independent of each other (not recorded): batch"),
            "{:?}",
            batch.actions
        );
        let other = diagnosis.considered.iter().find(|one| one.code == "python-loop-over-tensors").unwrap();
        assert!(other.against.ends_with("not known whether the iterations are independent of each other"), "{other:?}");
        // Each leaves doubt of the other.
        assert!(diagnosis.findings[0].confidence() < 0.8 && batch.confidence() < 0.4);
    }
}

/// A loop that waits for its kernel in every round: the waits explain the gaps and come first, and no graph is advised, which could not hold them.
#[test]
fn a_loop_that_synchronises_in_every_round_is_not_told_to_use_a_graph() {
    let mut text = String::from("track main\n repeat 30 every 2ms\n step token 0..1ms\n stream 7\n");
    for round in 0..50 {
        let at = 20 * round;
        text += &format!("api cudaLaunchKernel {at}us..{}us\n kernel add {}us..{}us\n", at + 4, at + 6, at + 16);
        text += &format!("api cudaDeviceSynchronize {}us..{}us\n", at + 5, at + 17);
    }
    let diagnosis = of(&(text + "samples 0..1ms every 110us active gil main>decode@engine.py:41\n end"));
    assert_eq!(diagnosis.findings[0].code, "sync-api", "{:?}", diagnosis.answer);
    let advised = |one: &Finding| one.actions.iter().any(|action| action.contains("graph"));
    assert!(diagnosis.findings.iter().all(|one| !advised(one)), "{:?}", diagnosis.findings);
    let refused =
        |text: &str| text.starts_with("not advised: ") && text.contains("the step waits for the GPU 49 times between");
    let evidence = || diagnosis.findings.iter().flat_map(|one| &one.evidence);
    assert!(evidence().any(|one| refused(&one.text)), "{:?}", evidence().collect::<Vec<_>>());
}

/// Where the launches differ from step to step nothing can be captured either; where they are the same, it can.
#[test]
fn a_graph_is_advised_where_its_preconditions_hold() {
    let diagnosis = of(&layers(20, "main>decode@engine.py:41", |_| String::new()));
    assert!(finding(&diagnosis, "launch-bound").actions[0].contains("CUDA graph"));
    let mut text = String::from("track main\n stream 7\n");
    for step in 0..12u64 {
        let start = 4000 * step;
        text += &format!("step token {start}us..{}us\n", start + 1300 + 40 * step);
        for number in 0..30 + step {
            let at = start + 40 * number;
            text += &format!("api cudaLaunchKernel {at}us..{}us\n kernel add {}us..{}us\n", at + 5, at + 8, at + 11);
        }
    }
    let diagnosis = of(&text);
    let launches = finding(&diagnosis, "launch-bound");
    assert!(launches.actions.iter().all(|action| !action.contains("graph")), "{:?}", launches.actions);
    assert!(launches.evidence.iter().any(|one| one.text.contains("its launches differ from step to step")));
}

/// Compiled code is not told to be compiled.
#[test]
fn what_is_compiled_is_not_told_to_be_compiled() {
    let text = layers(20, "main>decode@engine.py:41", |_| String::new());
    let compiled = of(&text
        .replace("kernel gemm", "kernel triton_poi_fused_add_0")
        .replace("kernel relu", "kernel triton_red_fused_1"));
    let said =
        |diagnosis: &Diagnosis| finding(diagnosis, "launch-bound").actions.iter().any(|one| one.contains("Fuse small"));
    assert!(said(&of(&text)) && !said(&compiled));
}

/// What is switched by `verify` is what was advised: freezing the heap is not tried where it frees nothing.
#[test]
fn a_fix_that_does_not_apply_is_not_offered_to_verify() {
    let text = |before: u64, collected: u64| {
        let args = format!("{{\"generation\":2,\"collected\":{collected},\"uncollectable\":0}}");
        format!(
            "track main\n repeat 20 every 50ms\n step request 0..40ms\n gc 1 9ms..9001us args {{\"generation\":{before}}}\n gc 2 10ms..20ms args {args}\n end"
        )
    };
    let (old, garbage) = (of(&text(1, 10)), of(&text(1, 50_000)));
    // Asked for by the program: to remove the call is first, and freezing can be tried.
    let (asked, both) = (of(&text(0, 10)), of(&text(0, 50_000)));
    let asked = finding(&asked, "gc-pauses");
    assert!(asked.actions[0].contains("Remove gc.collect()"), "{:?}", asked.actions);
    assert!(asked.verify.contains("try another fix (Freeze the heap"), "{}", asked.verify);
    assert!(!finding(&both, "gc-pauses").verify.contains("--fix"));
    let (old, garbage) = (finding(&old, "gc-pauses"), finding(&garbage, "gc-pauses"));
    assert!(old.verify.contains("verify --fix gc-pauses") && old.actions[0].contains("gc.freeze"));
    assert!(!garbage.verify.contains("--fix"), "{}", garbage.verify);
    assert!(garbage.actions.iter().all(|action| !action.contains("freeze")), "{:?}", garbage.actions);
    assert!(garbage.confidence() < old.confidence(), "{} {}", garbage.confidence(), old.confidence());
}
