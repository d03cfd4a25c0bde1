//! Recorded text inside Markdown. A name comes from the recorded program: it must not become a heading, a link, an image, a
//! mention of a person, an element of HTML or the end of a table cell. Whatever is not plainly a word is put into code.

use crate::escape::visible;
use std::fmt::Write;

/// Longer names and sentences are cut; the exports have them whole.
const LONGEST_NAME: usize = 120;
const LONGEST_SENTENCE: usize = 1000;

/// A name as code. Good anywhere in a line, in a table too.
pub fn code(text: &str) -> String {
    let cut = match text.char_indices().nth(LONGEST_NAME) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    };
    coded(&cut)
}

/// Where something is, as code: a long path keeps its end.
pub fn place(file: &str, line: u32) -> String {
    let at = if line > 0 { format!("{file}:{line}") } else { file.to_owned() };
    let excess = at.chars().count().saturating_sub(LONGEST_NAME);
    match at.char_indices().nth(excess) {
        _ if at.is_empty() => String::new(),
        Some((from, _)) if excess > 0 => coded(&format!("…{}", &at[from..])),
        _ => coded(&at),
    }
}

/// A sentence that may hold names. Good anywhere in a line, at its begin too.
pub fn prose(text: &str) -> String {
    let end = text.char_indices().nth(LONGEST_SENTENCE).map_or(text.len(), |(end, _)| end);
    let text = visible(&text[..end]) + if end < text.len() { "…" } else { "" };
    let mut safe = String::with_capacity(text.len() + 16);
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let word = &rest[..rest.find(char::is_whitespace).unwrap_or(rest.len())];
        let (word, said) = quoted(rest).unwrap_or_else(|| (word, inner_word(word)));
        match safe.is_empty() {
            true => safe += &not_a_list(said),
            false => _ = write!(safe, " {said}"),
        }
        rest = rest[word.len()..].trim_start();
    }
    safe
}

