//! What is written from the table: the documentation's table, and in the Python package the arguments of `start()` and the words
//! for yes and no. They stand in files that people write, between texts that are looked for here.

use super::choices::{NO, YES};
use super::{Accepts, Commands, Flags, Group, Recording, Setting, all};

/// How to write them anew.
pub const COMMAND: &str = "cargo run -p inferscope-trace --example settings_pages";

/// A file and what its text has to be.
pub struct Page {
    /// From the root of the repository.
    pub path: &'static str,
    /// The text with everything in it that is made from the table; None where its place is not there.
    pub written: fn(&str) -> Option<String>,
}

pub const PAGES: [Page; 3] = [
    Page { path: "docs/recording.md", written: documentation },
    Page { path: "python/inferscope/_recording.py", written: arguments },
    Page { path: "python/inferscope/_settings.py", written: truth },
];

fn documentation(text: &str) -> Option<String> {
    between(text, "<!-- settings: made from the table of settings -->\n", "<!-- settings: end -->\n", &table())
}

fn arguments(text: &str) -> Option<String> {
    let options: String = options().map(parameter).collect();
    let text = between(text, "    *,\n", ") -> bool:\n    \"\"\"Starts recording", &options)?;
    let output = Recording::ROWS.iter().filter(|row| row.field == "output");
    let told: String = output.chain(self::options()).map(description).collect();
    between(&text, "        print(inferscope.report_path())\n\n", "    \"\"\"\n", &told)
}

fn truth(text: &str) -> Option<String> {
    let list = |words: [&str; 4]| format!("({})", words.map(|word| format!("\"{word}\"")).join(", "));
    between(&between(text, "\n_YES = ", "\n", &list(YES))?, "\n_NO = ", "\n", &list(NO))
}

/// The rows that are keyword arguments of `start()`: those with a value of their own. `output` comes before them, by place.
fn options() -> impl Iterator<Item = &'static Setting> {
    let is_option = |row: &&Setting| matches!(row.flags, Flags::Value { .. }) && row.field != "output";
    Recording::ROWS.iter().filter(is_option)
}

/// The text with something else between the first place of `begin` and the place of `end` that follows.
fn between(text: &str, begin: &str, end: &str, new: &str) -> Option<String> {
    let start = text.find(begin)? + begin.len();
    let stop = start + text[start..].find(end)?;
    Some(format!("{}{new}{}", &text[..start], &text[stop..]))
}

fn table() -> String {
    let mut lines = "\n| key | flag | default | what it sets |\n|---|---|---|---|\n".to_owned();
    for row in all() {
        let flags = match row.flags {
            Flags::None => format!("only `{}`", row.variable()),
            Flags::Value { long, value, .. } => match row.accepts {
                Accepts::Truth if row.default_words().as_deref() == Some("true") => format!("`{long}=false`"),
                Accepts::Truth => format!("`{long}`"),
                Accepts::Calls => format!("`{long}`, `{long}={value}`"),
                _ => format!("`{long} {value}`"),
            },
            Flags::Words(words) => words.iter().map(|word| format!("`{}`", word.long)).collect::<Vec<_>>().join(", "),
        };
        let default = row.default_words().unwrap_or_default();
        let what = sentence(row).replace('|', "\\|");
        lines += &format!("| `{}` | {flags} | {default} | {what} |\n", row.key);
    }
    lines + "\n"
}

/// Its help, and what there is to say besides.
fn sentence(row: &Setting) -> String {
    let help = row.help();
    if row.detail.is_empty() { help } else { format!("{help}. {}", row.detail) }
}

fn parameter(row: &Setting) -> String {
    debug_assert!(row.commands == Commands::Recording);
    let kind = match row.accepts {
        Accepts::Whole { .. } => "int | None",
        Accepts::Number { .. } => "float | None",
        Accepts::Truth => "bool | None",
        Accepts::Calls => "bool | str | None",
        Accepts::Budget => "float | str | None",
        Accepts::GpuDetail | Accepts::OneOf(_) => "str | None",
        Accepts::List => "\"Sequence[str] | None\"",
        Accepts::Folder => "\"str | os.PathLike[str] | None\"",
    };
    format!("    {}: {kind} = None,\n", row.field)
}

/// `:param rate_hz: ...`, in lines of at most 120 letters.
fn description(row: &Setting) -> String {
    let default = row.default_is.map(|words| format!(" (default: {words})")).unwrap_or_default();
    let text = format!(":param {}: {}{default}", row.field, sentence(row).replace('`', "``"));
    let mut lines = vec!["   ".to_owned()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.chars().count() + 1 + word.chars().count() > 120 {
            lines.push(format!("        {word}"));
        } else {
            *line += " ";
            *line += word;
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_around_is_left_as_it_is() {
        assert_eq!(between("a<b>c<b>", "<", ">", "x").as_deref(), Some("a<x>c<b>"));
        assert_eq!([between("a<b", "<", ">", "x"), between("a>b<", "<", ">", "x")], [None, None]);
    }

    #[test]
    fn every_key_has_a_row_and_every_option_a_line() {
        let table = table();
        for row in all() {
            assert_eq!(table.matches(&format!("\n| `{}` |", row.key)).count(), 1, "{}", row.key);
        }
        for row in options() {
            assert!(description(row).lines().all(|line| line.chars().count() <= 120), "{}", row.field);
        }
    }
}
