//! The median step and the slow ones in the summary: lanes of letters under each other, then what differs.

use super::Page;
use super::verdict::wrapped;
use crate::picture::{drawn, legend, said, several, title};
use crate::reports::markdown::number;
use crate::style::{Ink, left};
use crate::table::Table;
use analysis::phrase;
use diagnosis::Diagnosis;
use diagnosis::wording::{self, slow_steps};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

impl Page<'_> {
    pub(super) fn waterfall(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        let Some(picture) = &diagnosis.waterfall else { return Ok(()) };
        let from = self.time(picture.start.saturating_sub(self.timeline.start));
        let note = format!("{}, starts at {from}", self.time(picture.end - picture.start));
        self.heading(out, "Median step", &note)?;
        for line in wrapped(
            self.style,
            &format!("steps: {}", wording::steps::why(&diagnosis.steps)),
            self.style.width.saturating_sub(2),
        ) {
            writeln!(out, "  {}", self.style.ink(Ink::Faint, &line))?;
        }
        let titles: Vec<String> =
            picture.lanes.iter().map(|lane| title(self.timeline, lane, several(picture))).collect();
        let wide = titles.iter().map(|title| title.width()).max().unwrap_or(0);
        let room = self.style.width.saturating_sub(wide + 4).clamp(20, 100);
        for (lane, title) in picture.lanes.iter().zip(&titles) {
            let drawn = self.plainly(&drawn(picture, lane, room));
            writeln!(out, "  {}  {}", left(title, wide), self.style.ink(Ink::Bar, &drawn))?;
            let about = self.style.fit(&self.style.plain(&said(picture, lane, 3)), room);
            writeln!(out, "  {}  {}", " ".repeat(wide), self.style.ink(Ink::Faint, &about))?;
        }
        let words: Vec<String> =
            legend(picture).iter().map(|(letter, word)| self.plainly(&format!("{letter} {word}"))).collect();
        for line in self.style.lines(&words, self.style.width.saturating_sub(2)) {
            writeln!(out, "  {}", self.style.ink(Ink::Faint, &line))?;
        }
        Ok(())
    }

    /// Letters of the picture in a place that may have no more than ASCII.
    fn plainly(&self, letters: &str) -> String {
        match self.style.unicode {
            true => letters.to_owned(),
            false => letters.replace('█', "#").replace('▓', "=").replace('▒', "-").replace('░', ":").replace('·', "."),
        }
    }

    pub(super) fn slow_steps(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        let Some(slow) = diagnosis.slow_steps.as_ref().filter(|slow| !slow.slow.is_empty()) else { return Ok(()) };
        self.heading(out, "Slow vs. typical steps", "")?;
        for line in
            wrapped(self.style, &slow_steps::sentence(&diagnosis.steps, slow), self.style.width.saturating_sub(2))
        {
            writeln!(out, "  {line}")?;
        }
        if slow.differences.is_empty() {
            return Ok(());
        }
        let mut table = Table::new(["difference", "slow", "typical", "what"]);
        for one in slow.differences.iter().take(self.top.min(8)) {
            let cells =
                [self.style.plain(&phrase::longer(one.more_ns())), self.time(one.slow_ns), self.time(one.usual_ns)];
            let at = &one.place;
            let name = at.kernel.clone().or(at.api.clone());
            let place = name.unwrap_or_else(|| match at.function.is_some() || at.file.is_some() {
                true => phrase::place(at),
                false => String::new(),
            });
            table.row(cells.map(|cell| (Ink::Plain, cell)), &slow_steps::row(one.side), &self.style.plain(&place));
        }
        table.write(out, self.style)?;
        let facts: Vec<String> = slow
            .counts
            .iter()
            .map(|one| {
                format!("{} {} instead of {}", slow_steps::counted(one.what), number(one.slow), number(one.usual))
            })
            .collect();
        for line in self.style.lines(&facts, self.style.width.saturating_sub(2)) {
            writeln!(out, "  {}", self.style.ink(Ink::Faint, &line))?;
        }
        Ok(())
    }
}
