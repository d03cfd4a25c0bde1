//! One sample of a process: a row for each thread, from all stacks or only from those that changed. Which of the two is chosen
//! here: only the changed ones where that was seen to agree with py-spy's own reading, again and again.

use super::changed::{ChangedStacks, TRIES, Verdict};
use super::native_rows::NativeRows;
use super::py_spy_reader::PySpyReader;
use super::thread_ids::{self, ThreadIds};
use super::thread_list::{Layout, ThreadList};
use crate::dictionary::{Dictionary, Frame};
use crate::manifest::StackReads;
use crate::messages::Sample;
use crate::native::NativeStacks;
use crate::pace::cpu_time;
use py_spy::{PythonSpy, StackTrace};
use std::time::{Duration, Instant};
use trace::tables::sample_state;

/// What one look at a process gave.
pub(super) struct Sampled<'a> {
    dictionary: &'a Dictionary,
    process: i32,
    /// Their time is set when all is read.
    pub rows: Vec<Sample>,
    /// Names that Python gave its threads.
    pub names: Vec<(i32, String)>,
    /// Stacks that changed every time.
    pub torn: u64,
    /// Stacks for which there was no room.
    pub waiting: u64,
}

impl<'a> Sampled<'a> {
    pub fn new(dictionary: &'a Dictionary, process: i32) -> Sampled<'a> {
        Sampled { dictionary, process, rows: Vec::new(), names: Vec::new(), torn: 0, waiting: 0 }
    }

    /// The number of a stack; 0 for an empty one.
    pub fn stack(&mut self, trace: &StackTrace) -> Option<i32> {
        let frames = trace.frames.iter().rev();
        let frames = frames.map(|frame| Frame { function: &frame.name, file: &frame.filename, line: frame.line });
        let stack = self.dictionary.stack(frames);
        self.waiting += u64::from(stack.is_none());
        stack
    }

    pub fn add(&mut self, thread: i32, stack: i32, active: bool, owns_gil: bool) {
        if stack != 0 {
            let bit = |set: bool, bit: i32| if set { bit } else { 0 };
            let state = bit(active, sample_state::ACTIVE) | bit(owns_gil, sample_state::GIL);
            self.rows.push(Sample { time: 0, process: self.process, thread, stack, state });
        }
    }
}

pub(super) struct Reader {
    pid: u32,
    spy: PySpyReader,
    ids: ThreadIds,
    /// None: all stacks are read each time.
    changed: Option<ChangedStacks>,
    /// When to compare next, once both readings have agreed.
    check: Option<Instant>,
    differed: u32,
    threads: usize,
    /// Of the threads, those that ran when all were last read.
    running: Vec<i32>,
    pub reads: StackReads,
}

/// A comparison reads every stack: every ten seconds, or as seldom as to cost no more than a hundredth of a core.
const CHECK_EVERY: Duration = Duration::from_secs(10);
const CHECK_SHARE: u32 = 100;
/// A thread that starts and ends between two readings makes them differ; three times in a row it is something else.
const MOST_DIFFERENCES: u32 = 3;
/// Comparing more would hold up the samples for a tenth of a second. (py-spy itself fails beyond 4096.)
const MOST_COMPARED: usize = 1000;

impl Reader {
    pub fn new(pid: u32, spy: PythonSpy, native: Option<NativeStacks>) -> Reader {
        // Under another container's numbers we might find the counts, and the native stack, of another thread.
        let are_ours = thread_ids::are_ours(pid);
        let spy = PySpyReader::new(spy, native.filter(|_| are_ours).map(NativeRows::new));
        let (major, minor) = spy.version();
        let layout = Layout::of(major, minor).filter(|_| are_ours);
        let list = layout.map(|layout| ThreadList::new(pid, layout, spy.interpreter, spy.gil));
        let changed = list.map(|list| ChangedStacks::new(pid, list));
        Reader {
            pid,
            spy,
            ids: ThreadIds::default(),
            changed,
            check: None,
            differed: 0,
            threads: 0,
            running: Vec::new(),
            reads: StackReads::default(),
        }
    }

