//! docs/rules.md is made from the rules, and is current; every rule documents itself in the same way.

use diagnosis::rules::{RULES, page};

#[test]
fn the_page_is_current() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rules.md");
    let written = std::fs::read_to_string(file).unwrap_or_default();
    let hint = "run `cargo run -p inferscope-diagnosis --example rules_page > docs/rules.md`";
    assert!(written == page(), "docs/rules.md is not what the rules say: {hint}");
}

#[test]
fn every_rule_says_what_it_finds_and_needs() {
    for rule in RULES {
        let (code, docs) = (rule.code(), rule.docs());
        for text in [docs.summary, docs.why, docs.needs] {
            assert!(text.ends_with('.') && !text.contains("  "), "{code}: {text}");
        }
        assert!(!docs.example.is_empty(), "{code}");
    }
}
