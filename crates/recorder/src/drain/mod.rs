//! The drain: every 10 ms it reads what the workload wrote into shared memory and what the samplers sent, and makes rows
//! of it; about once a second, or when much waits in the rings, it closes files. Until then the rings and the journal hold what a kill
//! must not lose. The only thread that writes the tables.

mod attached;
mod clock;
mod close;
mod convert;
mod device;
mod durable;
mod keep;
mod look;
mod losses;
mod pairing;
#[cfg(test)]
mod tests;

pub(crate) use attached::{Attached, Phase, Record, Sink, Visit};
pub(crate) use clock::Clock;
pub(crate) use keep::not_kept;
pub(crate) use losses::Losses;

use crate::lock::Lock;
use crate::manifest::Manifest;
use crate::messages::{Inbox, Message};
use crate::shared::Shared;
use crate::store::{Cell, Left, Store};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace::clock::monotonic;
use trace::codes::{CollectorCode, LossReason};
use trace::tables::{HOST, Table};

pub(crate) struct Drain {
    pub shared: Shared,
    pub store: Store,
    pub manifest: Manifest,
    pub clock: Clock,
    /// Where the workload's segments appear.
    segments: PathBuf,
    lock: Option<Lock>,
    trace: PathBuf,
    inbox: Inbox,
    attached: Vec<Attached>,
    look: look::Look,
    pub losses: Losses,
    /// What killed recorders of this trace left; nothing where there was none.
    pub left: Left,
    resumed: bool,
    buffer: Vec<Record>,
    kept: Option<keep::Kept>,
    round: u64,
    last_close: Instant,
    /// Why the last attempt to close files failed.
    pub failing: Option<std::io::Error>,
}

const PAUSE: Duration = Duration::from_millis(10);
/// While rings fill quickly.
const SHORT_PAUSE: Duration = Duration::from_millis(1);
const CLOSE_EVERY: Duration = Duration::from_secs(1);
/// When writers find no room: closing files takes some milliseconds, so not at every turn.
const CLOSE_PRESSED: Duration = Duration::from_millis(50);
/// Records in a visit that call for a short pause: a tenth of what the fastest workload writes in 10 ms.
const BUSY: u64 = 10_000;

impl Drain {
    pub fn new(
        store: Store,
        manifest: Manifest,
        segments: PathBuf,
        clock: Clock,
        inbox: Inbox,
        shared: Shared,
    ) -> Drain {
        Drain {
            trace: store.files().folder().to_owned(),
            attached: Vec::new(),
            look: look::Look::default(),
            losses: Losses::default(),
            left: Left::default(),
            resumed: false,
            buffer: Vec::new(),
            kept: None,
            round: 0,
            last_close: Instant::now(),
            failing: None,
            lock: None,
            shared,
            store,
            manifest,
            clock,
            segments,
            inbox,
        }
    }

    /// Holds the trace's lock as long as this drain lives.
    pub fn hold(&mut self, lock: Lock) {
        self.lock = Some(lock);
    }

    /// Goes on where the disk ends. `restarts`: how many recorders of this trace were killed.
    pub fn go_on(&mut self, left: Left, restarts: u32) {
        (self.left, self.resumed) = (left, restarts > 0);
    }

    /// Drains until told to stop.
    pub fn run(&mut self, stop: &AtomicBool) {
        let notes = self.shared.notes.clone();
        while !stop.load(Ordering::Acquire) {
            let pause = notes.guard("the drain", || self.turn()).unwrap_or(PAUSE);
            std::thread::park_timeout(pause);
        }
    }

    /// One turn: look for processes, read, write. Returns how long to rest.
    fn turn(&mut self) -> Duration {
        self.look_around(Instant::now());
        let visit = self.visit();
        self.receive();
        if let Some(anchor) = self.clock.tick(&mut self.store) {
            self.attached.iter().for_each(|attached| attached.reader().set_latest_anchor(anchor));
        }
        self.shared.dictionary.hand_over(&mut self.store);
        self.keep();
        let waited = self.last_close.elapsed() >= if visit.pressed { CLOSE_PRESSED } else { CLOSE_EVERY };
        let pressed = visit.ripe || self.store.any_full() || self.is_crowded();
        if waited || (pressed && self.failing.is_none()) {
            self.close();
        }
        match (visit.cut_short && self.failing.is_none(), visit.records > BUSY) {
            (true, _) => Duration::ZERO,
            (_, true) => SHORT_PAUSE,
            _ => PAUSE,
        }
    }

    /// Reads every ring of every segment once.
    pub(super) fn visit(&mut self) -> Visit {
        self.round += 1;
        let mut all = Visit::default();
        for attached in &mut self.attached {
            let mut sink = Sink {
                store: &mut self.store,
                dictionary: &self.shared.dictionary,
                processes: &self.shared.processes,
                notes: &self.shared.notes,
                clock: &self.clock,
                losses: &mut self.losses,
                buffer: &mut self.buffer,
                round: self.round,
            };
            let visit = attached.drain(&mut sink);
            if attached.phase == Phase::Dying && !visit.cut_short {
                attached.abandon(&self.clock, self.store.batch(Table::Slices));
                attached.phase = Phase::Gone;
            }
            all.records += visit.records;
            all.ripe |= visit.ripe;
            all.pressed |= visit.pressed;
            all.cut_short |= visit.cut_short;
        }
        all
    }

    /// Takes what the samplers sent.
    pub(super) fn receive(&mut self) {
        while let Some(message) = self.inbox.next() {
            let (store, mut dropped) = (&mut self.store, 0);
            match message {
                Message::Samples(rows) => rows.iter().for_each(|row| {
                    let ints = [row.process, row.thread, row.stack, row.state].map(Cell::Int);
                    let cells = [Cell::Long(row.time), ints[0], ints[1], ints[2], ints[3]];
                    dropped += u64::from(!store.push(Table::Samples, &cells));
                }),
                Message::Counters(rows) => rows.iter().for_each(|row| {
                    let ints = [row.process, row.thread, row.counter].map(Cell::Int);
                    let cells = [Cell::Long(row.time), ints[0], ints[1], ints[2], Cell::Long(row.value)];
                    dropped += u64::from(!store.push(Table::Counters, &cells));
                }),
                Message::Thread { process, thread, name } => {
                    let time = Cell::Long(monotonic().0 as i64);
                    let cells = [time, Cell::Int(process), Cell::Int(thread), Cell::Text(&name)];
                    dropped += u64::from(!store.push(Table::Threads, &cells));
                }
                Message::Loss { process, collector, reason, count } => {
                    self.losses.seen(store, process, collector, reason, count);
                }
            }
            self.losses.seen(&mut self.store, HOST, CollectorCode::Recorder, LossReason::RowsNotWritten, dropped);
        }
        let dropped = self.inbox.take_dropped();
        self.losses.seen(&mut self.store, HOST, CollectorCode::Recorder, LossReason::RecorderLate, dropped);
    }
}
