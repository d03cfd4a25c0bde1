//! A Markdown table, and bars of text that stand in its cells.

use std::io::{self, Write};

/// Rows of cells that are Markdown already.
pub struct Table {
    headings: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A heading with a space in front aligns its column to the right.
    pub fn new<const N: usize>(headings: [&'static str; N]) -> Table {
        Table { headings: headings.into(), rows: Vec::new() }
    }

    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.headings.len());
        self.rows.push(cells.into());
    }

    /// Columns in which no row says anything are left out.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let says = |column: &usize| self.rows.iter().any(|row| !row[*column].is_empty());
        let columns: Vec<usize> = (0..self.headings.len()).filter(says).collect();
        if columns.is_empty() {
            return Ok(());
        }
        let line = |cell: &dyn Fn(usize) -> String| {
            let cells: Vec<String> = columns.iter().map(|column| cell(*column)).collect();
            format!("|{}|", cells.join("|"))
        };
        writeln!(out, "{}", line(&|column| format!(" {} ", self.headings[column].trim())))?;
        let right = |column: usize| self.headings[column].starts_with(' ');
        writeln!(out, "{}", line(&|column| if right(column) { "---:".into() } else { "---".into() }))?;
        for row in &self.rows {
            writeln!(out, "{}", line(&|column| format!(" {} ", row[column])))?;
        }
        writeln!(out)
    }
}

/// Cells of a bar: enough to compare, and few enough for a narrow window.
const CELLS: f64 = 16.0;

/// A share of 1 as a bar, in eighths of a cell.
pub fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * CELLS * 8.0).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

/// From and to, both parts of 1, as a stretch of a line. What is short still shows.
pub fn stretch(from: f64, to: f64) -> String {
    let cell = |part: f64| (part.clamp(0.0, 1.0) * CELLS).round() as usize;
    let from = cell(from).min(CELLS as usize - 1);
    let to = cell(to).max(from + 1);
    "░".repeat(from) + &"█".repeat(to - from) + &"░".repeat(CELLS as usize - to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_only_the_columns_that_say_something() {
        let mut table = Table::new([" own", "empty", "name"]);
        table.row(["1".into(), String::new(), "`a`".into()]);
        table.row(["2".into(), String::new(), String::new()]);
        let mut text = Vec::new();
        table.write(&mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "| own | name |\n|---:|---|\n| 1 | `a` |\n| 2 |  |\n\n");
    }

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!([bar(0.0), bar(0.25), bar(0.01), bar(7.0)], ["", "████", "▏", "████████████████"]);
        assert_eq!(stretch(0.0, 0.5), "████████░░░░░░░░");
        assert_eq!(stretch(0.5, 0.5), "░░░░░░░░█░░░░░░░");
        assert_eq!(stretch(1.0, 1.5), "░░░░░░░░░░░░░░░█");
    }
}
