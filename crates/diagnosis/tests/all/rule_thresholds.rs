//! Thresholds of rules: named, reasoned, documented by their values; changed values decide, and none of them breaks a rule.

use diagnosis::rules::RULES;
use diagnosis::{Diagnosis, Options, RuleDocs, RuleSettings, diagnose};
use std::collections::BTreeSet;
use timeline::Timeline;

#[test]
fn every_threshold_belongs_to_its_rule_and_says_why() {
    let mut seen = 0;
    for rule in RULES {
        let mut names = BTreeSet::new();
        for threshold in rule.thresholds() {
            seen += 1;
            let (code, name) = (rule.code(), threshold.name);
            assert_eq!(threshold.rule, code, "{name}");
            assert!(names.insert(name), "{code}: {name} twice");
            assert!(["min_", "max_"].iter().any(|word| name.starts_with(word)), "{code}: {name}");
            assert!(!threshold.reason.is_empty() && !threshold.reason.ends_with('.'), "{code}: {name}");
            let fits = RuleSettings::default().set(*threshold, threshold.value, String::new());
            assert_eq!(fits, Ok(()), "{code}");
        }
    }
    assert!(seen > 100, "{seen}");
}

#[test]
fn the_documentation_has_a_value_for_every_name_in_it() {
    let settings = RuleSettings::default();
    for rule in RULES {
        let docs = rule.docs();
        for text in [docs.summary, docs.why, docs.needs] {
            let filled = RuleDocs::filled(text, rule, &settings);
            assert!(!filled.contains("{min_") && !filled.contains("{max_"), "{}: {filled}", rule.code());
        }
    }
}

const HOT: &str = "track main\n repeat 40 every 100ms\n step request 0..100ms\n samples 0..30ms every 1ms active gil main>slow@a.py:7\n \
                   samples 30ms..100ms every 1ms active gil main>rest@b.py:9\n end";

fn codes(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.findings.iter().map(|finding| finding.code.as_str()).collect()
}

#[test]
fn a_changed_threshold_and_a_rule_that_is_off_decide_and_are_said() {
    let timeline = Timeline::from_text(HOT).unwrap();
    let with = |rules: RuleSettings| diagnose(&timeline, &Options { rules, ..Options::default() });
    let rule = RULES.into_iter().find(|rule| rule.code() == "hot-line").unwrap();
    let min_share = *rule.thresholds().iter().find(|one| one.name == "min_share").unwrap();
    let usual = with(RuleSettings::default());
    assert_eq!(codes(&usual).iter().filter(|code| **code == "hot-line").count(), 2, "{:?}", codes(&usual));
    assert!(!usual.health.iter().any(|line| line.label() == "rules"));

    let mut higher = RuleSettings::default();
    higher.set(min_share, 0.5, "r.yaml:3".into()).unwrap();
    let higher = with(higher);
    assert_eq!(codes(&higher).iter().filter(|code| **code == "hot-line").count(), 1, "{:?}", codes(&higher));
    let said =
        |diagnosis: &Diagnosis| diagnosis.health.iter().find(|line| line.label() == "rules").unwrap().text.clone();
    assert_eq!(said(&higher), "changed: hot-line min_share is 0.5 (r.yaml:3)");

    let mut off = RuleSettings::default();
    off.switch_off(rule.code(), "r.yaml:2".into());
    let off = with(off);
    assert!(!codes(&off).contains(&"hot-line"));
    assert!(!off.abstentions.iter().any(|one| one.code == "hot-line"));
    assert_eq!(said(&off), "changed: hot-line is off (r.yaml:2)");
}

/// As low and as high as a file may set them, all at once.
#[test]
fn no_value_breaks_a_rule() {
    let ends = |high: bool| {
        let mut settings = RuleSettings::default();
        for threshold in RULES.iter().flat_map(|rule| rule.thresholds()) {
            let values = if high { [60e9, 1e12, 1e6, 1e3, 100.0, 1.0] } else { [0.0, 1.0, 1.0, 1.0, 1.0, 1.0] };
            let set = values.iter().any(|value| settings.set(*threshold, *value, "r.yaml:1".into()).is_ok());
            assert!(set, "{threshold:?}");
        }
        settings
    };
    let traces = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/traces");
    let names =
        ["bert", "copies", "decode", "graphs", "suite/no_requests", "suite/loader_no_workers", "suite/unaligned"];
    let recorded = names.iter().map(|name| timeline::open(&traces.join(name)).unwrap());
    let written = Timeline::from_text(HOT).unwrap();
    for timeline in recorded.chain([written]) {
        let [low, high] =
            [false, true].map(|high| diagnose(&timeline, &Options { rules: ends(high), ..Options::default() }));
        assert!(low.findings.len() > high.findings.len(), "{:?} {:?}", codes(&low), codes(&high));
        for finding in low.findings.iter().chain(&high.findings) {
            assert!(finding.confidence().is_finite(), "{}", finding.code);
            assert!(finding.gain.is_none_or(|gain| gain.mid.is_finite()), "{}", finding.code);
        }
    }
}
