//! Reads the user's rules, and what they change of ours: `.inferscope_rules.yaml` in this folder or the nearest above, or the file that `--rules` names.
//! What is wrong with them is said with file, line and the nearest known name; a hostile file costs little.

mod ours;
mod tree;

use crate::config::Settings;
use crate::failure::Failure;
use crate::found_file;
use crate::yaml;
use analysis::spelling::nearest_of;
use diagnosis::expression::Condition;
use diagnosis::user_rules::UserRule;
use diagnosis::{RuleSettings, Severity, rules::RULES};
use serde_saphyr::Spanned;
use std::path::Path;
use tree::{Map, Tree};

pub const NAME: &str = ".inferscope_rules.yaml";
const TOP: &str = "bottleneck_rules";
const KEYS: [&str; 5] = ["name", "condition", "suggestion", "confidence_weight", "severity"];
const MOST_RULES: usize = 500;
const LONGEST_NAME: usize = 64;
const LONGEST_TEXT: usize = 1000;
const HIGHEST_WEIGHT: f64 = 10.0;

/// What a file of rules says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RuleFile {
    pub own: Vec<UserRule>,
    /// What it changes of our rules.
    pub ours: RuleSettings,
}

/// The rules of the named file, or of the nearest one; none where there is no file.
pub fn load(settings: &Settings, given: Option<&Path>) -> Result<RuleFile, Failure> {
    if let Some(path) = given {
        return read(path);
    }
    let Ok(folder) = std::env::current_dir() else { return Ok(RuleFile::default()) };
    let search = found_file::search(&folder, NAME);
    search.passed_over.iter().for_each(|why| settings.say(why));
    search.found.map_or(Ok(RuleFile::default()), |(path, file)| without_faults(&path, check_opened(&path, file)?))
}

/// The rules of a file; of several faults the first is told.
pub fn read(path: &Path) -> Result<RuleFile, Failure> {
    without_faults(path, check(path)?)
}

fn without_faults(path: &Path, checked: Result<RuleFile, Vec<String>>) -> Result<RuleFile, Failure> {
    checked.map_err(|faults| {
        let first = faults.first().map_or("", String::as_str);
        match faults.len() - 1 {
            0 => Failure::bad_input(first),
            more => Failure::bad_input(format_args!(
                "{first} (and {more} more: `inferscope rules check {}` shows all)",
                path.display()
            )),
        }
    })
}

/// The rules of a file, or everything that is wrong with it, in the order of its lines.
pub fn check(path: &Path) -> Result<Result<RuleFile, Vec<String>>, Failure> {
    check_opened(path, std::fs::File::open(path))
}

fn check_opened(path: &Path, file: std::io::Result<std::fs::File>) -> Result<Result<RuleFile, Vec<String>>, Failure> {
    let text = yaml::text(path, file, "rules").map_err(Failure::bad_input)?;
    Ok(parse(path, &text))
}

fn parse(path: &Path, text: &str) -> Result<RuleFile, Vec<String>> {
    if yaml::is_blank(text) {
        return Ok(RuleFile::default());
    }
    let mut options = yaml::options();
    if let Some(budget) = &mut options.budget {
        budget.max_depth = 16;
    }
    let mut file = File { path, faults: Vec::new(), names: Vec::new() };
    let rules = match serde_saphyr::from_str_with_options::<Spanned<Tree>>(text, options) {
        Ok(tree) => file.rules(&tree),
        Err(error) => {
            file.syntax(&error);
            RuleFile::default()
        }
    };
    if file.faults.is_empty() {
        return Ok(rules);
    }
    file.faults.sort_by_key(|fault| fault.0);
    Err(file.faults.into_iter().map(|fault| fault.1).collect())
}

fn line<T>(at: &Spanned<T>) -> u64 {
    at.referenced.line()
}

/// A file that is read to its end, whatever is wrong in it. What has a fault is None.
struct File<'a> {
    path: &'a Path,
    /// By line.
    faults: Vec<(u64, String)>,
    /// The rules so far, those with faults too, and where they are.
    names: Vec<(String, String)>,
}

