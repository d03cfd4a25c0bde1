//! Reads the user's rules: `.inferscope_rules.yaml` in this folder or the nearest above, or the file that `--rules` names.
//! What is wrong with them is said with file, line and the nearest known name; a hostile file costs little.

mod tree;

use crate::failure::Failure;
use analysis::expression::Condition;
use analysis::named::nearest_of;
use analysis::user_rules::UserRule;
use analysis::{Severity, rules::RULES};
use serde_saphyr::Spanned;
use std::io::Read;
use std::path::Path;
use tree::{Map, Tree};

pub const NAME: &str = ".inferscope_rules.yaml";
const TOP: &str = "bottleneck_rules";
const KEYS: [&str; 5] = ["name", "condition", "suggestion", "confidence_weight", "severity"];
/// Rules fit on some pages; more is something else.
const LARGEST: u64 = 1 << 20;
const MOST_RULES: usize = 500;
const LONGEST_NAME: usize = 64;
const LONGEST_TEXT: usize = 1000;
const HIGHEST_WEIGHT: f64 = 10.0;

/// The rules of the named file, or of the nearest one; none where there is no file.
pub fn load(given: Option<&Path>) -> Result<Vec<UserRule>, Failure> {
    if let Some(path) = given {
        return read(path);
    }
    let Ok(folder) = std::env::current_dir() else { return Ok(Vec::new()) };
    let found = folder.ancestors().map(|folder| folder.join(NAME)).find(|path| path.exists());
    found.map_or(Ok(Vec::new()), |path| read(&path))
}

pub fn read(path: &Path) -> Result<Vec<UserRule>, Failure> {
    let shown = path.display();
    let unreadable = |error: std::io::Error| Failure::bad_input(format!("cannot read {shown}: {error}"));
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LARGEST {
        return Err(Failure::bad_input(format!("{shown} is larger than 1 MB: it cannot be rules")));
    }
    parse(path, &text).map_err(Failure::bad_input)
}

fn parse(path: &Path, text: &str) -> Result<Vec<UserRule>, String> {
    let blank = text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#') || line == "---");
    if blank {
        return Ok(Vec::new());
    }
    let mut options = serde_saphyr::Options::default();
    options.with_snippet = false;
    // Told below, in our own words.
    options.duplicate_keys = serde_saphyr::options::DuplicateKeyPolicy::LastWins;
    if let Some(budget) = &mut options.budget {
        budget.max_nodes = 10_000;
        budget.max_events = 100_000;
        budget.max_depth = 16;
    }
    let file = File { path };
    let tree =
        serde_saphyr::from_str_with_options::<Spanned<Tree>>(text, options).map_err(|error| file.syntax(&error))?;
    let Tree::Map(top) = &tree.value else {
        return Err(file.at(line(&tree), format!("the file begins with `{TOP}:`")));
    };
    file.keys(top, &[TOP])?;
    let rules = match top.first().map(|(_, value)| value) {
        Some(Spanned { value: Tree::List(rules), .. }) => rules,
        Some(Spanned { value: Tree::Nothing, .. }) | None => return Ok(Vec::new()),
        Some(other) => {
            return Err(file.at(line(other), format!("{TOP} must be a list of rules, not {}", other.value.kind())));
        }
    };
    if rules.len() > MOST_RULES {
        return Err(file.at(line(&tree), format!("{} rules; {MOST_RULES} are the most", rules.len())));
    }
    let mut read: Vec<UserRule> = Vec::new();
    for rule in rules {
        let rule = file.rule(rule, &read)?;
        read.push(rule);
    }
    Ok(read)
}

fn line<T>(at: &Spanned<T>) -> u64 {
    at.referenced.line()
}

struct File<'a> {
    path: &'a Path,
}

