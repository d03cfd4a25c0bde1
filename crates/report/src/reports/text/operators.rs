//! The operators of a step on the CPU and the layers by the CPU's time, in the summary. Left out where a GPU does the work, or where
//! neither was recorded.

use super::Page;
use super::spark::bar;
use crate::operator_words::{basis, calls, in_call, named, recorded, share, whole};
use crate::style::Ink;
use crate::table::Table;
use analysis::phrase;
use diagnosis::Diagnosis;
use std::io::{self, Write};

impl Page<'_> {
    pub(super) fn operators(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        let Some(operators) = &diagnosis.operators else { return Ok(()) };
        let more = self.more(operators.rows.len(), "rows");
        let note = if more.is_empty() { basis(operators) } else { format!("{}; {more}", basis(operators)) };
        self.heading(out, "Operators on the CPU", &note)?;
        let mut table = Table::new(["", whole(operators), "own time", "calls", "GFLOP/s", "operator"]);
        for row in operators.rows.iter().take(self.top) {
            let part = share(operators, row);
            let cells = [
                (Ink::Bar, bar(part, 10, self.style)),
                (Ink::Plain, phrase::percent_or_less(part)),
                (Ink::Plain, self.time(row.ns)),
                (Ink::Plain, calls(row.calls)),
                (Ink::Plain, row.gflops().map_or("-".into(), |speed| format!("{speed:.1}"))),
            ];
            // There is room for one of them: the other reports have both.
            let line = || row.place.file.as_ref().map(|_| phrase::line(&row.place));
            let at = row.module.as_ref().map(ToString::to_string).or_else(line).unwrap_or_default();
            table.row(cells, &self.style.plain(&named(self.timeline, row)), &self.style.plain(&at));
        }
        table.write(out, self.style)
    }

    pub(super) fn host_layers(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        let layers = &diagnosis.host_layers;
        if layers.is_empty() {
            return Ok(());
        }
        let notes = [format!("mean of {}", recorded(layers)), self.more(layers.rows.len(), "layers")];
        let notes: Vec<&str> = notes.iter().map(String::as_str).filter(|note| !note.is_empty()).collect();
        self.heading(out, "Layers by own CPU time", &notes.join("; "))?;
        let mut table = Table::new(["", "share", "own", "total", "calls", "layer"]);
        for layer in layers.rows.iter().take(self.top) {
            let (part, mean) = (layers.share(layer), in_call(layer));
            let cells = [
                (Ink::Bar, bar(part, 10, self.style)),
                (Ink::Plain, phrase::percent_or_less(part)),
                (Ink::Plain, self.time(mean.own_ns)),
                (Ink::Plain, self.time(mean.total_ns)),
                (Ink::Plain, calls(mean.calls)),
            ];
            table.row(cells, &self.style.plain(self.timeline.names.text(layer.name)), "");
        }
        table.write(out, self.style)
    }
}
