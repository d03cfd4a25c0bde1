//! What was lost, counted until the next file is closed: never silently, never twice.

use crate::store::{Cell, Store};
use std::collections::BTreeMap;
use trace::clock::monotonic;
use trace::tables::Table;

#[derive(Default)]
pub(crate) struct Losses {
    counts: BTreeMap<(i32, &'static str, &'static str), u64>,
    /// Records that were overwritten, in all.
    pub overwritten: u64,
    /// Of these, while no recorder ran.
    pub away: u64,
}

pub(crate) const OVERWRITTEN: &str = "records overwritten before they could be written to disk";
/// A part of those, told apart: the recorder was killed, and the next one came too late for them.
pub(crate) const AWAY: &str = "records overwritten while the recorder was started again";
/// Why records of a ring were lost, in the order of their numbers in footers.
pub(crate) const REASONS: [&str; 2] = [OVERWRITTEN, AWAY];
pub(crate) const DAMAGED: &str = "records of an unknown kind";
pub(crate) const NO_NUMBERS: &str = "records of a device of which a part was overwritten";
pub(crate) const ROWS: &str = "rows dropped while the disk took nothing";
pub(crate) const QUEUE: &str = "samples dropped because the recorder could not keep up";

impl Losses {
    pub fn add(&mut self, process: i32, collector: &'static str, what: &'static str, count: u64) {
        if count > 0 {
            self.overwritten += if REASONS.contains(&what) { count } else { 0 };
            self.away += if what == AWAY { count } else { 0 };
            *self.counts.entry((process, collector, what)).or_default() += count;
        }
    }

    /// Counts what the recorder itself saw go missing: at once a row, for nothing else would tell of it after a kill.
    pub fn seen(&mut self, store: &mut Store, process: i32, collector: &'static str, what: &'static str, count: u64) {
        if count > 0 && !store.push(Table::Losses, &row(process, collector, what, count)) {
            self.add(process, collector, what, count);
        }
    }

    /// Moves the counts into the table. What finds no room stays counted here. They are of the rings, where a recovery counts
    /// them again: so they go into files only, and not into the journal.
    pub fn hand_over(&mut self, store: &mut Store) {
        let batch = store.batch(Table::Losses);
        self.counts.retain(|(process, collector, what), count| {
            let room = !batch.is_full();
            if room {
                batch.push(&row(*process, collector, what, *count));
            }
            !room
        });
    }
}

fn row<'a>(process: i32, collector: &'a str, what: &'a str, count: u64) -> [Cell<'a>; 5] {
    let time = Cell::Long(monotonic().0 as i64);
    [time, Cell::Int(process), Cell::Text(collector), Cell::Text(what), Cell::Long(count as i64)]
}
