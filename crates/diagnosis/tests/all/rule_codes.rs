//! A rule's code is spelled in the rule's own file and nowhere else in the sources, and no two rules share one.

use diagnosis::rules::RULES;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Words of the language of `inferscope whatif` that happen to be called like a rule.
const WHATIF: [(&str, &str); 1] = [("replay/src/expression.rs", "sync-api")];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match path.is_dir() {
            true if name != "tests" => sources(&path, found),
            false if name.ends_with(".rs") && name != "tests.rs" => found.push(path),
            _ => {}
        }
    }
}

/// Texts in a file's code: without comments, documentation and tests.
fn literals(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]").next().unwrap_or("");
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| line.split('"').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn codes_are_spelled_by_their_rules_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&crates).unwrap() {
        let folder = entry.unwrap().path().join("src");
        if folder.is_dir() {
            sources(&folder, &mut files);
        }
    }
    let mut seen = vec![0; RULES.len()];
    for file in files {
        let name = file.strip_prefix(&crates).unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let literals = literals(&text);
        for (rule, seen) in RULES.iter().zip(&mut seen) {
            let code = rule.code().as_str();
            let own = text.contains(&format!("pub const CODE: RuleCode = RuleCode::new(\"{code}\");"));
            *seen += usize::from(own);
            // In a sentence, too: as it stands in the documentation of another rule. One word may be just a word.
            let quoted = format!("`{code}`");
            let inside = |text: &String| {
                let mut words = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
                let word = code.contains('-') && WHATIF.iter().all(|(_, word)| *word != code);
                text.contains(&quoted) || word && words.any(|word| word == code)
            };
            let spelled = literals.iter().any(|text| text == code || inside(text));
            let spelled = spelled && !WHATIF.contains(&(name.as_str(), code));
            assert!(own || !spelled, "{name} spells {code}: use that rule's CODE");
        }
    }
    for (rule, seen) in RULES.iter().zip(seen) {
        assert_eq!(seen, 1, "{} is to be a CODE in one file", rule.code());
    }
}

#[test]
fn codes_are_kebab_case_and_used_once() {
    let mut codes = BTreeSet::new();
    for code in RULES.iter().map(|rule| rule.code()) {
        assert!(codes.insert(code), "{code} twice");
        let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
        assert!(code.as_str().chars().all(fits), "{code} is not kebab case");
    }
}

#[test]
fn a_rule_explains_others_and_not_itself() {
    for rule in RULES {
        for other in rule.explains() {
            assert!(*other != rule.code() && RULES.iter().any(|rule| rule.code() == *other), "{}", rule.code());
        }
    }
}
