//! Makes names safe to print: a name comes from the recorded program, and must not be able to move the cursor, change
//! colours, or turn the direction of the text around it.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with every character that a terminal would obey, or not show, written out.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(hidden) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            other if hidden(other) => _ = write!(safe, "\\u{{{:x}}}", u32::from(other)),
            other => safe.push(other),
        }
    }
    safe.into()
}

/// Control characters, line separators, and the marks that change direction or take no room. Joiners stay: scripts and
/// emoji need them.
fn hidden(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        assert_eq!(visible("plain é 日本 👩‍💻"), "plain é 日本 👩‍💻");
        assert_eq!(visible("a\x1b[2Jb\x07\u{9b}31m"), "a\\u{1b}[2Jb\\u{7}\\u{9b}31m");
        assert_eq!(visible("x\r\n\ty\u{202e}z"), "x\\r\\n\\ty\\u{202e}z");
    }
}
