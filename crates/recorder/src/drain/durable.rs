//! What is done with a segment once it is drained: saying what is on disk, counting what the collectors lost, and the last rows of
//! a process that is gone.

use super::attached::Attached;
use super::clock::Clock;
use super::losses::{Losses, REASONS};
use super::pairing::{Begun, push};
use crate::manifest;
use crate::store::{self, Columns, Covered};
use std::sync::atomic::Ordering;
use trace::clock::Ticks;
use trace::codes::{CollectorCode, LossReason, Reason};
use trace::status::{Collector, CollectorStatus};
use trace::tables::SliceKind;

/// What the counters of the status page count, in the order of [`counts`]. Of CUPTI and NVTX other things go missing.
fn reasons(collector: Collector) -> [LossReason; 5] {
    use LossReason::*;
    match collector {
        Collector::Gpu => [DroppedByCupti, CollectorErrors, WorkWithoutTime, TextCut, UnknownCuptiRecord],
        Collector::Nvtx => [NoRoom, CollectorErrors, Unpaired, TextCut, TooManyRanges],
        _ => [NoRoom, CollectorErrors, Unpaired, TextCut, TooManyFunctions],
    }
}

fn counts(status: &CollectorStatus) -> [u64; 5] {
    [&status.dropped, &status.errors, &status.unpaired, &status.cut, &status.overflow]
        .map(|count| count.load(Ordering::Relaxed))
}

impl Attached {
    /// Notes how far those rings were read that were not so far on disk; earlier files say it of the others. Text whose owner
    /// was not read yet will be read again after a kill.
    pub fn cover(&self, covered: &mut Covered) {
        for (number, ring) in self.rings.iter().enumerate() {
            let next = ring.position - ring.pending;
            if next != ring.durable {
                covered.set(&self.segment, number as u32, next);
            }
        }
        let lost = self.lost.iter().enumerate().map(|(reason, count)| (store::lost(reason), *count));
        let counters = self.counted.iter().enumerate().flat_map(|(collector, counts)| {
            counts.iter().enumerate().map(move |(each, count)| (store::counter(collector, each), *count))
        });
        for (number, count) in lost.chain(counters).filter(|(_, count)| *count > 0) {
            covered.set(&self.segment, number, count);
        }
    }

    /// Everything that was read is on disk: the rings may be reclaimed so far.
    pub fn set_durable(&mut self) {
        self.pressed = false;
        for (number, ring) in self.rings.iter_mut().enumerate() {
            let next = ring.position - ring.pending;
            if next != ring.durable {
                ring.durable = next;
                if let Some(view) = self.reader.ring(number) {
                    view.set_durable(next);
                }
            }
        }
    }

    /// Whether records came since the last visit.
    pub fn has_more(&self) -> bool {
        let mut heads = self.reader.heads().enumerate();
        heads.any(|(number, head)| head > self.rings.get(number).map_or(0, |ring| ring.position))
    }

    /// Scopes that are open go to disk as such, before the ring may forget their begin.
    pub fn checkpoint(&mut self, rows: &mut Columns) {
        self.pairing.settle(u64::MAX, rows);
        self.pairing.checkpoint(rows);
    }

    pub fn waits_for_begins(&self) -> bool {
        self.pairing.waits()
    }

    /// The writer is dead: what it had open will never end.
    pub fn abandon(&mut self, clock: &Clock, rows: &mut Columns) {
        self.pairing.abandon(rows);
        let mapping = clock.mapping(self.reader.source());
        for call in self.reader.open_calls() {
            let begun = Begun {
                start: mapping.nanos(Ticks(call.start)).0 as i64,
                thread: call.thread as i32,
                kind: SliceKind::Call,
                name: self.names.get(call.name.0 as usize).copied().unwrap_or(self.unknown),
                parent: None,
                args: None,
            };
            push(rows, self.process, None, &begun, None);
        }
    }

    /// What the collectors counted since the last time.
    pub fn count_losses(&mut self, losses: &mut Losses) {
        for (collector, counted) in Collector::ALL.into_iter().zip(&mut self.counted) {
            let now = counts(self.reader.status(collector));
            for ((now, before), reason) in now.iter().zip(counted.iter()).zip(reasons(collector)) {
                losses.add(self.process, collector.code(), reason, now.saturating_sub(*before));
            }
            *counted = now;
        }
        for (number, reason) in REASONS.into_iter().enumerate() {
            let (lost, counted) = (self.lost[number], &mut self.lost_counted[number]);
            losses.add(self.process, CollectorCode::Recorder, reason, lost.saturating_sub(*counted));
            *counted = lost.max(*counted);
        }
    }

    /// What the collectors say about themselves.
    pub fn collectors(&self) -> [manifest::Collector; Collector::ALL.len()] {
        Collector::ALL.map(|collector| {
            let status = self.reader.status(collector);
            let reason = Reason::from_message(&status.message());
            manifest::Collector {
                name: collector.name().into(),
                state: status.state().name().into(),
                reason: reason.as_ref().map_or_else(|| status.message(), Reason::said),
                reason_code: reason.map(|reason| reason.code.name().into()),
                own_ns: status.own_ns.load(Ordering::Relaxed),
                residual_ns: status.residual_ns.load(Ordering::Relaxed),
                windows: status.windows().map(|windows| manifest::CollectorWindows {
                    recorded_ppm: windows.recorded_ppm,
                    cost_ppm: windows.cost_ppm,
                }),
                stack_reads: None,
            }
        })
    }
}
