//! The processes of a recording, numbered in the order they were found. Rows carry the number; the manifest holds
//! the list. Shared by the drain, which finds segments, and the watcher, which finds processes in /proc.

use crate::manifest::{Collector, Process, ProcessDevice};
use crate::proc;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trace::codes::Condition;

#[derive(Clone, Default)]
pub(crate) struct Processes(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    list: Vec<Process>,
    by_identity: HashMap<(u32, u64), usize>,
    living: Vec<Living>,
    /// How many segments of Python's a process had: one for each program that it ran.
    python_segments: HashMap<i32, u32>,
    changed: bool,
    /// Those that changed since they were last taken for the journal.
    touched: BTreeSet<usize>,
    left_out: u64,
}

/// A process that has not ended, as far as we know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Living {
    pub number: i32,
    pub pid: u32,
    pub start_ticks: u64,
    /// Of Python's.
    pub has_segment: bool,
}

/// More than any machine has.
const MOST_DEVICES: usize = 64;
/// A list that long is 15 MB; whatever starts more processes is recorded under the last number.
pub(crate) const MOST: usize = 50_000;

impl Inner {
    fn touch(&mut self, number: i32) {
        self.changed = true;
        self.touched.insert(number as usize);
    }
}

impl Processes {
    /// Goes on with the list of a trace whose recorder was killed.
    pub fn continued(list: Vec<Process>) -> Processes {
        let by_identity = list.iter().enumerate().map(|(at, p)| ((p.pid, p.start_ticks), at)).collect();
        let living = list.iter().enumerate().filter(|(_, process)| process.ended_ns.is_none());
        let living = living.map(|(at, process)| Living {
            number: at as i32,
            pid: process.pid,
            start_ticks: process.start_ticks,
            has_segment: false,
        });
        let living = living.collect();
        Processes(Arc::new(Mutex::new(Inner { list, by_identity, living, ..Inner::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a process, a new one if it was not known.
    pub fn register(&self, pid: u32, parent: u32, start_ticks: u64, program: &str) -> i32 {
        let mut inner = self.lock();
        if let Some(at) = inner.by_identity.get(&(pid, start_ticks)) {
            return *at as i32;
        }
        inner.changed = true;
        if inner.list.len() >= MOST {
            inner.left_out += 1;
            return MOST as i32 - 1;
        }
        let at = inner.list.len();
        inner.list.push(Process {
            pid,
            parent_pid: parent,
            program: program.to_owned(),
            started_ns: proc::started_ns(start_ticks),
            start_ticks,
            ..Process::default()
        });
        inner.by_identity.insert((pid, start_ticks), at);
        inner.touch(at as i32);
        inner.living.push(Living { number: at as i32, pid, start_ticks, has_segment: false });
        at as i32
    }

    /// A process has a segment: from it we know its Python and its script. The CUDA library's segment, beside that of Python or
    /// alone, knows neither.
    pub fn found_segment(&self, who: &trace::segment::Identity) -> i32 {
        let number = self.register(who.pid, who.parent, who.start_ticks, &who.program);
        let mut inner = self.lock();
        inner.touch(number);
        let is_python = !who.python.is_empty();
        // The CUDA library comes later: by then a program may have said what it had not said at its start.
        if let Some(process) = inner.list.get_mut(number as usize).filter(|process| process.pid == who.pid)
            && who.place.rank.is_some()
        {
            let trace::segment::RankPlace { rank, local_rank, world_size } = who.place;
            (process.rank, process.local_rank, process.world_size) = (rank, local_rank, world_size);
        }
        if let Some(process) = inner.list.get_mut(number as usize).filter(|process| process.pid == who.pid)
            && (is_python || process.python.is_empty())
        {
            process.program.clone_from(&who.program);
            process.python.clone_from(&who.python);
        }
        if is_python {
            let living = inner.living.iter_mut().filter(|living| living.number == number);
            living.for_each(|living| living.has_segment = true);
            *inner.python_segments.entry(number).or_default() += 1;
        }
        number
    }

    /// A device that a process uses, once: of those with its number the first, in the order of the numbers.
    pub fn add_device(&self, number: i32, device: ProcessDevice) {
        let mut inner = self.lock();
        let Some(process) = inner.list.get_mut(number as usize) else { return };
        let place = process.devices.partition_point(|other| other.ordinal < device.ordinal);
        let known = process.devices.get(place).is_some_and(|other| other.ordinal == device.ordinal);
        if process.devices.len() < MOST_DEVICES && !known {
            process.devices.insert(place, device);
            inner.touch(number);
        }
    }

    pub fn set_python(&self, number: i32, python: String) {
        let mut inner = self.lock();
        if let Some(process) = inner.list.get_mut(number as usize).filter(|process| process.python.is_empty()) {
            process.python = python;
            inner.touch(number);
        }
    }

    /// Sets what is known of some collectors; others keep their line. One that is off here may be on in another segment of the
    /// same process: off says nothing against on.
    pub fn set_collectors(&self, number: i32, collectors: &[Collector]) {
        let mut inner = self.lock();
        let Some(process) = inner.list.get_mut(number as usize) else { return };
        let mut changed = false;
        for new in collectors {
            match process.collectors.iter_mut().find(|old| old.name == new.name) {
                Some(old) if new.state == Condition::Off.name() && old.state != Condition::Off.name() => {}
                Some(old) => {
                    // Costs grow all the time: they go along when something else is written, and at the end.
                    changed |= (&old.state, &old.reason) != (&new.state, &new.reason);
                    old.clone_from(new);
                }
                None => {
                    process.collectors.push(new.clone());
                    changed = true;
                }
            }
        }
        if changed {
            inner.touch(number);
        }
    }

    pub fn ended(&self, number: i32) {
        let now = trace::clock::monotonic().0;
        let mut inner = self.lock();
        inner.living.retain(|living| living.number != number);
        if let Some(process) = inner.list.get_mut(number as usize).filter(|process| process.ended_ns.is_none()) {
            process.ended_ns = Some(now);
            inner.touch(number);
        }
    }

    pub fn living(&self) -> Vec<Living> {
        self.lock().living.clone()
    }

    pub fn python_segments(&self, number: i32) -> u32 {
        self.lock().python_segments.get(&number).copied().unwrap_or(0)
    }

    pub fn python(&self, number: i32) -> String {
        self.lock().list.get(number as usize).map(|process| process.python.clone()).unwrap_or_default()
    }

    /// The list, if it changed since it was last taken.
    pub fn take_changed(&self) -> Option<Vec<Process>> {
        let mut inner = self.lock();
        std::mem::take(&mut inner.changed).then(|| inner.list.clone())
    }

    /// Those that changed since they were last taken, with their numbers.
    pub fn take_touched(&self) -> Vec<(usize, Process)> {
        let mut inner = self.lock();
        let touched = std::mem::take(&mut inner.touched);
        touched.into_iter().filter_map(|at| inner.list.get(at).map(|process| (at, process.clone()))).collect()
    }

    /// The list was not written after all.
    pub fn set_changed(&self) {
        self.lock().changed = true;
    }

    pub fn all(&self) -> Vec<Process> {
        self.lock().list.clone()
    }

    /// Processes beyond the limit.
    pub fn left_out(&self) -> u64 {
        self.lock().left_out
    }
}
