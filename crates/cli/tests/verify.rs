//! `inferscope verify`: its list, what it refuses before anything runs, and a fix of the environment around a shell.

use crate::support::Place;
use serde_json::Value;

#[test]
fn the_list_names_every_fix_with_what_it_changes_and_its_risk() {
    let place = Place::new("verify-list");
    let told = place.run(["verify", "--list"]).fine();
    for text in ["tf32\n", "  rules  tf32-off, ", "  does   torch.set_float32", "  risk   changes numbers", "gc-pauses"]
    {
        assert!(told.out.contains(text), "{text}: {}", told.out);
    }
    let json: Value = serde_json::from_str(&place.run(["verify", "--list", "--format", "json"]).fine().out).unwrap();
    let names: Vec<&str> = json["fixes"].as_array().unwrap().iter().map(|fix| fix["name"].as_str().unwrap()).collect();
    let asked =
        ["tf32", "sdpa", "channels-last", "cudnn-benchmark", "pinned-copies", "threads", "affinity", "gc-freeze"];
    assert!(asked.iter().all(|name| names.contains(name)), "{names:?}");
    let ascii = place.command(["verify", "--list"]).env("LC_ALL", "C").output().unwrap();
    assert!(ascii.stdout.is_ascii());
}

#[test]
fn what_cannot_be_tried_is_refused_before_anything_runs() {
    let place = Place::new("verify-refused");
    for (arguments, code, said) in [
        (vec!["--fix", "gc-frezee"], 2, "there is no fix or rule \"gc-frezee\": did you mean gc-freeze?"),
        (vec!["--fix", "xylophone"], 2, "`inferscope verify --list` shows all"),
        (vec!["--fix", "implicit-sync"], 2, "`implicit-sync` needs a code change; `verify` cannot apply it"),
        (vec!["--fix", "threads=none"], 2, "not a number of threads"),
        (vec!["--fix", "gc-freeze=3"], 2, "takes no value"),
        (vec!["--fix", "gc-freeze", "--rounds", "1"], 2, "1 is not in 2..=1000"),
        (vec!["--fix", "gc-freeze", "--trace", "nowhere"], 5, "nowhere"),
        (vec![], 2, "--fix <RULE>"),
    ] {
        let all = ["verify"].into_iter().chain(arguments).chain(["--", "sh", "-c", "touch ran"]);
        let error = place.run(all).refused(code);
        assert!(error.contains(said), "{said}: {error}");
        assert!(!place.at("ran").exists());
    }
    assert!(place.run(["verify", "--fix", "gc-freeze"]).refused(2).contains("COMMAND"));
}

#[test]
fn runs_are_taken_in_turn_and_the_output_is_compared() {
    let place = Place::new("verify-turns");
    let script = "echo ${CUDA_MODULE_LOADING:-none} >> order; echo same";
    let told = place
        .run(["verify", "--fix", "module-loading", "--rounds", "3", "--format", "json", "--", "sh", "-c", script])
        .fine();
    let json: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&json["rule"], &json["fix"]), (&"module-loading".into(), &"eager-loading".into()));
    assert_eq!((&json["output"], &json["of"], &json["rounds"]), (&"same".into(), &"process".into(), &3.into()));
    assert!(json["not_predicted"].as_str().unwrap().starts_with("no module-loading finding"), "{}", told.out);
    assert!(json["predicted"].is_null());
    // One for the prediction, then without and with, with and without, without and with.
    let order = std::fs::read_to_string(place.at("order")).unwrap();
    assert_eq!(
        order.split_whitespace().collect::<Vec<_>>(),
        ["none", "none", "EAGER", "EAGER", "none", "none", "EAGER"]
    );
}

#[test]
fn a_prediction_from_a_trace_needs_no_recorded_run_and_caches_are_warmed() {
    let place = Place::with_trace("verify-trace");
    let script = "echo run >> runs";
    let all = ["verify", "--fix", "launch-queue", "--trace", "trace", "--rounds", "2", "--", "sh", "-c", script];
    let told = place.run(all).fine();
    assert!(told.err.contains("so that no round pays for cold caches"), "{}", told.err);
    assert!(told.out.starts_with("launch-queue: measured "), "{}", told.out);
    assert_eq!(std::fs::read_to_string(place.at("runs")).unwrap().lines().count(), 5);
}

#[test]
fn findings_that_a_switch_answers_say_so() {
    let place = Place::new("verify-hint");
    let trace = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces/copies");
    let told = place.run(["analyze", trace.to_str().unwrap(), "--format", "json"]).fine();
    let json: Value = serde_json::from_str(&told.out).unwrap();
    let says = |code: &str| {
        let finding = json["findings"].as_array().unwrap().iter().find(|finding| finding["code"] == code);
        finding.map(|finding| finding["verify"].as_str().unwrap().contains("inferscope verify --fix"))
    };
    assert_eq!((says("pageable-async-copy"), says("warmup-in-window")), (Some(true), Some(false)), "{}", told.out);
}

#[test]
fn a_command_killed_by_a_signal_is_told() {
    let place = Place::new("verify-killed");
    let error = place.run(["verify", "--quiet", "--fix", "gc-freeze", "--", "sh", "-c", "kill -9 $$"]).refused(1);
    assert!(error.contains("the command was killed by signal 9 and says nothing"), "{error}");
}
