//! docs/rules.md and docs/rules/ are made from the rules, and are current; every rule documents itself in the same way.

use diagnosis::rules::{FAMILIES, RULES, pages};
use std::path::Path;

const HINT: &str = "run `cargo run -p inferscope-diagnosis --example rules_page`";

#[test]
fn the_pages_are_current() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = pages();
    for (path, text) in &pages {
        let written = std::fs::read_to_string(docs.join(path)).unwrap_or_default();
        assert!(written == *text, "docs/{path} is not what the rules say: {HINT}");
    }
    for entry in std::fs::read_dir(docs.join("rules")).unwrap() {
        let name = format!("rules/{}", entry.unwrap().file_name().to_string_lossy());
        assert!(pages.iter().any(|(path, _)| *path == name), "docs/{name} belongs to no family");
    }
}

#[test]
fn a_family_is_a_folder_of_rules_and_lists_them_all() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules");
    let folders = std::fs::read_dir(&folder).unwrap().filter(|entry| entry.as_ref().unwrap().path().is_dir()).count();
    assert_eq!(folders, FAMILIES.len());
    for family in &FAMILIES {
        let files = std::fs::read_dir(folder.join(family.name)).unwrap().map(|entry| entry.unwrap().path());
        let rules = files.filter(|path| path.is_file() && !path.ends_with("mod.rs")).count();
        assert_eq!(rules, family.rules.len(), "{}", family.name);
        assert!(family.summary.ends_with('.') && !family.title.ends_with('.'), "{}", family.name);
    }
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
