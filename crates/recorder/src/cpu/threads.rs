//! Threads as the scheduler sees them: time on a processor, time waiting for one, and switches. Rows only when something
//! changed, so a thousand sleeping threads cost next to nothing.

use crate::counters::Counters;
use crate::messages::{Message, Outbox};
use crate::proc;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use trace::counters as counter_names;

/// Threads whose name Python told us: it knows better than the kernel.
#[derive(Clone, Default)]
pub(crate) struct NamedByPython(Arc<Mutex<HashMap<(i32, i32), String>>>);

impl NamedByPython {
    /// Says whether the name is new.
    pub fn set(&self, process: i32, thread: i32, name: &str) -> bool {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if names.get(&(process, thread)).is_some_and(|known| known == name) {
            return false;
        }
        names.insert((process, thread), name.to_owned());
        true
    }

    fn has(&self, process: i32, thread: i32) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&(process, thread))
    }

    fn forget(&self, gone: impl Fn(i32, i32) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(process, thread), _| !gone(*process, *thread));
    }
}

pub(crate) struct Threads {
    named: NamedByPython,
    /// By process: the threads seen last time, with the kernel's name for each and when it was asked.
    seen: HashMap<i32, HashMap<i32, (String, Instant)>>,
    /// By process: the CPU time of all its threads when they were last looked at.
    spent_ns: HashMap<i32, u64>,
}

/// Threads rename themselves soon after they start, if at all.
const NAME_EVERY: Duration = Duration::from_secs(5);

impl Threads {
    pub fn new(named: NamedByPython) -> Threads {
        Threads { named, seen: HashMap::new(), spent_ns: HashMap::new() }
    }

    pub fn sample(&mut self, process: i32, pid: u32, counters: &mut Counters, outbox: &Outbox) {
        // What has not run has started no thread, changed no name and is counted as before. One that runs at this moment is
        // counted when it leaves its processor, or at the next tick of the kernel's clock.
        let spent_ns = proc::cpu_ns(pid);
        if spent_ns.is_some() && self.spent_ns.get(&process) == spent_ns.as_ref() {
            return;
        }
        self.spent_ns.extend(spent_ns.map(|spent_ns| (process, spent_ns)));
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return };
        let seen = self.seen.entry(process).or_default();
        let mut there = HashSet::new();
        for task in tasks.flatten() {
            let Some(thread) = task.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            there.insert(thread);
            let folder = task.path();
            let now = Instant::now();
            if seen.get(&thread).is_none_or(|(_, asked)| now.duration_since(*asked) >= NAME_EVERY) {
                let name = fs::read_to_string(folder.join("comm")).unwrap_or_default().trim_end().to_owned();
                let old = seen.insert(thread, (name.clone(), now));
                if old.is_none_or(|(old, _)| old != name) && !self.named.has(process, thread) {
                    outbox.send(Message::Thread { process, thread, name });
                }
            }
            times(process, thread, &folder, counters);
        }
        if seen.len() > there.len() {
            let gone = |p: i32, t: i32| p == process && t != 0 && !there.contains(&t);
            seen.retain(|thread, _| there.contains(thread));
            counters.forget(gone);
            self.named.forget(gone);
        }
    }

    pub fn forget(&mut self, process: i32) {
        self.seen.remove(&process);
        self.spent_ns.remove(&process);
        self.named.forget(|p, _| p == process);
    }
}

fn times(process: i32, thread: i32, folder: &std::path::Path, counters: &mut Counters) {
    let Ok(text) = fs::read_to_string(folder.join("schedstat")) else { return };
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<u64>().unwrap_or(0));
    let (Some(ran), Some(waited), Some(slices)) = (numbers.next(), numbers.next(), numbers.next()) else { return };
    let before = counters.get(process, thread, counter_names::TIMESLICES);
    counters.set(process, thread, counter_names::CPU_NS, ran);
    counters.set(process, thread, counter_names::RUNQUEUE_WAIT_NS, waited);
    counters.set(process, thread, counter_names::TIMESLICES, slices);
    // A thread that was not switched in has not been switched out: no need to read the costlier file.
    if before == Some(slices) {
        return;
    }
    let Ok(text) = fs::read_to_string(folder.join("status")) else { return };
    let pairs = [
        ("voluntary_ctxt_switches:", counter_names::VOLUNTARY_SWITCHES),
        ("nonvoluntary_ctxt_switches:", counter_names::INVOLUNTARY_SWITCHES),
    ];
    for (line, counter) in pairs {
        let value = text.lines().find_map(|text| text.strip_prefix(line)?.trim().parse().ok());
        if let Some(value) = value {
            counters.set(process, thread, counter, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Dictionary;

    #[test]
    fn our_own_threads_are_seen_with_names_and_times() {
        let (outbox, inbox) = crate::messages::channel();
        let mut counters = Counters::new(Arc::new(Dictionary::new(0)));
        let named = NamedByPython::default();
        let me = std::process::id();
        named.set(3, me as i32, "MainThread");
        Threads::new(named).sample(3, me, &mut counters, &outbox);
        let rows = counters.take();
        assert!(rows.iter().any(|row| row.thread == me as i32 && row.value > 0));
        let mut names = 0;
        while let Some(message) = inbox.next() {
            // The first thread keeps the name that Python gave it.
            assert!(matches!(message, Message::Thread { thread, .. } if thread != me as i32));
            names += 1;
        }
        assert!(names >= 1);
    }
}
