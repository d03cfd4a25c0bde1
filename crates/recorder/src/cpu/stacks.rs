//! Python stacks, sampled from outside without stopping the process: one thread of ours per Python process, on a fixed
//! schedule. A stack that could not be read is counted; a process that cannot be sampled is noted, and all else goes on.

use super::spy::guarded;
use super::thread_ids::{self, ThreadIds};
use super::threads::NamedByPython;
use crate::dictionary::Frame;
use crate::drain::Shared;
use crate::manifest::Collector;
use crate::messages::{Message, Outbox, Sample};
use crate::proc;
use py_spy::{PythonSpy, StackTrace};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use trace::clock::monotonic;
use trace::tables::sample_state;

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
}

const SKIPPED: &str = "stack samples skipped because the machine or the sampler was late";
const TORN: &str = "stacks that could not be read because they changed meanwhile";
const WAITING: &str = "stack samples dropped while the disk took nothing";

/// A stack that changes while it is read is read again at once: left out, the code that calls and returns most would look as
/// if it took the least time.
const TRIES: u32 = 4;
/// Failures in a row that mean more than a torn stack: the process may have become another program.
const MOST_FAILURES: u32 = 20;

impl Sampler {
    /// Samples until the process ends or the recording does.
    pub fn run(self) {
        while let Some(spy) = self.connect() {
            self.report("on", "");
            if !self.sample(spy) {
                return;
            }
        }
    }

    pub(super) fn wanted(&self) -> bool {
        !self.stop.load(Ordering::Acquire) && proc::alive(self.target.pid, self.target.start_ticks)
    }

    pub(super) fn report(&self, state: &str, reason: &str) {
        let collector =
            Collector { name: "stacks".into(), state: state.into(), reason: reason.into(), ..Collector::default() };
        self.shared.processes.set_collectors(self.target.process, &[collector]);
    }

    /// Samples on a fixed schedule. True: try to connect again.
    fn sample(&self, mut spy: PythonSpy) -> bool {
        let interval = Duration::from_nanos(1_000_000_000 / u64::from(self.target.rate_hz.clamp(1, 1000)));
        let mut next = Instant::now();
        let (mut failures, mut ids) = (0, ThreadIds::default());
        let mut lost = Lost::default();
        while !self.stop.load(Ordering::Acquire) {
            let now = Instant::now();
            if now < next {
                // In pieces, so that a slow rate does not hold up the end.
                std::thread::sleep((next - now).min(Duration::from_millis(50)));
                continue;
            }
            match read(|| guarded(|| spy.get_stack_traces())) {
                Some((traces, time)) => {
                    failures = 0;
                    self.send(&traces, time, &mut ids, &mut lost);
                }
                None if !self.wanted() => break,
                None => {
                    failures += 1;
                    lost.torn += 1;
                    if failures >= MOST_FAILURES {
                        lost.send(self);
                        return true;
                    }
                }
            }
            let late = Instant::now().saturating_duration_since(next).as_nanos() / interval.as_nanos();
            lost.skipped += late as u64;
            next += interval * (late as u32 + 1);
            lost.send_at_times(self);
        }
        lost.send(self);
        false
    }

    fn send(&self, traces: &[StackTrace], time: i64, ids: &mut ThreadIds, lost: &mut Lost) {
        let Target { pid, process, .. } = self.target;
        let old_python = traces.iter().any(|trace| trace.os_thread_id.is_none());
        let (all, running) = if old_python { thread_ids::threads(pid) } else { Default::default() };
        let mut rows = Vec::with_capacity(traces.len());
        for trace in traces.iter().filter(|trace| !trace.frames.is_empty()) {
            let found = || ids.find(pid, trace.thread_id, &all);
            let thread = trace.os_thread_id.map(|thread| thread as i32).or_else(found).unwrap_or(0);
            let active = trace.active && (trace.os_thread_id.is_some() || running.contains(&thread));
            let frames = trace.frames.iter().rev().map(|frame| Frame {
                function: &frame.name,
                // Only native frames have a module: the library that they are in.
                file: frame.module.as_deref().unwrap_or(&frame.filename),
                line: frame.line,
            });
            let Some(stack) = self.shared.dictionary.stack(frames) else {
                lost.waiting += 1;
                continue;
            };
            let bit = |set: bool, bit: i32| if set { bit } else { 0 };
            let state = bit(active, sample_state::ACTIVE) | bit(trace.owns_gil, sample_state::GIL);
            rows.push(Sample { time, process, thread, stack, state });
            if let Some(name) = trace.thread_name.as_ref().filter(|name| self.named.set(process, thread, name)) {
                self.outbox.send(Message::Thread { process, thread, name: name.clone() });
            }
        }
        if !rows.is_empty() {
            self.outbox.send(Message::Samples(rows));
        }
    }
}

/// What was read, and when it was so. None: it changed every time.
fn read<T>(mut once: impl FnMut() -> Result<T, String>) -> Option<(T, i64)> {
    (0..TRIES).find_map(|_| {
        let before = monotonic().0;
        let all = once().ok()?;
        Some((all, before.midpoint(monotonic().0) as i64))
    })
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
    fn send_at_times(&mut self, sampler: &Sampler) {
        if self.reported.is_none_or(|time| time.elapsed() >= Duration::from_secs(1)) {
            self.send(sampler);
        }
    }

    fn send(&mut self, sampler: &Sampler) {
        self.reported = Some(Instant::now());
        for (count, what) in [(&mut self.skipped, SKIPPED), (&mut self.torn, TORN), (&mut self.waiting, WAITING)] {
            let count = std::mem::take(count);
            if count > 0 {
                let process = sampler.target.process;
                sampler.outbox.send(Message::Loss { process, collector: "stacks", what, count });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_while_it_is_read_is_read_again_but_not_for_ever() {
        let after = |failures: u32| {
            let mut tries = 0;
            let read = read(|| {
                tries += 1;
                if tries > failures { Ok(tries) } else { Err("changed".into()) }
            });
            (read.map(|(read, _)| read), tries)
        };
        assert_eq!([after(0), after(3), after(100)], [(Some(1), 1), (Some(4), 4), (None, 4)]);
    }
}