impl File<'_> {
    fn fault<T>(&mut self, line: u64, why: impl std::fmt::Display) -> Option<T> {
        self.faults.push((line, format!("{}:{line}: {why}", self.path.display())));
        None
    }

    /// YAML that is none is not read further.
    fn syntax(&mut self, error: &serde_saphyr::Error) {
        let said = yaml::syntax(self.path, error, "see docs/user-rules.md for the format");
        self.faults.push((0, said));
    }

    fn rules(&mut self, tree: &Spanned<Tree>) -> RuleFile {
        let Tree::Map(top) = &tree.value else {
            self.fault::<()>(line(tree), format_args!("the file begins with `{TOP}:` or `{}:`", ours::TOP));
            return RuleFile::default();
        };
        self.keys(top, &[TOP, ours::TOP]);
        let find = |name: &str| top.iter().find(|(key, _)| key.value == name).map(|(_, value)| value);
        let ours = find(ours::TOP).map(|value| self.ours(value)).unwrap_or_default();
        RuleFile { own: self.own(tree, find(TOP)), ours }
    }

    fn own(&mut self, tree: &Spanned<Tree>, rules: Option<&Spanned<Tree>>) -> Vec<UserRule> {
        let rules = match rules {
            Some(Spanned { value: Tree::List(rules), .. }) => rules,
            Some(Spanned { value: Tree::Nothing, .. }) | None => return Vec::new(),
            Some(other) => {
                let why = format!("{TOP} must be a list of rules, not {}", other.value.kind());
                self.fault::<()>(line(other), why);
                return Vec::new();
            }
        };
        if rules.len() > MOST_RULES {
            self.fault::<()>(line(tree), format_args!("{} rules; {MOST_RULES} are the most", rules.len()));
            return Vec::new();
        }
        rules.iter().filter_map(|rule| self.rule(rule)).collect()
    }

    /// Every key is known and there once.
    fn keys(&mut self, map: &Map, known: &[&str]) {
        for (place, (key, _)) in map.iter().enumerate() {
            if !known.contains(&key.value.as_str()) {
                let near = nearest_of(&key.value, known.iter().copied());
                let hint =
                    near.map_or(format!("known are {}", known.join(", ")), |near| format!("did you mean {near}?"));
                self.fault::<()>(line(key), format_args!("there is no key {}: {hint}", plain(&key.value)));
            } else if map[..place].iter().any(|(before, _)| before.value == key.value) {
                self.fault::<()>(line(key), format_args!("{} is set twice", key.value));
            }
        }
    }

    fn rule(&mut self, rule: &Spanned<Tree>) -> Option<UserRule> {
        let Tree::Map(map) = &rule.value else {
            let why = format!("a rule has name, condition and suggestion; this is {}", rule.value.kind());
            return self.fault(line(rule), why);
        };
        self.keys(map, &KEYS);
        let origin = format!("{}:{}", self.path.display(), line(rule));
        let find = |key: &str| map.iter().find(|(name, _)| name.value == key).map(|(_, value)| value);
        let mut needed =
            |key: &str| find(key).or_else(|| self.fault(line(rule), format_args!("the rule has no {key}")));
        let (name, condition, advice) = (needed("name"), needed("condition"), needed("suggestion"));
        let name = name.and_then(|value| self.name(value, &origin));
        let condition = condition.and_then(|value| self.condition(value));
        let suggestions = advice.and_then(|value| self.suggestions(value));
        let confidence_weight = find("confidence_weight").map_or(Some(1.0), |value| self.weight(value));
        let severity = find("severity").map_or(Some(Severity::Medium), |value| self.severity(value));
        let (text, condition) = condition?;
        let (name, suggestions) = (name?, suggestions?);
        let (severity, confidence_weight) = (severity?, confidence_weight?);
        Some(UserRule { name, text, condition, suggestions, severity, confidence_weight, origin })
    }

    fn text(&mut self, key: &str, value: &Spanned<Tree>) -> Option<String> {
        match &value.value {
            Tree::Text(text) if text.trim().is_empty() => self.fault(line(value), format_args!("{key} is empty")),
            Tree::Text(text) if text.chars().count() <= LONGEST_TEXT => Some(text.trim().to_owned()),
            Tree::Text(_) => self.fault(line(value), format_args!("{key} is longer than {LONGEST_TEXT} letters")),
            other => self.fault(line(value), format_args!("{key} must be text, not {}", other.kind())),
        }
    }

    fn name(&mut self, value: &Spanned<Tree>, origin: &str) -> Option<String> {
        let name = self.text("name", value)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.len() > LONGEST_NAME || !name.chars().all(fits) {
            let why = format!("name {} must be letters, digits, _ and -, at most {LONGEST_NAME}", plain(&name));
            return self.fault(line(value), why);
        }
        if let Some((_, same)) = self.names.iter().find(|(before, _)| *before == name) {
            let why = format!("the name {name} is taken already, at {same}");
            return self.fault(line(value), why);
        }
        if RULES.iter().any(|rule| rule.code() == name.as_str()) {
            return self.fault(line(value), format_args!("the name {name} is that of one of our own rules"));
        }
        self.names.push((name.clone(), origin.to_owned()));
        Some(name)
    }

    /// Read up to the first thing that is wrong in it.
    fn condition(&mut self, value: &Spanned<Tree>) -> Option<(String, Condition)> {
        let text = self.text("condition", value)?;
        match Condition::parse(&text) {
            Ok(condition) => Some((text, condition)),
            Err(wrong) => self.fault(line(value), format_args!("condition, letter {}: {}", wrong.at, wrong.why)),
        }
    }

    fn suggestions(&mut self, value: &Spanned<Tree>) -> Option<Vec<String>> {
        match &value.value {
            Tree::List(all) if !all.is_empty() => {
                let texts: Vec<Option<String>> = all.iter().map(|one| self.text("suggestion", one)).collect();
                texts.into_iter().collect()
            }
            _ => Some(vec![self.text("suggestion", value)?]),
        }
    }

    fn weight(&mut self, value: &Spanned<Tree>) -> Option<f64> {
        match &value.value {
            Tree::Number(weight) if *weight > 0.0 && *weight <= HIGHEST_WEIGHT => Some(*weight),
            other => {
                let must = format!("confidence_weight must be a number above 0, at most {HIGHEST_WEIGHT}");
                self.fault(line(value), format_args!("{must}, not {}", other.kind()))
            }
        }
    }

    fn severity(&mut self, value: &Spanned<Tree>) -> Option<Severity> {
        let all = [Severity::Info, Severity::Low, Severity::Medium, Severity::High];
        let word = self.text("severity", value)?;
        let found = all.into_iter().find(|severity| severity.name() == word);
        found.or_else(|| {
            self.fault(line(value), format_args!("severity {} must be info, low, medium or high", plain(&word)))
        })
    }
}

/// A word of the file that is safe to show.
fn plain(word: &str) -> String {
    word.chars().take(60).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests;
