//! The comparison JSON has the fields that its schema asks for and no others, and says what the comparison says.

use super::analysis_json::check;
use super::timelines;
use diagnosis::compare::{Gate, Side, compare};
use report::comparison::Titles;
use serde_json::Value;

const SCHEMA: &str = include_str!("../../../../schema/comparison.schema.json");

fn compared(a: &timeline::Timeline, b: &timeline::Timeline, gates: &[&str]) -> Value {
    serde_json::from_str(&both(a, b, gates).0).unwrap()
}

/// JSON and Markdown.
fn both(a: &timeline::Timeline, b: &timeline::Timeline, gates: &[&str]) -> (String, String) {
    let measured = [a, b].map(|one| (analysis::measure(one), diagnosis::diagnose(one, &diagnosis::Options::default())));
    let side = |timeline, place: usize| Side { timeline, metrics: &measured[place].0, diagnosis: &measured[place].1 };
    let comparison = compare(side(a, 0), side(b, 1)).unwrap();
    let gates: Vec<_> = gates.iter().map(|gate| Gate::parse(gate).unwrap().judge(&comparison)).collect();
    let (mut json, mut markdown) = (Vec::new(), Vec::new());
    let titles = Titles { a: "before", b: "after" };
    report::comparison::json::write(&comparison, &titles, &gates, &mut json).unwrap();
    report::comparison::markdown::write(&comparison, &titles, &gates, 3, &mut markdown).unwrap();
    (String::from_utf8(json).unwrap(), String::from_utf8(markdown).unwrap())
}

#[test]
fn every_field_is_in_the_schema_and_every_field_of_the_schema_is_there() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for (name, a, b) in timelines::pairs() {
        let document = compared(&a, &b, &["step_p50 > +5%", "step_p99 > 1000"]);
        check(&schema, &schema, &document, name);
        assert_eq!((&document["a"], &document["b"]), (&"before".into(), &"after".into()));
    }
}

#[test]
fn the_slower_one_is_said_and_its_gate_fails() {
    let pairs = timelines::pairs();
    let (_, a, b) = &pairs[0];
    let document = compared(a, b, &["step_p50 > +5%"]);
    let metric = |name: &str| {
        let metrics = document["metrics"].as_array().unwrap();
        metrics.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}"))
    };
    assert_eq!((&metric("step_p50")["a"]["value"], &metric("step_p50")["b"]["value"]), (&40.0.into(), &44.0.into()));
    assert_eq!(document["gates"][0]["state"], "failed");
    let machine = document["environment"].as_array().unwrap();
    assert!(machine.iter().any(|one| one["a"] == "4" && one["b"] == "8"), "{machine:?}");
}

#[test]
fn a_pull_request_gets_the_answer_the_gates_and_tables() {
    let pairs = timelines::pairs();
    let (_, a, b) = &pairs[0];
    let markdown = both(a, b, &["step_p50 > +5%", "kernels > 1"]).1;
    for line in [
        "# InferScope: `before` (A) and `after` (B)",
        "| **FAILED** | `step_p50 > +5%` | `step_p50` went from 40.0 ms to 44.0 ms (+10.0 %) |",
        "| what differs | A | B |",
        "## Metrics per step (160 steps in A, 160 in B)",
        "| `step_p50` | 40.0 ms | 44.0 ms | +10.0 % | real |",
    ] {
        assert!(markdown.lines().any(|one| one == line), "{line}:\n{markdown}");
    }
    assert!(markdown.contains("\n> A step \"request\" is slower: ") && markdown.contains("| **no data** |"));
    assert!(markdown.contains("## Functions\n") && markdown.contains(" more in the JSON output.\n"), "{markdown}");
}
