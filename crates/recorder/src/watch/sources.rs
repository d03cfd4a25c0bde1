//! Everything read from /proc at intervals, each source at its own pace.

use crate::counters::Counters;
use crate::cpu::threads::{NamedByPython, Threads};
use crate::memory::{numa, pressure, process};
use crate::messages::{Message, Outbox};
use crate::notes::Notes;
use crate::pace::Pace;
use crate::proc;
use crate::processes::Living;
use crate::shared::Shared;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use trace::codes::{Note, NoteCode};
use trace::counters as counter_names;
use trace::tables::{HOST, WHOLE_PROCESS};

pub(super) struct Sources {
    on: bool,
    counters: Counters,
    threads: Threads,
    outbox: Outbox,
    notes: Notes,
    process_pace: Pace,
    threads_pace: Pace,
    shared_pace: Pace,
    numa_pace: Pace,
    pressure_pace: Pace,
}

/// So many processes are followed in /proc; the costs of more would not be bounded by slowing down.
const MOST_PROCESSES: usize = 256;

impl Sources {
    pub fn new(hertz: f64, named: NamedByPython, shared: &Shared, outbox: Outbox) -> Sources {
        let hertz = if hertz.is_finite() { hertz } else { 0.0 };
        let often = Duration::from_secs_f64(1.0 / hertz.clamp(0.01, 1000.0));
        Sources {
            on: hertz > 0.0,
            counters: Counters::new(Arc::clone(&shared.dictionary)),
            threads: Threads::new(named),
            outbox,
            notes: shared.notes.clone(),
            process_pace: Pace::new(often),
            threads_pace: Pace::new(often),
            // These walk page tables: a second, two seconds at the most often.
            shared_pace: Pace::new(often.max(Duration::from_secs(1))),
            numa_pace: Pace::new(often.max(Duration::from_secs(2))),
            pressure_pace: Pace::new(often.max(Duration::from_millis(500))),
        }
    }

    pub fn next(&self) -> Instant {
        self.process_pace.next().min(self.threads_pace.next())
    }

    /// Reads what is due; at the end (`last`) everything that is cheap, so that curves reach the end.
    pub fn read(&mut self, living: &[Living], last: bool) {
        if !self.on {
            return;
        }
        if last {
            self.process_pace = Pace::new(Duration::ZERO);
            self.threads_pace = Pace::new(Duration::ZERO);
            self.pressure_pace = Pace::new(Duration::ZERO);
        }
        let living = &living[..living.len().min(MOST_PROCESSES)];
        let (counters, notes) = (&mut self.counters, &self.notes);
        self.process_pace.run(|| {
            for who in living {
                let stat = proc::stat(who.pid).filter(|stat| stat.start_ticks == who.start_ticks);
                if let Some(stat) = stat.filter(|stat| stat.state != b'Z') {
                    process::sample(who.number, who.pid, &stat, counters);
                }
            }
        });
        self.threads_pace.run(|| {
            // What this process takes itself is not the program's, nor anybody else's.
            if let Some(spent) = proc::cpu_ns(std::process::id()) {
                counters.set(HOST, WHOLE_PROCESS, counter_names::RECORDER_CPU_NS, spent);
            }
            living.iter().for_each(|who| self.threads.sample(who.number, who.pid, counters, &self.outbox));
        });
        self.shared_pace.run(|| {
            each(living, notes, NoteCode::NoSharedMemory, |who| process::sample_shared(who.number, who.pid, counters));
        });
        self.numa_pace.run(|| {
            each(living, notes, NoteCode::NoNumaPlacement, |who| numa::sample(who.number, who.pid, counters));
        });
        self.pressure_pace.run(|| {
            if let Err(error) = pressure::sample(counters) {
                notes.add(Note::new(NoteCode::NoPressure).with(error));
            }
        });
        let rows = self.counters.take();
        if !rows.is_empty() {
            self.outbox.send(Message::Counters(rows));
        }
    }

    pub fn forget(&mut self, process: i32) {
        self.threads.forget(process);
        self.counters.forget(|other, _| other == process);
    }
}

/// Reads a source for each process, and notes once why it cannot be read.
fn each(living: &[Living], notes: &Notes, code: NoteCode, mut read: impl FnMut(&Living) -> io::Result<()>) {
    for who in living {
        match read(who) {
            Err(error) if !process::is_gone(&error, who.pid) => {
                notes.add(Note::new(code).with(error));
            }
            _ => {}
        }
    }
}
