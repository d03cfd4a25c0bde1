//! A table of numbers with a name at the end of each row: numbers align right, and the last column takes what is left.

use crate::style::{Ink, Style, left, right};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

#[derive(Default)]
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Row>,
}

struct Row {
    cells: Vec<(Ink, String)>,
    name: String,
    /// Behind the name, faint: where it is.
    place: String,
}

const INDENT: usize = 2;
const GAP: usize = 2;

impl Table {
    /// Headings of the numbers, then of the names.
    pub fn new<const N: usize>(headings: [&'static str; N]) -> Table {
        Table { headings: headings.into(), rows: Vec::new() }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = (Ink, String)>, name: &str, place: &str) {
        self.rows.push(Row { cells: cells.into_iter().collect(), name: name.into(), place: place.into() });
    }

    /// Lets go of columns in which nothing was recorded.
    fn without_empty(mut self) -> Table {
        for column in (0..self.headings.len() - 1).rev() {
            if self.rows.iter().all(|row| row.cells.get(column).is_none_or(|cell| cell.1 == "-")) {
                self.headings.remove(column);
                self.rows
                    .iter_mut()
                    .filter(|row| column < row.cells.len())
                    .for_each(|row| _ = row.cells.remove(column));
            }
        }
        self
    }

    pub fn write(self, out: &mut impl Write, style: &Style) -> io::Result<()> {
        self.without_empty().print(out, style)
    }

    fn print(&self, out: &mut impl Write, style: &Style) -> io::Result<()> {
        let numbers = self.headings.len() - 1;
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.cells.get(column)).map(|cell| cell.1.width());
            cells.chain([self.headings[column].width()]).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..numbers).map(width).collect();
        let used: usize = INDENT + widths.iter().map(|width| width + GAP).sum::<usize>();
        let room = style.width.saturating_sub(used).max(12);
        let heading: String = self.headings[..numbers]
            .iter()
            .zip(&widths)
            .map(|(text, width)| right(text, *width) + "  ")
            .chain([self.headings[numbers].to_owned()])
            .collect();
        writeln!(out, "  {}", style.ink(Ink::Faint, heading.trim_end()))?;
        for row in &self.rows {
            let mut line = " ".repeat(INDENT);
            for ((ink, text), width) in row.cells.iter().zip(&widths) {
                // A bar grows from the left, a number from the right.
                let cell = if *ink == Ink::Bar { left(text, *width) } else { right(text, *width) };
                line += &style.ink(*ink, &cell);
                line += "  ";
            }
            line += &row.label(room, style);
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

impl Row {
    /// Name and place in the room there is: the name first, and what is left for the end of the place.
    fn label(&self, room: usize, style: &Style) -> String {
        let least_place = if self.place.is_empty() { 0 } else { (self.place.width() + GAP).min(room / 3) };
        let name = style.fit(&self.name, room - least_place);
        let left = room.saturating_sub(name.width() + GAP);
        let place = if left < 4 { String::new() } else { style.fit_end(&self.place, left) };
        if place.is_empty() { name } else { format!("{name}  {}", style.ink(Ink::Faint, &place)) }
    }
}
