//! Sentences inside Markdown. They hold names of the recorded program, which must not become a heading, a link, an image, a
//! mention of a person, an element of HTML or the end of a table cell: whatever is not plainly a word is put into code.

use super::code::coded;
use crate::escape::visible;
use std::fmt::Write;

/// Longer sentences are cut; the analysis JSON has them whole.
const LONGEST: usize = 1000;

/// A sentence that may hold names. Good anywhere in a line, at its begin too.
pub fn prose(text: &str) -> String {
    let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(end, _)| end);
    let text = visible(&text[..end]) + if end < text.len() { "…" } else { "" };
    let mut safe = String::with_capacity(text.len() + 16);
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, said) = quoted(rest).unwrap_or_else(|| {
            let word = call(rest);
            (word, inner_word(word))
        });
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

/// A call with several arguments is read as one word.
const LONGEST_CALL: usize = 80;

/// The first word, up to where the bracket that it opens is closed.
fn call(text: &str) -> &str {
    let end = |from: usize| text[from..].find(char::is_whitespace).map_or(text.len(), |end| from + end);
    let word = &text[..end(0)];
    let open = |part: &str| part.matches('(').count() > part.matches(')').count();
    if !open(word) || word.starts_with('(') || word.chars().all(tame) && !is_code(word) {
        return word;
    }
    let closed = text.match_indices(')').map(|(at, _)| at + 1).find(|at| !open(&text[..*at]));
    closed.filter(|at| *at <= LONGEST_CALL).map_or(word, |at| &text[..end(at)])
}

/// Letters and the marks of a sentence: nothing that Markdown gives a meaning to inside a line.
fn tame(letter: char) -> bool {
    !letter.is_ascii() || letter.is_ascii_alphanumeric() || " .,;:!?%()\"'-+=/".contains(letter)
}

/// The first word of a line, so that it begins no list and does not underline a heading.
fn not_a_list(word: String) -> String {
    let digits = word.trim_end_matches(['.', ')']);
    let number =
        !digits.is_empty() && digits.len() + 1 == word.len() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match number {
        _ if word.trim_start_matches(['-', '+', '=']).is_empty() => format!("\\{word}"),
        true => format!("{digits}\\{}", &word[digits.len()..]),
        false => word,
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
    fn sentences_stay_sentences() {
        let plain = "A request takes 40.0 ms (p50 of 160; p99 41 ms); 50 % of it \"waits\", 3/4 doesn't.";
        assert_eq!(prose(plain), plain);
        assert_eq!(prose("in compile_pattern (service.py:44)."), "in `compile_pattern` (`service.py:44`).");
        assert_eq!(
            prose("Set torch.set_num_threads(4), or --rate 5:"),
            "Set `torch.set_num_threads(4)`, or `--rate` 5:"
        );
        assert_eq!(prose("e.g. gc.freeze(), after 40.5 ms."), "e.g. `gc.freeze()`, after 40.5 ms.");
        assert_eq!(prose("set gc.x(50_000, 5), or b_c(d"), "set `gc.x(50_000, 5)`, or `b_c(d`");
        assert_eq!(prose("forward (service.py:80): 3 samples"), "forward (`service.py:80`): 3 samples");
        assert_eq!(prose("use (`inferscope run`), then `a`."), "use (`inferscope run`), then `a`.");
        assert_eq!(prose("cat /proc/self/status of <module>"), "cat `/proc/self/status` of `<module>`");
    }

    #[test]
    fn nothing_in_a_sentence_becomes_markup() {
        for (said, safe) in [
            ("# a", "`#` a"),
            ("- a - b", "\\- a - b"),
            ("--", "\\--"),
            ("12. a", "12\\. a"),
            ("2.2 % a", "2.2 % a"),
            ("+5 % a", "+5 % a"),
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