impl File<'_> {
    fn at(&self, line: u64, why: impl std::fmt::Display) -> String {
        format!("{}:{line}: {why}", self.path.display())
    }

    fn syntax(&self, error: &serde_saphyr::Error) -> String {
        let error = error.without_snippet();
        let text = error.to_string();
        // The message ends with the place, which stands in front already.
        let text = text.split(" at line ").next().unwrap_or(&text).lines().next().unwrap_or_default().to_owned();
        let line = error.location().map(|location| format!(":{}", location.line())).unwrap_or_default();
        format!("{}{line}: {text}; rules are written as in docs/user-rules.md", self.path.display())
    }

    /// Every key is known and there once.
    fn keys(&self, map: &Map, known: &[&str]) -> Result<(), String> {
        for (place, (key, _)) in map.iter().enumerate() {
            if !known.contains(&key.value.as_str()) {
                let near = nearest_of(&key.value, known.iter().copied());
                let hint =
                    near.map_or(format!("known are {}", known.join(", ")), |near| format!("did you mean {near}?"));
                return Err(self.at(line(key), format!("there is no key {}: {hint}", plain(&key.value))));
            }
            if map[..place].iter().any(|(before, _)| before.value == key.value) {
                return Err(self.at(line(key), format!("{} is set twice", key.value)));
            }
        }
        Ok(())
    }

    fn rule(&self, rule: &Spanned<Tree>, before: &[UserRule]) -> Result<UserRule, String> {
        let Tree::Map(map) = &rule.value else {
            return Err(self
                .at(line(rule), format!("a rule has name, condition and suggestion; this is {}", rule.value.kind())));
        };
        self.keys(map, &KEYS)?;
        let find = |key: &str| map.iter().find(|(name, _)| name.value == key).map(|(_, value)| value);
        let needed = |key: &str| find(key).ok_or_else(|| self.at(line(rule), format!("the rule has no {key}")));
        let name = self.name(needed("name")?, before)?;
        let written = needed("condition")?;
        let text = self.text("condition", written)?;
        let condition = Condition::parse(&text)
            .map_err(|wrong| self.at(line(written), format!("condition, letter {}: {}", wrong.at, wrong.why)))?;
        let advice = needed("suggestion")?;
        let suggestions = match &advice.value {
            Tree::List(all) if !all.is_empty() => {
                all.iter().map(|one| self.text("suggestion", one)).collect::<Result<_, _>>()?
            }
            _ => vec![self.text("suggestion", advice)?],
        };
        let confidence_weight = match find("confidence_weight") {
            None => 1.0,
            Some(Spanned { value: Tree::Number(weight), .. }) if *weight > 0.0 && *weight <= HIGHEST_WEIGHT => *weight,
            Some(other) => {
                let why = format!(
                    "confidence_weight must be a number above 0, at most {HIGHEST_WEIGHT}, not {}",
                    other.value.kind()
                );
                return Err(self.at(line(other), why));
            }
        };
        let severity = find("severity").map_or(Ok(Severity::Medium), |value| self.severity(value))?;
        let origin = format!("{}:{}", self.path.display(), line(rule));
        Ok(UserRule { name, text, condition, suggestions, severity, confidence_weight, origin })
    }

    fn text(&self, key: &str, value: &Spanned<Tree>) -> Result<String, String> {
        match &value.value {
            Tree::Text(text) if !text.trim().is_empty() && text.chars().count() <= LONGEST_TEXT => {
                Ok(text.trim().to_owned())
            }
            Tree::Text(text) if text.trim().is_empty() => Err(self.at(line(value), format!("{key} is empty"))),
            Tree::Text(_) => Err(self.at(line(value), format!("{key} is longer than {LONGEST_TEXT} letters"))),
            other => Err(self.at(line(value), format!("{key} must be text, not {}", other.kind()))),
        }
    }

    fn name(&self, value: &Spanned<Tree>, before: &[UserRule]) -> Result<String, String> {
        let name = self.text("name", value)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.len() > LONGEST_NAME || !name.chars().all(fits) {
            let why = format!("name {} must be letters, digits, _ and -, at most {LONGEST_NAME}", plain(&name));
            return Err(self.at(line(value), why));
        }
        if let Some(same) = before.iter().find(|rule| rule.name == name) {
            return Err(self.at(line(value), format!("the name {name} is taken already, at {}", same.origin)));
        }
        if RULES.iter().any(|rule| rule.code() == name) {
            return Err(self.at(line(value), format!("the name {name} is that of one of our own rules")));
        }
        Ok(name)
    }

    fn severity(&self, value: &Spanned<Tree>) -> Result<Severity, String> {
        let all = [Severity::Info, Severity::Low, Severity::Medium, Severity::High];
        let word = self.text("severity", value)?;
        all.into_iter()
            .find(|severity| severity.name() == word)
            .ok_or_else(|| self.at(line(value), format!("severity {} must be info, low, medium or high", plain(&word))))
    }
}

/// A word of the file that is safe to show.
fn plain(word: &str) -> String {
    word.chars().take(60).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;
