//! Recorded names inside Markdown, as code: whoever reads the page, a name stays text and stays in its cell.

use crate::escape::visible;
use std::fmt::Write;

/// Longer names are cut; the exports have them whole.
const LONGEST: usize = 120;

/// A name as code. Good anywhere in a line, in a table too.
pub fn code(text: &str) -> String {
    let cut = match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    coded(&cut)
}

/// Where something is, as code: a long path keeps its end.
pub fn place(file: &str, line: u32) -> String {
    let at = if line > 0 { format!("{file}:{line}") } else { file.to_owned() };
    let excess = at.chars().count().saturating_sub(LONGEST);
    match at.char_indices().nth(excess) {
        _ if at.is_empty() => String::new(),
        Some((from, _)) if excess > 0 => coded(&format!("…{}", &at[from..])),
        _ => coded(&at),
    }
}

/// As [`place`], for a table: a library's file is known by what comes after the folder that all libraries are in.
pub fn short_place(file: &str, line: u32) -> String {
    let after = |part: &str| file.rfind(part).map(|at| &file[at + part.len()..]);
    let library = ["/site-packages/", "/dist-packages/"].into_iter().find_map(after);
    let standard = || {
        let (version, rest) = after("/lib/python3.")?.split_once('/')?;
        version.bytes().all(|byte| byte.is_ascii_digit()).then_some(rest)
    };
    let known = library.or_else(standard).filter(|file| !file.is_empty());
    place(known.unwrap_or(file), line)
}

/// What only Python gives a name in angle brackets. They are no elements of HTML, and read best as they are.
const PIECES: [&str; 11] = [
    "<module>",
    "<lambda>",
    "<listcomp>",
    "<dictcomp>",
    "<setcomp>",
    "<genexpr>",
    "<locals>",
    "<string>",
    "<stdin>",
    "<frozen ",
    "<built-in ",
];

/// A code span where one can hold the text whoever reads it; else an element with every letter that means something
/// written as its number.
pub(super) fn coded(text: &str) -> String {
    let text = visible(text);
    if text.is_empty() {
        return "*(empty name)*".into();
    }
    let bracket = |at: usize| PIECES.iter().any(|piece| text[at..].starts_with(piece));
    let brackets = text.match_indices('<').all(|(at, _)| bracket(at));
    if brackets && !text.contains(['`', '|']) && text.trim() == text {
        return format!("`{text}`");
    }
    let mut safe = String::from("<code>");
    for letter in text.chars() {
        match letter {
            // The comment keeps an address from being one: GitHub looks for them in what is left after escapes.
            '@' => safe += "&#64;<!-- -->",
            _ if letter.is_ascii_punctuation() => _ = write!(safe, "&#{};", u32::from(letter)),
            _ => safe.push(letter),
        }
    }
    safe + "</code>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_code_spans_where_those_can_hold_them() {
        assert_eq!(code("compile_pattern"), "`compile_pattern`");
        assert_eq!(code("Service.<locals>.<lambda>"), "`Service.<locals>.<lambda>`");
        assert_eq!(code("日本 *x* [y](z) @me"), "`日本 *x* [y](z) @me`");
        assert_eq!(code("line\none"), "`line\\none`");
        assert_eq!(code(""), "*(empty name)*");
        assert_eq!(code("a`b|c"), "<code>a&#96;b&#124;c</code>");
        assert_eq!(code("<script>"), "<code>&#60;script&#62;</code>");
        assert_eq!(code("`@a"), "<code>&#96;&#64;<!-- -->a</code>");
        assert_eq!(code(&"x".repeat(500)).chars().count(), LONGEST + 3);
    }

    #[test]
    fn places_keep_their_end() {
        assert_eq!((place("service.py", 44), place("a.so", 0)), ("`service.py:44`".into(), "`a.so`".into()));
        assert_eq!(place("", 0), "");
        let long = place(&format!("/{}/service.py", "é".repeat(500)), 7);
        assert!(long.starts_with("`…é") && long.ends_with("/service.py:7`") && long.chars().count() == 123, "{long}");
    }

    #[test]
    fn libraries_are_known_by_their_own_path() {
        let short = |file: &str| short_place(file, 3);
        assert_eq!(short("/opt/py/lib/python3.12/threading.py"), "`threading.py:3`");
        assert_eq!(short("/opt/py/lib/python3.12/site-packages/numpy/a.py"), "`numpy/a.py:3`");
        assert_eq!(short("/srv/lib/python3.x/a.py"), "`/srv/lib/python3.x/a.py:3`");
        assert_eq!(short("/srv/service.py"), "`/srv/service.py:3`");
    }
}
