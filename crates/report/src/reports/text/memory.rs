//! What frameworks' allocators hold: in use, free and reserved; at the peak by what it is for and by the line that allocated it.

use super::Page;
use super::verdict::wrapped;
use crate::attribution_words;
use crate::memory_words;
use crate::memory_words::{MOST_HOLDERS, facts, layer, place};
use crate::style::Ink;
use crate::table::Table;
use crate::units::{bytes, count, percent_of};
use analysis::AllocatorMemory;
use diagnosis::Diagnosis;
use std::io::{self, Write};

impl Page<'_> {
    pub(super) fn memory(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        self.attribution(out, diagnosis)?;
        for one in &diagnosis.memory {
            let name = analysis::memory::name(self.timeline, one.allocator);
            self.heading(out, &format!("Memory of {name}"), &self.timeline.memory.allocator(one.allocator).backend)?;
            for fact in facts(self.timeline, diagnosis, one) {
                for (at, line) in wrapped(self.style, &fact, self.style.width.saturating_sub(4)).iter().enumerate() {
                    writeln!(out, "  {}{line}", if at == 0 { "" } else { "  " })?;
                }
            }
            self.held(out, one)?;
        }
        Ok(())
    }

    fn attribution(&self, out: &mut impl Write, diagnosis: &Diagnosis) -> io::Result<()> {
        for one in &diagnosis.attribution {
            let title = attribution_words::title(self.timeline, one);
            let found = match &one.found {
                Ok(found) => found,
                Err(why) => {
                    self.heading(out, &title, "")?;
                    for line in
                        wrapped(self.style, &attribution_words::refusal(why), self.style.width.saturating_sub(4))
                    {
                        writeln!(out, "  {line}")?;
                    }
                    continue;
                }
            };
            self.heading(out, &title, &attribution_words::note(found))?;
            let mut table = Table::new(["share", "at the end", "at most", ""]);
            for (share, end, most, said) in attribution_words::rows(self.timeline, found) {
                table.row([share, end, most].map(|text| (Ink::Plain, text)), &said, "");
            }
            table.write(out, self.style)?;
        }
        Ok(())
    }

    fn held(&self, out: &mut impl Write, one: &AllocatorMemory) -> io::Result<()> {
        // Without events the only moment is the end.
        let at_peak = one.history.allocs > 0;
        let held = if at_peak { &one.peak } else { &one.end };
        if held.bytes == 0 {
            return Ok(());
        }
        writeln!(out)?;
        let mut table = Table::new([
            "share",
            "bytes",
            "blocks",
            if at_peak { "at the peak, by use" } else { "at the end, by use" },
        ]);
        let cells = |size: u64, blocks: u64| {
            [percent_of(size, held.bytes), bytes(size), count(blocks)].map(|text| (Ink::Plain, text))
        };
        for (category, size, blocks) in &held.by_category {
            table.row(cells(*size, *blocks), category.said(), "");
        }
        if at_peak {
            table.write(out, self.style)?;
            writeln!(out)?;
        }
        let mut table = Table::new([
            "share",
            "bytes",
            "blocks",
            if at_peak { "at the peak, by line" } else { "at the end, by line" },
        ]);
        for holder in held.by_place.iter().take(self.top.min(MOST_HOLDERS)) {
            let [share, _, blocks] = cells(holder.bytes, holder.blocks);
            table.row([share, (Ink::Plain, memory_words::held(holder)), blocks], &place(holder), "");
        }
        table.write(out, self.style)?;
        if !at_peak || held.by_layer.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        let mut table = Table::new(["share", "bytes", "blocks", "at the peak, by layer"]);
        for part in held.by_layer.iter().take(self.top.min(MOST_HOLDERS)) {
            table.row(cells(part.bytes, part.blocks), layer(self.timeline, part.of), "");
        }
        table.write(out, self.style)
    }
}
