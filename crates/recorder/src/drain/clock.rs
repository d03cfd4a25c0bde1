//! Ticks to nanoseconds for all segments: one mapping for the whole trace, extended about once a second, and a row in
//! the anchors table each time, so that a reader sees the error bar.

use crate::store::{Cell, Store};
use std::time::{Duration, Instant};
use trace::clock::{Anchor, Mapping, Source};
use trace::tables::Table;

pub(crate) struct Clock {
    counter: Mapping,
    /// For a segment whose process could not use the counter.
    plain: Mapping,
    next: Instant,
    interval: Duration,
    latest: Anchor,
}

/// The first seconds rest on a short calibration: anchors come soon and then less often, so the error stays small.
const FIRST_INTERVAL: Duration = Duration::from_millis(20);
const INTERVAL: Duration = Duration::from_secs(1);

impl Clock {
    pub fn start(source: Source) -> Clock {
        Clock::of(Mapping::calibrate(source), Anchor::take(source))
    }

    /// The clock of a recorder that was killed, from two readings that it or the workload left behind.
    pub fn again(source: Source, first: Anchor, second: Anchor) -> Clock {
        Clock::of(Mapping::new(source, first, second), second)
    }

    fn of(counter: Mapping, latest: Anchor) -> Clock {
        let (plain, next) = (Mapping::calibrate(Source::Monotonic), Instant::now());
        Clock { counter, plain, next, interval: FIRST_INTERVAL, latest }
    }

    pub fn mapping(&self, source: Source) -> &Mapping {
        if source == self.counter.source() { &self.counter } else { &self.plain }
    }

    pub fn latest(&self) -> Anchor {
        self.latest
    }

    pub fn residual(&self) -> u64 {
        self.counter.residual()
    }

    /// Takes a new anchor when it is time. Returns it for the segments.
    pub fn tick(&mut self, store: &mut Store) -> Option<Anchor> {
        if Instant::now() < self.next {
            return None;
        }
        self.next = Instant::now() + self.interval;
        self.interval = (self.interval * 2).min(INTERVAL);
        self.latest = Anchor::take(self.counter.source());
        let residual = self.counter.extend(self.latest);
        let row = [self.latest.ticks, self.latest.mono, self.latest.real, residual];
        store.push(Table::Anchors, &row.map(|value| Cell::Long(value as i64)));
        Some(self.latest)
    }
}
