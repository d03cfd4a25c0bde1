//! What the terminal can show: colours, and letters beyond ASCII.

use ratatui::style::{Color, Modifier, Style};

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Look {
    pub color: bool,
    pub unicode: bool,
}

impl Look {
    pub fn heading(self) -> Style {
        Style::default().add_modifier(Modifier::BOLD)
    }

    pub fn faint(self) -> Style {
        if self.color { Style::default().fg(Color::DarkGray) } else { Style::default() }
    }

    pub fn warn(self) -> Style {
        self.colored(Color::Yellow, Modifier::BOLD)
    }

    pub fn bad(self) -> Style {
        self.colored(Color::Red, Modifier::BOLD)
    }

    pub fn good(self) -> Style {
        self.colored(Color::Green, Modifier::empty())
    }

    pub fn bar(self) -> Style {
        self.colored(Color::Cyan, Modifier::empty())
    }

    /// The row that is chosen.
    pub fn chosen(self) -> Style {
        Style::default().add_modifier(Modifier::REVERSED)
    }

    fn colored(self, color: Color, without: Modifier) -> Style {
        if self.color { Style::default().fg(color) } else { Style::default().add_modifier(without) }
    }

    /// A height from 0 to 100 as one letter.
    pub fn level(self, percent: u64) -> char {
        const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const LETTERS: [char; 5] = [' ', '.', ':', '=', '#'];
        let of = |letters: &[char]| match percent.min(100) {
            0 => letters[0],
            // What is there at all is seen.
            percent => letters[(percent as usize * (letters.len() - 1)).div_ceil(100)],
        };
        if self.unicode { of(&BLOCKS) } else { of(&LETTERS) }
    }

    pub fn dot(self) -> &'static str {
        if self.unicode { " · " } else { " | " }
    }

    pub fn bullet(self) -> &'static str {
        if self.unicode { "•" } else { "*" }
    }

    /// The text in the letters that there are.
    pub fn plain(self, text: &str) -> String {
        match self.unicode {
            true => text.to_owned(),
            false => text
                .chars()
                .map(|letter| match letter {
                    'µ' => 'u',
                    '−' | '–' | '—' => '-',
                    '→' => '>',
                    '·' | '•' => '*',
                    '×' => 'x',
                    letter if letter.is_ascii() => letter,
                    _ => '?',
                })
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_is_seen_and_nothing_is_not() {
        let unicode = Look { color: false, unicode: true };
        let levels: String = [0, 1, 12, 13, 50, 99, 100, 4000].map(|percent| unicode.level(percent)).iter().collect();
        assert_eq!(levels, " ▁▁▂▄███");
        let letters: String = [0, 1, 25, 26, 100].map(|percent| Look::default().level(percent)).iter().collect();
        assert_eq!(letters, " ..:#");
        assert_eq!(Look::default().plain("1.2 µs → 3 × é"), "1.2 us > 3 x ?");
    }
}
