//! How text looks where it goes: colour or none, Unicode or ASCII, how wide. Cells are measured as a terminal shows them.

use crate::escape::visible;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Style {
    pub colour: bool,
    pub unicode: bool,
    pub width: usize,
}

/// For files and pipes: no escape sequences, and a width that fits most windows.
impl Default for Style {
    fn default() -> Style {
        Style { colour: false, unicode: true, width: 100 }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ink {
    Plain,
    Heading,
    Faint,
    Bar,
    Good,
    Warn,
}

impl Style {
    pub fn ink(&self, ink: Ink, text: &str) -> String {
        let code = match ink {
            _ if !self.colour || text.is_empty() => return text.to_owned(),
            Ink::Plain => return text.to_owned(),
            Ink::Heading => "1",
            Ink::Faint => "2",
            Ink::Bar => "36",
            Ink::Good => "32",
            Ink::Warn => "33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Between facts on one line.
    pub fn dot(&self) -> &'static str {
        if self.unicode { " · " } else { ", " }
    }

    /// Facts with dots between them, on as many lines as they need.
    pub fn lines(&self, facts: &[String], width: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for fact in facts {
            let fact = self.fit(&self.plain(fact), width);
            match lines.last_mut() {
                Some(line) if line.width() + self.dot().width() + fact.width() <= width => {
                    *line += &(self.dot().to_owned() + &fact)
                }
                _ => lines.push(fact),
            }
        }
        lines
    }

    /// Text that may hold our own symbols, for a place that may not.
    pub fn plain(&self, text: &str) -> String {
        if self.unicode {
            text.to_owned()
        } else {
            [('µ', "u"), ('·', ","), ('±', "+-"), ('×', "x"), ('→', "->"), ('−', "-"), ('–', "-"), ('…', "~")]
                .into_iter()
                .fold(text.to_owned(), |text, (symbol, plain)| text.replace(symbol, plain))
        }
    }

    /// A recorded name in at most `width` cells: made visible, and its end cut.
    pub fn fit(&self, text: &str, width: usize) -> String {
        let text = visible(text);
        if text.width() <= width {
            return text.into_owned();
        }
        let mark = if self.unicode { "…" } else { "~" };
        let mut room = width.saturating_sub(1);
        let kept: String = text.chars().take_while(|character| take(*character, &mut room)).collect();
        if width == 0 { String::new() } else { kept + mark }
    }

    /// As `fit`, but the beginning goes: of a path, the end says most.
    pub fn fit_end(&self, text: &str, width: usize) -> String {
        let text = visible(text);
        if text.width() <= width {
            return text.into_owned();
        }
        let mark = if self.unicode { "…" } else { "~" };
        let mut room = width.saturating_sub(1);
        let kept: Vec<char> = text.chars().rev().take_while(|character| take(*character, &mut room)).collect();
        if width == 0 { String::new() } else { mark.to_owned() + &kept.into_iter().rev().collect::<String>() }
    }
}

fn take(character: char, room: &mut usize) -> bool {
    let cells = character.width().unwrap_or(0);
    let fits = cells <= *room;
    *room -= if fits { cells } else { 0 };
    fits
}

pub fn left(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

pub fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.width())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_counted_as_a_terminal_shows_them() {
        let style = Style::default();
        assert_eq!(style.fit("tokenise", 8), "tokenise");
        assert_eq!(style.fit("tokenise", 5), "toke…");
        assert_eq!(style.fit("日本語の名前", 6), "日本…");
        assert_eq!(style.fit_end("/usr/lib/python/a.py", 10), "…thon/a.py");
        assert_eq!((style.fit("abc", 0), style.fit("abc", 1)), (String::new(), "…".into()));
        assert_eq!((left("日本", 6), right("日本", 6)), ("日本  ".into(), "  日本".into()));
    }

    #[test]
    fn colour_is_only_where_it_is_wanted() {
        assert_eq!(Style::default().ink(Ink::Warn, "x"), "x");
        assert_eq!(Style { colour: true, ..Style::default() }.ink(Ink::Warn, "x"), "\x1b[33mx\x1b[0m");
    }
}
