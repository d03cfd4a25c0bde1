//! Gains and confidences come from recordings. A number that is typed into a rule instead is found here, in the rules' own text.

use std::path::PathBuf;

/// Every rule's file up to its tests, by name.
fn rules() -> Vec<(String, String)> {
    let inside = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let families = inside(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/rules")).filter(|path| path.is_dir());
    let files = families.flat_map(inside).filter(|file| file.extension().is_some_and(|ending| ending == "rs"));
    let read = |file: PathBuf| {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or("").to_owned();
        (file.file_name().unwrap().to_string_lossy().into_owned(), code)
    };
    files.map(read).collect()
}

/// Numbers with a point in a piece of code.
fn numbers(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.' && letter != '_');
    words.filter(|word| word.starts_with(|letter: char| letter.is_ascii_digit()) && word.contains('.'))
}

#[test]
fn confidences_are_computed() {
    let mut seen = 0;
    for (file, code) in rules() {
        for line in code.lines().filter_map(|line| line.trim().strip_prefix("certainty: Certainty::seen(")) {
            seen += 1;
            // What was counted or measured is certain, and its line says so. Halves are those of a level and of a majority, one and two are Laplace's.
            let bare = line.starts_with("1.0),") && !line.starts_with("1.0), // ");
            let typed = numbers(line).find(|number| !["1.0", "2.0", "0.5"].contains(number));
            assert!(!bare && typed.is_none(), "{file}: certainty: {line}");
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn what_is_left_is_all_nothing_or_computed() {
    let mut seen = 0;
    for (file, code) in rules() {
        for left in code.split("Left {").skip(1).filter_map(|rest| rest.split('}').next()) {
            seen += 1;
            let typed = numbers(left).find(|number| !["0.0", "1.0"].contains(number));
            assert_eq!(typed, None, "{file}: Left {{{left}}}");
        }
        // Halves and thirds of a gain are no bounds of it.
        let literals = code.match_indices("Gain {").filter(|(at, _)| !code[..*at].ends_with("-> "));
        for gain in literals.filter_map(|(at, _)| code[at + "Gain {".len()..].split('}').next()) {
            let typed = numbers(gain).find(|number| !["0.0", "100.0"].contains(number));
            assert_eq!(typed, None, "{file}: Gain {{{gain}}}");
        }
    }
    assert!(seen > 5, "{seen}");
}
