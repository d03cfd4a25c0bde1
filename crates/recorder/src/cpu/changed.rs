//! The stacks of the threads that have run since they were last read; of the others, what was read then. What a thread holds
//! and whether it is active is asked anew for each sample.

use super::py_spy_reader::{PySpyReader, fingerprint};
use super::reader::Sampled;
use super::scheduling::{KernelThread, LastRead};
use super::thread_ids::{self, ThreadIds};
use super::thread_list::{Thread, ThreadList};
use crate::manifest::StackReads;
use crate::pace::cpu_time;
use py_spy::StackTrace;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// A stack that changes while it is read is read again at once: left out, the code that calls and returns most would look as
/// if it took the least time.
pub(super) const TRIES: u32 = 4;
/// Of a thread that ran so lately it is asked whether it waits for a processor: it may be woken at any moment. A thread that
/// has slept for longer counts as idle until it runs.
const LATELY: Duration = Duration::from_secs(1);
/// For the case that a change of the list went unseen.
const LIST_EVERY: Duration = Duration::from_secs(1);
/// A thread may get a name after it has started; and the names may change while they are read.
const NAMES_EVERY: Duration = Duration::from_secs(1);
const ASKED_AT_ONCE: u32 = 3;
/// Names take one part in this of a core, where threads come and go all the time.
const NAMES_SHARE: u32 = 20;

pub(super) struct ChangedStacks {
    pid: u32,
    list: ThreadList,
    ids: ThreadIds,
    known: Vec<Known>,
    /// When names may be asked for, and when again for threads that seem to have none.
    names_next: Instant,
    names_again: Instant,
    /// When the list of threads was read. None: it has to be.
    listed: Option<Instant>,
}

/// A thread, with its stack when it was last read.
struct Known {
    thread: Thread,
    /// The kernel's number; 0 where it could not be found.
    number: i32,
    kernel: KernelThread,
    last: LastRead,
    stack: i32,
    fingerprint: u64,
    /// Whether its innermost function may be more than a wait.
    may_be_active: bool,
    ran: Instant,
    is_named: bool,
    /// How often its name was asked for.
    asked: u32,
}

/// What a comparison with py-spy's own list and stacks gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Agrees,
    Differs,
    /// Threads came or went meanwhile.
    Unclear,
}

impl ChangedStacks {
    pub fn new(pid: u32, list: ThreadList) -> ChangedStacks {
        let now = Instant::now();
        let (ids, known) = (ThreadIds::default(), Vec::new());
        ChangedStacks { pid, list, ids, known, names_next: now, names_again: now, listed: None }
    }

    pub fn threads(&self) -> usize {
        self.known.len()
    }

    /// A sample of every thread. Err: the list of threads could not be read.
    pub fn look(
        &mut self,
        spy: &mut PySpyReader,
        reads: &mut StackReads,
        sampled: &mut Sampled<'_>,
    ) -> Result<(), String> {
        self.follow()?;
        let now = Instant::now();
        for position in 0..self.known.len() {
            self.look_at(position, spy, now, reads, sampled);
        }
        self.find_names(spy, now, sampled);
        Ok(())
    }

    /// Reads the list of threads where it may have changed, and keeps what is known of those that are still there. A new
    /// thread is the first of the list; one that has left it has run, so its stack was not found where it should be.
    fn follow(&mut self) -> Result<(), String> {
        let is_new = self.list.read_head().map_err(|error| error.to_string())?;
        if !is_new && self.listed.is_some_and(|listed| listed.elapsed() < LIST_EVERY) {
            return Ok(());
        }
        self.list.read().map_err(|error| error.to_string())?;
        self.listed = Some(Instant::now());
        let threads = self.list.threads();
        if self.known.iter().map(|known| &known.thread).eq(threads) {
            return Ok(());
        }
        let mut before: HashMap<Thread, Known> =
            std::mem::take(&mut self.known).into_iter().map(|known| (known.thread, known)).collect();
        let (pid, ids, mut numbers) = (self.pid, &mut self.ids, None);
        self.known = threads
            .iter()
            .map(|thread| before.remove(thread).unwrap_or_else(|| Known::new(pid, thread, ids, &mut numbers)))
            .collect();
        Ok(())
    }

    fn look_at(
        &mut self,
        position: usize,
        spy: &mut PySpyReader,
        now: Instant,
        reads: &mut StackReads,
        sampled: &mut Sampled<'_>,
    ) {
        let known = &mut self.known[position];
        let mut counts = known.kernel.counts();
        if known.last.is_current(counts) {
            reads.reused += 1;
            let lately = known.may_be_active && now.duration_since(known.ran) < LATELY;
            let active = lately && known.kernel.is_runnable() == Some(true);
            let owns_gil = self.list.owns_gil(&known.thread);
            return sampled.add(known.number, known.stack, active, owns_gil);
        }
        if counts.is_none() && known.thread.os_id.is_none() {
            // Before Python 3.11 a new thread may look like the one before it.
            *known = Known::new(self.pid, &known.thread, &mut self.ids, &mut None);
            counts = known.kernel.counts();
        }
        let runnable = known.kernel.is_runnable();
        known.last.forget();
        known.ran = now;
        let thread = known.thread;
        reads.read += 1;
        if runnable == Some(true) {
            spy.request_native(known.number);
        }
        let (list, listed) = (&mut self.list, &mut self.listed);
        let trace = match read(list, position, &thread, spy, || *listed = None) {
            Ok(Some(trace)) => trace,
            Ok(None) => return,
            Err(_) => return sampled.torn += 1,
        };
        let Some(stack) = sampled.stack(&trace) else { return };
        let known = &mut self.known[position];
        (known.stack, known.fingerprint, known.may_be_active) = (stack, fingerprint(&trace), trace.active);
        let kernel = &known.kernel;
        known.last.set(counts, runnable, || kernel.counts());
        // Python before 3.11 does not say which thread of the kernel it is: one that was not found is not known to run.
        let active = trace.active && runnable.unwrap_or(thread.os_id.is_some());
        sampled.add(known.number, stack, active, self.list.owns_gil(&thread));
    }

