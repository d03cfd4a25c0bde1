//! What we say is written in plain words: no text in any crate or in the Python package and no page of the documentation has a phrase of
//! `diagnosis/tests/plain_words.txt`, and the help of every command reads as in tests/help.txt. To write that again: `WRITE_SNAPSHOTS=1 cargo test -p inferscope-cli --test all words`.

use crate::architecture::sources;
use crate::support::Place;
use std::path::{Path, PathBuf};

/// Reads the sentences of old traces as they were written then.
const OLD_SENTENCES: &str = "before_codes.rs";

#[test]
fn no_text_has_a_banned_phrase() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let banned = Banned::read();
    let mut texts = 0;
    for entry in std::fs::read_dir(&crates).unwrap() {
        let crate_folder = entry.unwrap().path();
        let mut files = Vec::new();
        sources(&crate_folder.join("src"), "", &mut files);
        for (file, code) in files.iter().filter(|(file, _)| file != OLD_SENTENCES) {
            for text in literals(code) {
                texts += 1;
                banned.refuse(&crate_folder.join(file), &text);
            }
        }
    }
    assert!(texts > 5_000, "{texts}");
}

#[test]
fn no_page_and_no_text_of_the_package_has_a_banned_phrase() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let banned = Banned::read();
    let (mut pages, mut modules) = (vec![root.join("README.md")], Vec::new());
    files(&root.join("docs"), "md", &mut pages);
    files(&root.join("python"), "py", &mut modules);
    // How things work inside is written for those who work on it.
    pages.retain(|page| !page.starts_with(root.join("docs/internals")));
    assert!(pages.len() > 25 && modules.len() > 25, "{} pages, {} modules", pages.len(), modules.len());
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        text.lines().for_each(|line| banned.refuse(&page, line));
    }
    for module in modules {
        let code = std::fs::read_to_string(&module).unwrap();
        let code: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        literals(&code.join("\n")).iter().for_each(|text| banned.refuse(&module, text));
    }
}

struct Banned(Vec<String>);

impl Banned {
    fn read() -> Banned {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../diagnosis/tests/plain_words.txt");
        let text = std::fs::read_to_string(path).unwrap();
        Banned(text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect())
    }

    fn refuse(&self, file: &Path, text: &str) {
        let found = self.0.iter().find(|phrase| text.contains(phrase.as_str()));
        assert!(found.is_none(), "\"{}\" in {}: {text}", found.unwrap(), file.display());
    }
}

fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|own| own == ending) {
            found.push(path);
        }
    }
}

/// The texts between quotes, lines that go on in the next joined as the compiler does.
fn literals(code: &str) -> Vec<String> {
    let (mut found, mut letters) = (Vec::new(), code.chars().peekable());
    let mut before = ' ';
    while let Some(letter) = letters.next() {
        match letter {
            '/' if letters.peek() == Some(&'/') => {
                letters.by_ref().find(|letter| *letter == '\n');
            }
            // A quote as a letter: b'"' or '\"'.
            '\'' => {
                let rest: String = letters.clone().take(3).collect();
                let length = if rest.starts_with('\\') { 3 } else { 2 };
                if rest.chars().nth(length - 1) == Some('\'') {
                    letters.by_ref().take(length).for_each(drop);
                }
            }
            '"' if before == 'r' => found.push(letters.by_ref().take_while(|letter| *letter != '"').collect()),
            '#' if before == 'r' && letters.peek() == Some(&'"') => {
                letters.next();
                let mut text = String::new();
                while let Some(letter) = letters.next().filter(|letter| *letter != '"' || letters.peek() != Some(&'#'))
                {
                    text.push(letter);
                }
                found.push(text);
            }
            '"' => {
                let mut text = String::new();
                while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
                    match (letter, letters.peek()) {
                        ('\\', Some('\n')) => while letters.next_if(|next| next.is_whitespace()).is_some() {},
                        ('\\', _) => {
                            text.extend(letters.next().map(|escaped| if escaped == 'n' { '\n' } else { escaped }))
                        }
                        _ => text.push(letter),
                    }
                }
                found.push(text);
            }
            _ => {}
        }
        before = letter;
    }
    found
}

#[test]
fn texts_are_found_between_quotes() {
    let code =
        "let a = \"one\\\n   two\"; // \"no\"\nlet b = ['\"', '\\''];\nlet c: &'static str = r#\"a \"b\"#; \"d\\\"e\"";
    assert_eq!(literals(code), ["onetwo", "a \"b", "d\"e"]);
}

#[test]
fn the_help_of_every_command_reads_as_it_did() {
    let place = Place::new("help");
    let mut all = String::new();
    help(&place, &[], &mut all);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help.txt");
    if std::env::var_os("WRITE_SNAPSHOTS").is_some() {
        std::fs::write(&path, &all).unwrap();
    }
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = before.lines().zip(all.lines()).find(|(before, now)| before != now);
    assert!(
        before == all,
        "tests/help.txt has changed: {differs:?}\nif that is right: WRITE_SNAPSHOTS=1 cargo test -p inferscope-cli --test all words"
    );
}

/// The help of a command and of those below it, as it lists them.
fn help(place: &Place, command: &[&str], all: &mut String) {
    let told = place.run([command, &["--help"]].concat()).fine().out;
    *all += &format!("$ inferscope {}\n{told}\n", [command, &["--help"]].concat().join(" "));
    let listed = told.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for name in listed.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        help(place, &[command, &[name]].concat(), all);
    }
}
