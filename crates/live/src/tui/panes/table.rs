//! Columns of text: numbers to the right, the last column as wide as there is room.

use super::View;
use ratatui::text::Line;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Rows under their heads; nothing where there is no row. The last column is text and is cut, the others are numbers.
pub fn table(view: &View, heads: &[&str], rows: &[Vec<String>]) -> Vec<Line<'static>> {
    if rows.is_empty() {
        return Vec::new();
    }
    let last = heads.len() - 1;
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.chain([heads[column].width()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..last).map(width).collect();
    let room = view.width.saturating_sub(widths.iter().sum::<usize>() + 2 * last);
    let line = |cells: &[String]| {
        let mut text = String::new();
        for (cell, width) in cells[..last].iter().zip(&widths) {
            text.push_str(&" ".repeat(width.saturating_sub(cell.width())));
            text.push_str(cell);
            text.push_str("  ");
        }
        text.push_str(&cut(&cells[last], room));
        text
    };
    let heads: Vec<String> = heads.iter().map(|head| (*head).to_owned()).collect();
    let mut lines = vec![Line::styled(line(&heads), view.look.faint())];
    lines.extend(rows.iter().map(|row| Line::raw(line(row))));
    lines
}

/// The beginning that fits.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 0);
    for letter in text.chars() {
        used += letter.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(letter);
    }
    kept
}

/// Words on as many lines as they need; a word that is too long is cut into pieces.
pub fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word = word.to_owned();
        loop {
            let line = lines.last_mut().expect("there is always a line");
            let gap = usize::from(!line.is_empty());
            if line.width() + gap + word.width() <= width {
                if gap > 0 {
                    line.push(' ');
                }
                line.push_str(&word);
                break;
            }
            if !line.is_empty() {
                lines.push(String::new());
                continue;
            }
            let piece = cut(&word, width);
            if piece.is_empty() {
                break; // A letter wider than the screen.
            }
            word = word[piece.len()..].to_owned();
            *line = piece;
            if word.is_empty() {
                break;
            }
            lines.push(String::new());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_on_lines_and_long_ones_are_cut() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("abcdefgh ij", 3), ["abc", "def", "gh", "ij"]);
        assert_eq!(wrapped("日本", 1), [""]);
        assert_eq!(wrapped("", 10), [""]);
    }

    #[test]
    fn numbers_stand_right_and_names_are_cut() {
        let view = View { width: 16, ..View::default() };
        let rows = [vec!["5".into(), "forward (model.py:1)".into()], vec!["100".into(), "b".into()]];
        let lines: Vec<String> = table(&view, &["own", "function"], &rows).iter().map(Line::to_string).collect();
        assert_eq!(lines, ["own  function", "  5  forward (mo", "100  b"]);
    }
}