    /// Where threads are new, or have no name for long, Python is asked for the names of all.
    fn find_names(&mut self, spy: &mut PySpyReader, now: Instant, sampled: &mut Sampled<'_>) {
        let waits = |known: &&Known| !known.is_named && (known.asked < ASKED_AT_ONCE || now >= self.names_again);
        if now < self.names_next || !self.known.iter().any(|known| waits(&known)) {
            return;
        }
        // The last thread of the list is the oldest, and so the one that is most likely still there.
        let Some(thread) = self.list.threads().last().copied() else { return };
        let Some(place) = self.list.place(self.list.threads().len() - 1) else { return };
        let (names, cost) = cpu_time(|| spy.names(place, &thread));
        for known in &mut self.known {
            let name = names.get(&known.thread.python_id).and_then(Option::as_ref);
            (known.is_named, known.asked) = (name.is_some(), known.asked + 1);
            sampled.names.extend(name.map(|name| (known.number, name.clone())));
        }
        (self.names_next, self.names_again) = (now + cost * NAMES_SHARE, now + NAMES_EVERY);
    }

    /// Reads all stacks as py-spy does, and compares: the same threads, and the same stacks of those that have not run.
    pub fn compare(&mut self, spy: &mut PySpyReader) -> (Result<Vec<StackTrace>, String>, Verdict) {
        self.listed = None;
        let Ok(()) = self.follow() else { return (spy.all(), Verdict::Unclear) };
        let before: Vec<Thread> = self.list.threads().to_vec();
        let all = spy.all();
        let Ok(traces) = &all else { return (all, Verdict::Unclear) };
        if self.list.read().is_err() || before != self.list.threads() {
            return (all, Verdict::Unclear);
        }
        let same_threads = traces.len() == before.len()
            && traces.iter().zip(&before).all(|(trace, thread)| {
                trace.thread_id == thread.python_id && trace.os_thread_id == thread.os_id.map(|id| id as u64)
            });
        let mut same_stacks = || {
            traces.iter().zip(&mut self.known).all(|(trace, known)| {
                let rests = known.last.is_current(known.kernel.counts());
                let same = !rests || fingerprint(trace) == known.fingerprint;
                if !same {
                    known.last.forget();
                }
                same
            })
        };
        let verdict = if same_threads && same_stacks() { Verdict::Agrees } else { Verdict::Differs };
        (all, verdict)
    }
}

impl Known {
    /// `numbers` are the kernel's threads of the process, once they were asked for.
    fn new(
        pid: u32,
        thread: &Thread,
        ids: &mut ThreadIds,
        numbers: &mut Option<std::collections::HashSet<i32>>,
    ) -> Known {
        let mut find = || ids.find(pid, thread.python_id, numbers.get_or_insert_with(|| thread_ids::numbers(pid)));
        let number = thread.os_id.or_else(&mut find).unwrap_or(0);
        Known {
            thread: *thread,
            number,
            kernel: KernelThread::kept_open(pid, number),
            last: LastRead::default(),
            stack: 0,
            fingerprint: 0,
            may_be_active: false,
            ran: Instant::now(),
            is_named: false,
            asked: 0,
        }
    }
}

/// The stack of one thread. None: it has ended. `list` may be read again, which is told.
fn read(
    list: &mut ThreadList,
    position: usize,
    thread: &Thread,
    spy: &mut PySpyReader,
    mut listed_again: impl FnMut(),
) -> Result<Option<StackTrace>, String> {
    let mut position = Some(position).filter(|position| list.threads().get(*position) == Some(thread));
    let mut failure = String::new();
    for _ in 0..TRIES {
        position = position.or_else(|| list.threads().iter().position(|other| other == thread));
        let Some(at) = position.take() else { return Ok(None) };
        let trace = match list.place(at) {
            Some(place) => spy.one(place, thread),
            None => spy.all().and_then(|all| {
                let mine = all.into_iter().find(|trace| trace.thread_id == thread.python_id);
                mine.ok_or_else(|| "it has ended".into())
            }),
        };
        match trace {
            Ok(trace) => return Ok(Some(trace)),
            Err(error) => failure = error,
        }
        // Perhaps threads came or went.
        listed_again();
        list.read().map_err(|error| error.to_string())?;
    }
    Err(failure)
}
