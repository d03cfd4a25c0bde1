//! What was lost, counted until the next file is closed: never silently, never twice.

use crate::store::{Cell, Store};
use std::collections::BTreeMap;
use trace::clock::monotonic;
use trace::codes::{CollectorCode, LossReason};
use trace::tables::Table;

#[derive(Default)]
pub(crate) struct Losses {
    counts: BTreeMap<(i32, CollectorCode, LossReason), u64>,
    /// Records that were overwritten, in all.
    pub overwritten: u64,
    /// Of these, while no recorder ran.
    pub away: u64,
}

/// Why records of a ring were lost, in the order of their numbers in footers.
pub(crate) const REASONS: [LossReason; 2] = [LossReason::Overwritten, LossReason::OverwrittenDuringRestart];

impl Losses {
    pub fn add(&mut self, process: i32, collector: CollectorCode, reason: LossReason, count: u64) {
        if count > 0 {
            self.overwritten += if REASONS.contains(&reason) { count } else { 0 };
            self.away += if reason == LossReason::OverwrittenDuringRestart { count } else { 0 };
            *self.counts.entry((process, collector, reason)).or_default() += count;
        }
    }

    /// Counts what the recorder itself saw go missing: at once a row, for nothing else would tell of it after a kill.
    pub fn seen(&mut self, store: &mut Store, process: i32, collector: CollectorCode, reason: LossReason, count: u64) {
        if count > 0 && !store.push(Table::Losses, &row(process, collector, reason, count)) {
            self.add(process, collector, reason, count);
        }
    }

    /// Moves the counts into the table. What finds no room stays counted here. They are of the rings, where a recovery counts
    /// them again: so they go into files only, and not into the journal.
    pub fn hand_over(&mut self, store: &mut Store) {
        let batch = store.batch(Table::Losses);
        self.counts.retain(|(process, collector, reason), count| {
            let room = !batch.is_full();
            if room {
                batch.push(&row(*process, *collector, *reason, *count));
            }
            !room
        });
    }
}

fn row(process: i32, collector: CollectorCode, reason: LossReason, count: u64) -> [Cell<'static>; 5] {
    let time = Cell::Long(monotonic().0 as i64);
    [time, Cell::Int(process), Cell::Text(collector.name()), Cell::Text(reason.name()), Cell::Long(count as i64)]
}
