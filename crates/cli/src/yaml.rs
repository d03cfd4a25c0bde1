//! What every YAML file of the user has in common: how much of it is read, and how a mistake in its syntax is told.

use analysis::phrase;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// What people write fits on some pages; more is something else.
const LARGEST: u64 = 1 << 20;

/// The text of a file of settings or rules (`what`), or why there is none.
pub fn text(path: &Path, file: io::Result<File>, what: &str) -> Result<String, String> {
    let shown = path.display();
    let unreadable = |error: io::Error| format!("cannot read {shown}: {error}");
    let mut text = String::new();
    file.map_err(unreadable)?.take(LARGEST + 1).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LARGEST {
        return Err(format!("{shown} is larger than {}: not a {what} file", phrase::bytes(LARGEST)));
    }
    Ok(text)
}

/// Nothing but comments.
pub fn is_blank(text: &str) -> bool {
    text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#') || line == "---")
}

pub fn options() -> serde_saphyr::Options {
    let mut options = serde_saphyr::Options::default();
    options.with_snippet = false;
    // Told by the readers, in our own words.
    options.duplicate_keys = serde_saphyr::options::DuplicateKeyPolicy::LastWins;
    if let Some(budget) = &mut options.budget {
        budget.max_nodes = 10_000;
        budget.max_events = 100_000;
    }
    options
}

/// Where the syntax is wrong and how, in one line, with what would be right.
pub fn syntax(path: &Path, error: &serde_saphyr::Error, right: &str) -> String {
    let error = error.without_snippet();
    let text = error.to_string();
    // The message ends with the place, which stands in front already.
    let text = text.split(" at line ").next().unwrap_or(&text).lines().next().unwrap_or_default();
    let text = if text.contains("recursive") { "an alias refers to itself" } else { text };
    let line = error.location().map(|location| format!(":{}", location.line())).unwrap_or_default();
    format!("{}{line}: {text}; {right}", path.display())
}

#[cfg(test)]
mod tests;
