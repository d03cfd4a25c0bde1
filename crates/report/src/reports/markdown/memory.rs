//! What frameworks' allocators hold: facts, then tables by use and by line.

use super::table::{Table, bar};
use super::words::prose;
use crate::attribution_words::{note, refusal, rows, title};
use crate::memory_words::{MOST_HOLDERS, facts, held as held_by, layer, place};
use crate::units::{bytes, count, percent_of};
use diagnosis::Diagnosis;
use std::io::{self, Write};
use timeline::Timeline;

pub fn write(timeline: &Timeline, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    attribution(timeline, diagnosis, out)?;
    for one in &diagnosis.memory {
        writeln!(out, "## Memory of {}\n", prose(&analysis::memory::name(timeline, one.allocator)))?;
        for fact in facts(timeline, diagnosis, one) {
            writeln!(out, "- {}", prose(&fact))?;
        }
        writeln!(out)?;
        let events = one.history.allocs > 0;
        let held = if events { &one.peak } else { &one.end };
        let share = |size: u64| bar(size as f64 / held.bytes.max(1) as f64);
        if events {
            let mut table = Table::new([" share", "", " bytes", " blocks", "at the peak, by use"]);
            for (category, size, blocks) in &held.by_category {
                table.row([
                    percent_of(*size, held.bytes),
                    share(*size),
                    bytes(*size),
                    count(*blocks),
                    category.said().into(),
                ]);
            }
            table.write(out)?;
        }
        let heading = if events { "at the peak, by line" } else { "at the end, by line" };
        let mut table = Table::new([" share", "", " bytes", " blocks", heading]);
        for holder in held.by_place.iter().take(MOST_HOLDERS) {
            let size = holder.bytes;
            table.row([
                percent_of(size, held.bytes),
                share(size),
                held_by(holder),
                count(holder.blocks),
                prose(&place(holder)),
            ]);
        }
        table.write(out)?;
        if events && !held.by_layer.is_empty() {
            let mut table = Table::new([" share", "", " bytes", " blocks", "at the peak, by layer"]);
            for part in held.by_layer.iter().take(MOST_HOLDERS) {
                table.row([
                    percent_of(part.bytes, held.bytes),
                    share(part.bytes),
                    bytes(part.bytes),
                    count(part.blocks),
                    prose(layer(timeline, part.of)),
                ]);
            }
            table.write(out)?;
        }
    }
    Ok(())
}

fn attribution(timeline: &Timeline, diagnosis: &Diagnosis, out: &mut impl Write) -> io::Result<()> {
    for one in &diagnosis.attribution {
        writeln!(out, "## {}\n", prose(&title(timeline, one)))?;
        let found = match &one.found {
            Ok(found) => found,
            Err(why) => {
                writeln!(out, "{}\n", prose(&refusal(why)))?;
                continue;
            }
        };
        writeln!(out, "{}\n", prose(&note(found)))?;
        let mut table = Table::new([" share", " at the end", " at most", "what"]);
        for (share, end, most, said) in rows(timeline, found) {
            table.row([share, end, most, prose(&said)]);
        }
        table.write(out)?;
    }
    Ok(())
}