/// Our own sentences put what to type between backticks. The words at the begin of the text that are so, as code.
fn quoted(text: &str) -> Option<(&str, String)> {
    let opened = text.trim_start_matches(['(', '"']);
    let (inside, after) = opened.strip_prefix('`')?.split_once('`')?;
    let marks = &after[..after.find(char::is_whitespace).unwrap_or(after.len())];
    let before = &text[..text.len() - opened.len()];
    if inside.is_empty() || inside.trim() != inside || !marks.chars().all(|mark| ".,;:!?)\"".contains(mark)) {
        return None;
    }
    let length = text.len() - after.len() + marks.len();
    Some((&text[..length], format!("{before}{}{marks}", coded(inside))))
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
fn coded(text: &str) -> String {
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

/// Letters and the marks of a sentence: nothing that Markdown gives a meaning to inside a line.
fn tame(letter: char) -> bool {
    !letter.is_ascii() || letter.is_ascii_alphanumeric() || " .,;:!?%()\"'-+=/".contains(letter)
}

/// The first word of a line, so that it begins no list and does not underline a heading.
fn not_a_list(safe: String) -> String {
    let digits = safe.len() - safe.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    match safe[digits..].chars().next() {
        Some('+' | '-' | '=') if digits == 0 => format!("\\{safe}"),
        Some('.' | ')') if digits > 0 => format!("{}\\{}", &safe[..digits], &safe[digits..]),
        _ => safe,
    }
}

fn inner_word(word: &str) -> String {
    let (before, inside, after) = bare(word);
    if word.chars().all(tame) && !links(word) && !is_code(inside) {
        return word.to_owned();
    }
    if inside.is_empty() {
        return coded(word);
    }
    format!("{before}{}{after}", coded(inside))
}

/// A word without the marks of the sentence around it.
fn bare(word: &str) -> (&str, &str, &str) {
    let inside = word.trim_start_matches(['(', '"', '\'']);
    let before = &word[..word.len() - inside.len()];
    let mut end = inside.len();
    while let Some(last) = inside[..end].chars().next_back() {
        let closes = last == ')' && inside[..end].matches(')').count() > inside[..end].matches('(').count();
        if !closes && !".,;:!?\"'".contains(last) {
            break;
        }
        end -= last.len_utf8();
    }
    (before, &inside[..end], &inside[end..])
}

/// What a reader of Markdown, or GitHub, makes a link or a picture (`:heart:`) of although it has no marks.
fn links(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let issue = lower.split_once("gh-").is_some_and(|(_, number)| number.starts_with(|c: char| c.is_ascii_digit()));
    let hexadecimal = |run: &str| run.len() >= 7 && run.contains(|c: char| c.is_ascii_digit());
    let letter = |run: &str| run.contains(|c: char| c.is_ascii_alphabetic());
    let commit = lower.split(|c: char| !c.is_ascii_hexdigit()).any(|run| hexadecimal(run) && letter(run));
    issue || commit || lower.contains("://") || lower.contains("www.") || word.matches(':').count() > 1
}

/// Files, attributes, paths and flags read better as code; and what has a dot inside can be the name of a host.
fn is_code(word: &str) -> bool {
    let dotted = word.match_indices('.').any(|(at, _)| {
        let (before, mut after) = (word[..at].chars().next_back(), word[at + 1..].chars());
        before.is_some_and(|letter| letter != '.') && (0..2).all(|_| after.next().is_some_and(char::is_alphabetic))
    });
    let flag = word.starts_with("--") && word.len() > 2;
    flag || dotted || word.starts_with('/') && word.len() > 1
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
        assert_eq!(code(&"x".repeat(500)).chars().count(), LONGEST_NAME + 3);
    }

    #[test]
    fn places_keep_their_end() {
        assert_eq!((place("service.py", 44), place("a.so", 0)), ("`service.py:44`".into(), "`a.so`".into()));
        assert_eq!(place("", 0), "");
        let long = place(&format!("/{}/service.py", "é".repeat(500)), 7);
        assert!(long.starts_with("`…é") && long.ends_with("/service.py:7`") && long.chars().count() == 123, "{long}");
    }

    #[test]
    fn sentences_stay_sentences() {
        let plain = "A request takes 40.0 ms (p50 of 160; p99 41 ms); 50 % of it \"waits\", 3/4 doesn't.";
        assert_eq!(prose(plain), plain);
        assert_eq!(prose("in compile_pattern (service.py:44)."), "in `compile_pattern` (`service.py:44`).");
        assert_eq!(
            prose("Set torch.set_num_threads(4), or --rate 5:"),
            "Set `torch.set_num_threads(4)`, or `--rate` 5:"
        );
        assert_eq!(prose("e.g. gc.freeze(), after 40.5 ms."), "e.g. `gc.freeze()`, after 40.5 ms.");
        assert_eq!(prose("forward (service.py:80): 3 samples"), "forward (`service.py:80`): 3 samples");
        assert_eq!(prose("use (`inferscope run`), then `a`."), "use (`inferscope run`), then `a`.");
        assert_eq!(prose("cat /proc/self/status of <module>"), "cat `/proc/self/status` of `<module>`");
    }

    #[test]
    fn nothing_in_a_sentence_becomes_markup() {
        for (said, safe) in [
            ("# a", "`#` a"),
            ("- a - b", "\\- a - b"),
            ("12. a", "12\\. a"),
            ("=== a", "\\=== a"),
            ("--- a", "`---` a"),
            ("> a", "`>` a"),
            ("a\n\n# b", "`a\\n\\n#` b"),
            ("*a* _b_ ~c~", "`*a*` `_b_` `~c~`"),
            ("[a](http://b)", "`[a](http://b)`"),
            ("see http://b.c, www.d.e", "see `http://b.c`, `www.d.e`"),
            ("@me, a@b.c #1 GH-7 :tada:", "`@me`, `a@b.c` `#1` `GH-7` `:tada`:"),
            ("deadbeef7 $x$ &lt;", "`deadbeef7` `$x$` `&lt`;"),
            ("<img src=x onerror=a(1)>", "<code>&#60;img</code> src=x `onerror=a(1)>`"),
            ("a|b `c``", "<code>a&#124;b</code> <code>&#96;c&#96;&#96;</code>"),
            ("`<b>` `a`b_c `", "<code>&#60;b&#62;</code> <code>&#96;a&#96;b&#95;c</code> <code>&#96;</code>"),
        ] {
            assert_eq!(prose(said), safe, "{said}");
        }
    }
}
