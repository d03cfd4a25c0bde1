//! Python stacks, sampled from outside without stopping the process: one thread of ours per Python process, on a fixed
//! schedule. A stack that could not be read is counted; a process that cannot be sampled is noted, and all else goes on.

use super::budget::Budget;
use super::native_rows::NativeRows;
use super::reader::{Reader, Sampled};
use super::threads::NamedByPython;
use crate::manifest::{Collector, StackReads};
use crate::messages::{Message, Outbox, Sample};
use crate::native::{NativeStacks, ObjectFiles};
use crate::pace::cpu_time;
use crate::proc;
use crate::shared::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace::clock::monotonic;
use trace::codes::{CollectorCode, Condition, LossReason, Note, NoteCode};

/// What one sampler samples, and how.
#[derive(Clone)]
pub(crate) struct Target {
    pub process: i32,
    pub pid: u32,
    pub start_ticks: u64,
    pub rate_hz: u32,
    pub native: bool,
}

pub(crate) struct Sampler {
    pub target: Target,
    pub shared: Shared,
    pub outbox: Outbox,
    pub named: NamedByPython,
    pub stop: Arc<AtomicBool>,
    /// Shared by all samplers of a recording.
    pub object_files: ObjectFiles,
}

/// Failures in a row that mean more than a torn stack: the process may have become another program.
const MOST_FAILURES: u32 = 20;

impl Sampler {
    /// Samples until the process ends or the recording does.
    pub fn run(self) {
        let mut reads = StackReads::default();
        while let Some(spy) = self.connect() {
            self.report(Condition::On, "", Some(reads));
            let native = self.target.native.then(|| NativeStacks::new(self.target.pid, self.object_files.clone()));
            let mut reader = Reader::new(self.target.pid, spy, native);
            reader.reads = reads;
            let again = self.sample(&mut reader);
            self.send(reader.native().map_or(Vec::new(), NativeRows::rest));
            reads = reader.reads;
            self.report(Condition::On, "", Some(reads));
            if !again {
                return;
            }
        }
    }

    pub(super) fn wanted(&self) -> bool {
        !self.stop.load(Ordering::Acquire) && proc::alive(self.target.pid, self.target.start_ticks)
    }

    pub(super) fn report(&self, state: Condition, reason: &str, stack_reads: Option<StackReads>) {
        let (name, state, reason) = (CollectorCode::Stacks.name().into(), state.name().into(), reason.into());
        let collector = Collector { name, state, reason, stack_reads, ..Collector::default() };
        self.shared.processes.set_collectors(self.target.process, &[collector]);
    }

    /// Samples on a fixed schedule. True: try to connect again.
    fn sample(&self, reader: &mut Reader) -> bool {
        let interval = Duration::from_nanos(1_000_000_000 / u64::from(self.target.rate_hz.clamp(1, 1000)));
        let mut next = Instant::now();
        let (mut failures, mut budget, mut last) = (0, Budget::new(), next);
        let (mut lost, mut slowed) = (Lost::default(), false);
        while !self.stop.load(Ordering::Acquire) {
            let now = Instant::now();
            if now < next {
                // In pieces, so that a slow rate does not hold up the end.
                std::thread::sleep((next - now).min(Duration::from_millis(50)));
                continue;
            }
            let (is_read, cost) = cpu_time(|| self.take(reader, &mut lost));
            match is_read {
                true => failures = 0,
                false if !self.wanted() => break,
                false => {
                    failures += 1;
                    lost.torn += 1;
                    if failures >= MOST_FAILURES {
                        lost.send(self);
                        return true;
                    }
                }
            }
            let pause = budget.spend(now - last, cost);
            last = now;
            if pause > interval && !std::mem::replace(&mut slowed, true) {
                self.say_slowed(cost, interval, reader.threads());
            }
            let late = (Instant::now() + pause).saturating_duration_since(next).as_nanos() / interval.as_nanos();
            lost.skipped += late as u64;
            next += interval * (late as u32 + 1);
            if lost.send_at_times(self) {
                self.report(Condition::On, "", Some(reader.reads));
            }
        }
        lost.send(self);
        false
    }

    fn say_slowed(&self, cost: Duration, interval: Duration, threads: usize) {
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let note = Note::new(NoteCode::SampledLessOften).with(format_args!("{:.0}", millis(interval))).with(threads);
        self.shared.notes.add(note.with(format_args!("{:.1}", millis(cost))).of(self.target.pid));
    }

    /// Takes one sample and sends it. False: nothing could be read.
    fn take(&self, reader: &mut Reader, lost: &mut Lost) -> bool {
        let Target { pid, process, .. } = self.target;
        let mut sampled = Sampled::new(&self.shared.dictionary, process);
        let before = monotonic().0;
        self.send(self.with_native(reader, before));
        if reader.look(&mut sampled).is_err() {
            return false;
        }
        let time = before.midpoint(monotonic().0) as i64;
        if reader.gave_up() {
            self.shared.notes.add(Note::new(NoteCode::StacksNotReused).of(pid));
        }
        if let Some(reason) = reader.native_failure() {
            self.shared.notes.add(Note::new(NoteCode::NoNativeFrames).with(reason).of(pid));
        }
        if sampled.torn > 0 && !self.wanted() {
            // It ends: nothing changed meanwhile, there is nothing to read any more.
            sampled.torn = 0;
        }
        (lost.torn, lost.waiting) = (lost.torn + sampled.torn, lost.waiting + sampled.waiting);
        for (thread, name) in sampled.names {
            if self.named.set(process, thread, &name) {
                self.outbox.send(Message::Thread { process, thread, name });
            }
        }
        let mut rows = sampled.rows;
        rows.iter_mut().for_each(|row| row.time = time);
        if let Some(native) = reader.native() {
            native.keep(&mut rows);
        }
        rows.extend(self.with_native(reader, monotonic().0));
        self.send(rows);
        true
    }

    /// Earlier samples whose native functions have come meanwhile.
    fn with_native(&self, reader: &mut Reader, now: u64) -> Vec<Sample> {
        reader.native().map_or(Vec::new(), |native| native.take(now as i64, &self.shared.dictionary))
    }

    fn send(&self, rows: Vec<Sample>) {
        if !rows.is_empty() {
            self.outbox.send(Message::Samples(rows));
        }
    }
}

/// Losses since the last report.
#[derive(Default)]
struct Lost {
    skipped: u64,
    torn: u64,
    waiting: u64,
    reported: Option<Instant>,
}

impl Lost {
    /// Once a second. Says whether it was time.
    fn send_at_times(&mut self, sampler: &Sampler) -> bool {
        let is_time = self.reported.is_none_or(|time| time.elapsed() >= Duration::from_secs(1));
        if is_time {
            self.send(sampler);
        }
        is_time
    }

    fn send(&mut self, sampler: &Sampler) {
        self.reported = Some(Instant::now());
        for (count, reason) in [
            (&mut self.skipped, LossReason::SamplerLate),
            (&mut self.torn, LossReason::StackChanged),
            (&mut self.waiting, LossReason::SamplesNotWritten),
        ] {
            let count = std::mem::take(count);
            if count > 0 {
                let process = sampler.target.process;
                sampler.outbox.send(Message::Loss { process, collector: CollectorCode::Stacks, reason, count });
            }
        }
    }
}