    /// Whether comparisons failed so that all stacks are read from now on: once.
    pub fn gave_up(&mut self) -> bool {
        let gave_up = self.differed >= MOST_DIFFERENCES;
        if gave_up {
            (self.changed, self.differed) = (None, 0);
        }
        gave_up
    }

    /// The samples whose native functions are to come, where they are wanted.
    pub fn native(&mut self) -> Option<&mut NativeRows> {
        self.spy.native.as_mut()
    }

    /// Why the kernel gives no native functions: once.
    pub fn native_failure(&mut self) -> Option<String> {
        let reason = self.spy.native.as_ref()?.failure()?;
        self.spy.native = None;
        Some(reason)
    }

    /// So many were there at the last sample.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// Takes one sample. Err: nothing could be read.
    pub fn look(&mut self, sampled: &mut Sampled<'_>) -> Result<(), String> {
        if let (Some(changed), Some(check)) = (&mut self.changed, self.check)
            && (Instant::now() < check || changed.threads() > MOST_COMPARED)
        {
            attempt(|| changed.look(&mut self.spy, &mut self.reads, sampled))?;
            self.threads = changed.threads();
            return Ok(());
        }
        self.running.iter().for_each(|thread| self.spy.request_native(*thread));
        let traces = attempt(|| self.read_all())?;
        self.add_all(&traces, sampled);
        Ok(())
    }

    fn read_all(&mut self) -> Result<Vec<StackTrace>, String> {
        let Some(changed) = &mut self.changed else { return self.spy.all() };
        let ((traces, verdict), cost) = cpu_time(|| changed.compare(&mut self.spy));
        let next = Instant::now() + CHECK_EVERY.max(cost * CHECK_SHARE);
        match verdict {
            Verdict::Agrees => (self.check, self.differed) = (Some(next), 0),
            Verdict::Differs => (self.check, self.differed) = (None, self.differed + 1),
            // Of what has agreed before, threads that come and go are no reason to doubt.
            Verdict::Unclear => self.check = self.check.map(|_| next),
        }
        traces
    }

    fn add_all(&mut self, traces: &[StackTrace], sampled: &mut Sampled<'_>) {
        self.threads = traces.len();
        self.running.clear();
        self.reads.read += traces.len() as u64;
        let old_python = traces.iter().any(|trace| trace.os_thread_id.is_none());
        let (all, running) = if old_python { thread_ids::threads(self.pid) } else { Default::default() };
        for trace in traces.iter().filter(|trace| !trace.frames.is_empty()) {
            let found = || self.ids.find(self.pid, trace.thread_id, &all);
            let thread = trace.os_thread_id.map(|thread| thread as i32).or_else(found).unwrap_or(0);
            let active = trace.active && (trace.os_thread_id.is_some() || running.contains(&thread));
            self.running.extend(active.then_some(thread));
            if let Some(stack) = sampled.stack(trace) {
                sampled.add(thread, stack, active, trace.owns_gil);
                sampled.names.extend(trace.thread_name.clone().map(|name| (thread, name)));
            }
        }
    }
}

/// Does it again where something changed meanwhile, but not for ever.
fn attempt<T>(mut once: impl FnMut() -> Result<T, String>) -> Result<T, String> {
    let mut last = once();
    for _ in 1..TRIES {
        if last.is_ok() {
            break;
        }
        last = once();
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_while_it_is_read_is_read_again_but_not_for_ever() {
        let after = |failures: u32| {
            let mut tries = 0;
            let read = attempt(|| {
                tries += 1;
                if tries > failures { Ok(tries) } else { Err("changed".into()) }
            });
            (read.ok(), tries)
        };
        assert_eq!([after(0), after(3), after(100)], [(Some(1), 1), (Some(4), 4), (None, 4)]);
    }
}
